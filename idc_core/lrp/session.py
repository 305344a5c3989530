"""The one way to run a network that belongs to somebody: under its lock, and left as it was found."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from idc_core.base.devices import exact, without_autocast
from idc_core.base.foreign import said_foreign
from idc_core.base.own_code import is_mistake, said
from idc_core.base.parameters import shown
from idc_core.errors import IdcError, ModelError, SettingError, UnsupportedOperationError
from idc_core.lrp.captures import INPUT, INPUT_MODULE
from idc_core.lrp.interception import Watch
from idc_core.lrp.layer_parts import HEADS, PARTS, SIGN, split_layer
from idc_core.lrp.named_inputs import Batch, NamedInputs, call, described, filled, main_of, said_missing
from idc_core.lrp.own_functions import functions_shown
from idc_core.lrp.rules import RelevanceSettings

_LOCKS: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_LOCKS_GUARD = threading.Lock()


def lock_of(model: nn.Module) -> threading.RLock:
    """Return the lock of a network; every pass of the engine holds it."""
    original = model._modules.get("_orig_mod") or model
    with _LOCKS_GUARD:
        return _LOCKS.setdefault(original, threading.RLock())


def named_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return a network's modules by name; those that `torch.compile` has wrapped, by their original names.

    "input" is the network's own input: a module that is called so has the name `INPUT_MODULE`.
    """
    if not isinstance(model, nn.Module):
        expected = f"Expected a network, a torch.nn.Module, not {shown(model)}; idc_core.load_model opens files."
        raise ModelError(f"{expected}{said_foreign(model)}")
    names = (
        (".".join(part for part in name.split(".") if part != "_orig_mod"), module)
        for name, module in model.named_modules()
    )
    return {INPUT_MODULE if name == INPUT else name: module for name, module in names}


@contextmanager
def _as_written(modules: list[nn.Module]) -> Iterator[None]:
    """Let what `torch.compile` has wrapped run operation by operation, so that each is seen."""
    wrapped = [module for module in modules if "_orig_mod" in module._modules]
    compiled = [(module, call) for module in modules if (call := module._compiled_call_impl) is not None]
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
def _ordinary_weights(modules: list[nn.Module]) -> Iterator[None]:
    """Let copies stand for weights that were made under inference mode, through which no gradient passes."""
    kept: list[tuple[nn.Module, str, Tensor]] = []
    copies: dict[int, Tensor] = {}
    try:
        for module in modules:
            for name, value in (*module._parameters.items(), *module._buffers.items()):
                if value is None or not value.is_inference():
                    continue
                if id(value) not in copies:
                    copy = value.clone()
                    copies[id(value)] = nn.Parameter(copy, False) if isinstance(value, nn.Parameter) else copy
                kept.append((module, name, value))
                setattr(module, name, copies[id(value)])
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)


def _parameters(modules: list[nn.Module]) -> list[nn.Parameter]:
    """Return the parameters of modules, each once."""
    own = (value for module in modules for value in module._parameters.values() if value is not None)
    return list(dict.fromkeys(own))


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Hold the network's lock with the network in evaluation mode and its parameters frozen; restore both after."""
    with lock_of(model), torch.inference_mode(False), without_autocast(), exact(model), ExitStack() as stack:
        modules = list(model.modules())
        stack.enter_context(_as_written(modules))
        training = [module for module in modules if module.training]
        parameters = _parameters(modules)
        if any(map(Tensor.is_inference, parameters)):
            stack.enter_context(_ordinary_weights(modules))
            parameters = _parameters(modules)
        learning = [parameter for parameter in parameters if parameter.requires_grad]
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


class _LayerObserver(Protocol):
    """What hears of layers as they run."""

    where: list[str]

    def layer_ran(self, layer: str, module: nn.Module, output: object) -> object:
        """Hear of a layer's output; return what the network goes on with instead of it, or None."""


def _check_rule(settings: RelevanceSettings, modules: Iterable[str]) -> None:
    """Refuse a rule for a module that the network does not have."""
    known = [name for name in modules if name]
    missing = next((name for name in settings.modules if name not in known), None)
    if missing is not None:
        names = ", ".join(known)
        raise SettingError(
            f"The rule names {missing!r}, which is neither a kind of operation nor a module of the network: expected "
            f"conv, linear, norm, pool, sum, first, last, other, or one of {names}."
        )


def _own_name(layer: str) -> str:
    """Return what the network itself calls a module."""
    return INPUT if layer == INPUT_MODULE else layer


@contextmanager
def watching(model: nn.Module, layers: Sequence[str], watch: _LayerObserver, name_all: bool = False) -> Iterator[None]:
    """Let a `Watch`, or anything else that hears, hear of the layers through hooks that do not outlive the block."""
    modules = named_layers(model)
    if isinstance(watch, Watch) and watch.settings is not None:
        watch.notes.buffers = {id(buffer) for module in modules.values() for buffer in module._buffers.values()}
        if watch.settings.asks_where:
            _check_rule(watch.settings, map(_own_name, modules))
            name_all = True
    owner = threading.get_ident()
    unseen = watch.unseen if isinstance(watch, Watch) and watch.settings is not None else None

    def entering(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: object) -> None:
            if threading.get_ident() == owner:
                if unseen is not None:
                    unseen.passes(args, watch.where[-1] if watch.where else "")
                watch.where.append(_own_name(name))

        return hook

    def leaving(module: nn.Module, args: object, output: object) -> None:
        if threading.get_ident() == owner:
            place = watch.where.pop()
            if unseen is not None:
                unseen.left(output, place, bool(module._backward_hooks or module._backward_pre_hooks))

    def ran(layer: str) -> Callable[..., object]:
        def hook(module: nn.Module, args: object, output: object) -> object:
            if threading.get_ident() != owner:
                return None
            with torch._C.DisableTorchFunction():
                return watch.layer_ran(layer, module, output)

        return hook

    def calling(hear: Callable[[str], None], layer: str) -> Callable[..., None]:
        def hook(*_: object) -> None:
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
            elif layer != INPUT:
                hooks.enter_context(modules[holder].register_forward_hook(ran(layer)))
        yield


def layer_names(layers: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of layers, each once, of one name or several; SettingError where they are none."""
    names = [layers] if isinstance(layers, str) or not isinstance(layers, Iterable) else list(layers)
    for name in names:
        if not isinstance(name, str):
            raise SettingError(f"Expected names of layers, such as those of named_modules(), not {shown(name)}.")
    return tuple(dict.fromkeys(names))


def check_made(model: nn.Module) -> None:
    """Refuse a network with weights that have no shape yet."""
    for name, value in model.named_parameters():
        if isinstance(value, nn.UninitializedParameter):
            raise ModelError(
                f"The weight {name!r} has no shape yet, as of nn.LazyLinear before its first batch. Run the network on "
                "an input once, network(inputs[:2]), where it is built; then load its weights."
            )


def check_layers(model: nn.Module, layers: Sequence[str]) -> None:
    """Refuse layers the network does not have, and networks whose operations cannot be seen."""
    modules = named_layers(model)
    check_made(model)
    for layer in layers:
        if split_layer(layer)[0] not in modules and layer != INPUT:
            names = [*(name for name in modules if name), f"{INPUT!r}, the network's input"]
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
    with torch.set_grad_enabled(watch.settings is not None or watch.gradients):
        rows = len(inputs)
        inputs = filled(inputs, watch.traits.least if watch.traits else 1)
        main = watch.begin(main_of(inputs), rows)
        inputs = inputs.with_main(main) if isinstance(inputs, NamedInputs) else main
        try:
            with watch, functions_shown(watch.own_function) if watch.settings is not None else nullcontext():
                output = call(model, inputs)
        except (IdcError, torch.OutOfMemoryError):
            raise
        except BaseException as error:
            if not is_mistake(error):
                raise
            why = f"{said(error)}.{said_missing(error)}"
            raise ModelError(f"The network failed on {described(inputs)}: {why}") from error
        return watch.end(output)


def said_network(model: nn.Module) -> str:
    """Return a network by its name, or by its class where it has none."""
    name = getattr(getattr(model, "card", None), "name", "")
    return f"the network {name!r}" if name else f"the network of the class {type(model).__name__!r}"


def without_gradient(model: nn.Module, reason: str = "") -> UnsupportedOperationError:
    """Return the error for a network whose scores have no gradient to its input."""
    why = reason or "its forward cuts it off by torch.no_grad(), torch.inference_mode(), .detach() or a step function"
    return UnsupportedOperationError(
        f"The scores of {said_network(model)} have no gradient to its input ({why}), so that it can be neither "
        "attacked nor searched by gradients. Freeze weights by requires_grad_(False) instead, choose another network, "
        "or perturb its inputs by noise."
    )


@contextmanager
def with_gradient(model: nn.Module) -> Iterator[None]:
    """Say of what PyTorch refuses in a block that takes a gradient that the network has none, and why."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ModelError) as error:
        cause = error.__cause__ if isinstance(error, ModelError) else error
        if not isinstance(cause, RuntimeError):
            raise
        raise without_gradient(model, str(cause).splitlines()[0]) from error


def leads_to(result: Tensor, given: Tensor) -> bool:
    """Return whether a gradient of a result reaches what it was computed from, itself the result of an operation."""
    seen, waiting = set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            if node is given.grad_fn:
                return True
            seen.add(node)
            waiting += [before for before, _ in node.next_functions]
    return False


def check_gradient(model: nn.Module, example: Tensor, run: Callable[[Tensor], Tensor]) -> None:
    """Refuse a network whose scores, which `run` gives of an example, have no gradient to the input."""
    given = example.detach().clone().requires_grad_()
    with with_gradient(model), torch.enable_grad():
        scores = run(given)
        gradients = torch.autograd.grad(scores.sum(), given, allow_unused=True) if scores.requires_grad else (None,)
    if gradients[0] is None:
        raise without_gradient(model)
