"""The one way to run a network that belongs to somebody: under its lock, and left as it was found."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from idc_core.devices import exact
from idc_core.errors import IdcError, ModelError, SettingError, UnsupportedOperationError
from idc_core.layer_parts import HEADS, PARTS, SIGN, split_layer
from idc_core.lrp.captures import INPUT
from idc_core.lrp.interception import Watch
from idc_core.lrp.named_inputs import Batch, NamedInputs, call, described, main_of
from idc_core.lrp.rules import RelevanceSettings

_LOCKS: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_LOCKS_GUARD = threading.Lock()


def lock_of(model: nn.Module) -> threading.RLock:
    """Return the lock of a network; every pass of the engine holds it."""
    original = model._modules.get("_orig_mod") or model
    with _LOCKS_GUARD:
        return _LOCKS.setdefault(original, threading.RLock())


def named_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return a network's modules by name; those that `torch.compile` has wrapped, by their original names."""
    return {
        ".".join(part for part in name.split(".") if part != "_orig_mod"): module
        for name, module in model.named_modules()
    }


@contextmanager
def _as_written(model: nn.Module) -> Iterator[None]:
    """Let what `torch.compile` has wrapped run operation by operation, so that each is seen."""
    wrapped = [module for module in model.modules() if "_orig_mod" in module._modules]
    compiled = [(module, call) for module in model.modules() if (call := module._compiled_call_impl) is not None]
    kept = [module.__dict__["forward"] for module in wrapped]
    try:
        for module in wrapped:
            module.__dict__["forward"] = module._modules["_orig_mod"]
        for module, _ in compiled:
            module._compiled_call_impl = None
        yield
    finally:
        for module, forward in zip(wrapped, kept, strict=True):
            module.__dict__["forward"] = forward
        for module, call in compiled:
            module._compiled_call_impl = call


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Hold the network's lock with the network in evaluation mode and its parameters frozen; restore both after."""
    with lock_of(model), torch.inference_mode(False), _as_written(model), exact(model):
        training = [module for module in model.modules() if module.training]
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        try:
            for module in training:
                module.training = False
            for parameter in learning:
                parameter.requires_grad_(False)
            yield
        finally:
            for module in training:
                module.training = True
            for parameter in learning:
                parameter.requires_grad_(True)


class LayerObserver(Protocol):
    """What hears of layers as they run."""

    where: list[str]

    def layer_ran(self, layer: str, module: nn.Module, output: Any) -> Any:
        """Hear of a layer's output; return what the network goes on with instead of it, or None."""


def _check_rule(settings: RelevanceSettings, modules: Mapping[str, nn.Module]) -> None:
    """Refuse a rule for a module that the network does not have."""
    missing = next((name for name in settings.modules if name not in modules), None)
    if missing is not None:
        names = ", ".join(name for name in modules if name)
        raise SettingError(
            f"The rule names {missing!r}, which is neither a kind of operation nor a module of the network: expected "
            f"conv, linear, norm, pool, sum, first, last, other, or one of {names}."
        )


@contextmanager
def watching(model: nn.Module, layers: Sequence[str], watch: LayerObserver, name_all: bool = False) -> Iterator[None]:
    """Let a `Watch`, or anything else that hears, hear of the layers through hooks that do not outlive the block."""
    modules = named_layers(model)
    if isinstance(watch, Watch) and watch.settings is not None and watch.settings.asks_where:
        _check_rule(watch.settings, modules)
        name_all = True
    owner = threading.get_ident()

    def entering(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any) -> None:
            if threading.get_ident() == owner:
                watch.where.append(name)

        return hook

    def leaving(module: nn.Module, args: Any, output: Any) -> None:
        if threading.get_ident() == owner:
            watch.where.pop()

    def ran(layer: str) -> Callable[..., Any]:
        def hook(module: nn.Module, args: Any, output: Any) -> Any:
            if threading.get_ident() != owner:
                return None
            with torch._C.DisableTorchFunction():
                return watch.layer_ran(layer, module, output)

        return hook

    def calling(hear: Callable[[str], None], layer: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if threading.get_ident() == owner:
                hear(layer)

        return hook

    with ExitStack() as hooks:
        if name_all:
            for name, module in modules.items():
                hooks.enter_context(module.register_forward_pre_hook(entering(name)))
                hooks.enter_context(module.register_forward_hook(leaving))
        for layer in layers:
            holder, part = split_layer(layer)
            if part == HEADS and isinstance(watch, Watch):
                hooks.enter_context(modules[holder].register_forward_pre_hook(calling(watch.entered, layer)))
                hooks.enter_context(modules[holder].register_forward_hook(calling(watch.left, layer)))
            elif layer != INPUT or INPUT in modules:
                hooks.enter_context(modules[holder].register_forward_hook(ran(layer)))
        yield


def check_layers(model: nn.Module, layers: Sequence[str]) -> None:
    """Refuse layers the network does not have, and networks whose operations cannot be seen."""
    modules = named_layers(model)
    for layer in layers:
        if split_layer(layer)[0] not in modules and layer != INPUT:
            names = [*(name for name in modules if name), repr(INPUT)]
            parts = "" if SIGN not in layer else f", or one with {' or '.join(SIGN + part for part in PARTS)} behind it"
            raise ModelError(f"The network has no layer {layer!r}: expected one of {', '.join(names)}{parts}.")
    for name, module in modules.items():
        if isinstance(module, torch.jit.ScriptModule):
            raise UnsupportedOperationError(
                f"Module {name or type(module).__name__!r} is TorchScript, whose operations cannot be seen. "
                "Load the network as an ordinary torch.nn.Module."
            )


def run_watched(model: nn.Module, inputs: Batch, watch: Watch) -> Tensor:
    """Run one batch (n, ...) under a watch and return the scores before the final softmax, (n, classes)."""
    if watch.settings is not None:
        watch.notes.buffers = {id(buffer) for buffer in model.buffers()}
    with torch.set_grad_enabled(watch.settings is not None):
        main = watch.begin(main_of(inputs))
        inputs = inputs.with_main(main) if isinstance(inputs, NamedInputs) else main
        try:
            with watch:
                output = call(model, inputs)
        except (IdcError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise ModelError(f"The network failed on {described(inputs)}: {type(error).__name__}: {error}") from error
        return watch.end(output)
