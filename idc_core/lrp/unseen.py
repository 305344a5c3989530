"""Operations that PyTorch does not show to a mode: what they are called, and the module that they are in."""

from torch import Tensor
from torch._C import DisableTorchFunction

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.calls import any_tracked, tensors_of

_UNSEEN = "an operation that PyTorch does not show (custom or compiled)"

_HOOK = "BackwardHookFunction"
"""What PyTorch puts around a module whose backward hooks are full ones."""


class Unseen:
    """Finds operations that are not shown, by what passes the borders of modules while the first input runs."""

    def __init__(self) -> None:
        self._passed: list[tuple[object, str]] = []

    def passes(self, values: object, place: str) -> None:
        """Hear of values at a border of a module; where their operation is not shown it is in the module `place`."""
        self._passed.append((values, place))

    def left(self, values: object, place: str, hooked: bool) -> None:
        """Hear of what a module gave; if it is `hooked`, its backward hooks would take relevance for gradients."""
        if hooked:
            with DisableTorchFunction():
                if any_tracked((values,), {}):
                    raise _hook(place)
        self.passes(values, place)

    def _origin(self, tensor: Tensor) -> str | None:
        """Return the module that gave a tensor, or was given it."""
        places = (
            place for values, place in self._passed if any(value is tensor for value in tensors_of((values,), {}))
        )
        return next(places, None)

    def refusal(self, tensor: Tensor, place: str, last: bool = False) -> UnsupportedOperationError:
        """Return the error for a tensor that is used in `place` and was made by an operation that is not shown."""
        known = "" if tensor.grad_fn is None else tensor.grad_fn.name().removesuffix("Backward")
        origin = self._origin(tensor)
        made = place if origin is None else origin
        if known == _HOOK:
            return _hook(made)
        what = f"{known}, {_UNSEEN}" if known else _UNSEEN
        return cannot_pass(f"{what}, the network's last operation" if last else what, made)


def _hook(place: str) -> UnsupportedOperationError:
    where = f"module {place!r}" if place else "the network itself"
    return UnsupportedOperationError(
        f"Relevance cannot be propagated through the backward hook on {where} (register_full_backward_hook, as for "
        "Grad-CAM). Remove the hook: call remove() on what registering it returned."
    )


def cannot_pass(reason: str, place: str) -> UnsupportedOperationError:
    """Return the error for what relevance cannot be propagated through, in a module."""
    where = in_module(place)
    advice = "Choose a layer behind it, if there is one, or replace the operation."
    return UnsupportedOperationError(f"Relevance cannot be propagated through {reason}{where}. {advice}")


def in_module(place: str) -> str:
    """Say where something is; "" where that is the network itself, or is not known."""
    return f" in module {place!r}" if place else ""
