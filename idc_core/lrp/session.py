"""The one way to run a network that belongs to somebody: under its lock, and left as it was found."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from idc_core.errors import IdcError, ModelError, UnsupportedOperationError
from idc_core.lrp.interception import INPUT, Watch

_LOCKS: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_LOCKS_GUARD = threading.Lock()


def lock_of(model: nn.Module) -> threading.RLock:
    """Return the lock of a network; every pass of the engine holds it."""
    with _LOCKS_GUARD:
        return _LOCKS.setdefault(model, threading.RLock())


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Hold the network's lock with the network in evaluation mode and its parameters frozen; restore both after."""
    with lock_of(model), torch.inference_mode(False):
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


@contextmanager
def watching(model: nn.Module, layers: Sequence[str], watch: LayerObserver, name_all: bool = False) -> Iterator[None]:
    """Let a `Watch`, or anything else that hears, hear of the layers through hooks that do not outlive the block."""
    modules = dict(model.named_modules())
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

    with ExitStack() as hooks:
        if name_all:
            for name, module in modules.items():
                hooks.enter_context(module.register_forward_pre_hook(entering(name)))
                hooks.enter_context(module.register_forward_hook(leaving))
        for layer in layers:
            if layer != INPUT or INPUT in modules:
                hooks.enter_context(modules[layer].register_forward_hook(ran(layer)))
        yield


def check_layers(model: nn.Module, layers: Sequence[str]) -> None:
    """Refuse layers the network does not have, and networks whose operations cannot be seen."""
    modules = dict(model.named_modules())
    for layer in layers:
        if layer not in modules and layer != INPUT:
            names = [*(name for name in modules if name), repr(INPUT)]
            raise ModelError(f"The network has no layer {layer!r}: expected one of {', '.join(names)}.")
    for name, module in modules.items():
        if isinstance(module, torch.jit.ScriptModule):
            raise UnsupportedOperationError(
                f"Module {name or type(module).__name__!r} is TorchScript, whose operations cannot be seen. "
                "Load the network as an ordinary torch.nn.Module."
            )


def run_watched(model: nn.Module, inputs: Tensor, watch: Watch) -> Tensor:
    """Run one batch (n, ...) under a watch and return the scores before the final softmax, (n, classes)."""
    with torch.set_grad_enabled(watch.settings is not None):
        inputs = watch.begin(inputs)
        try:
            with watch:
                output = model(inputs)
        except IdcError:
            raise
        except Exception as error:
            kind = str(inputs.dtype).removeprefix("torch.")
            raise ModelError(
                f"The network failed on inputs of shape {tuple(inputs.shape)} and type {kind}: "
                f"{type(error).__name__}: {error}"
            ) from error
        return watch.end(output)
