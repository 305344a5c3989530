"""What is captured while a network runs, and the mark by which a value is known that relevance can be followed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, bfloat16, cat, float16

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.calls import tensors_of

INPUT = "input"
"""The name under which the network's own input is watched, beside the names of its modules."""

HALF = frozenset((float16, bfloat16))
"""Types of too few digits for sums; what is watched goes on in single precision."""

UNSEEN = "an operation that PyTorch does not show (custom or compiled)"


@dataclass(eq=False)
class Capture:
    """What one use of a watched layer gave; `swapped` where the layer puts positions before inputs."""

    layer: str
    value: Tensor
    swapped: bool = False
    version: int = 0

    def rows_first(self, value: Tensor) -> Tensor:
        """Return a value of this capture's shape with one row per input."""
        return value.transpose(0, 1) if self.swapped else value


@dataclass(frozen=True)
class CaptureTraits:
    """What a first pass has found out about how a network treats what is captured."""

    overwrites: bool = False  # it writes into its input or into a captured output, so that they must be copied
    forks: frozenset[str] = frozenset()
    """Layers whose output it uses before their activation function as well; theirs is captured before it."""


def in_full(tensor: Tensor) -> Tensor:
    """Return a tensor of half precision in single precision, any other as it is."""
    return tensor.float() if tensor.dtype in HALF else tensor


def unseen(tensor: Tensor) -> str:
    """Describe the operation that gave a tensor unseen, by the name its gradient goes by."""
    known = "" if tensor.grad_fn is None else tensor.grad_fn.name().removesuffix("Backward")
    return f"{known}, {UNSEEN}" if known else UNSEEN


def mark(result: Any) -> Any:
    """Mark what a known operation gave, so that the result of an unseen one is noticed."""
    for tensor in tensors_of((result,), {}):
        if tensor.requires_grad:
            tensor._idc_followed = (tensor.grad_fn,)  # type: ignore[attr-defined]
    return result


def followed(tensor: Tensor) -> bool:
    """Return whether a known operation gave this tensor; a custom function around it has its own gradient."""
    return getattr(tensor, "_idc_followed", None) == (tensor.grad_fn,)


def values_of(captures: Sequence[Capture], layer: str) -> Tensor:
    """Return the values of all uses of a watched layer, (n, numbers)."""
    uses = [capture.rows_first(capture.value) for capture in captures if capture.layer == layer]
    if not uses:
        raise UnsupportedOperationError(f"Layer {layer!r} did not run on these inputs; choose one that does.")
    for value in uses:
        if value.requires_grad and not followed(value):
            raise UnsupportedOperationError(
                f"Relevance cannot be propagated through {unseen(value)}, which layer {layer!r} ends with. Choose "
                "another layer, or replace the operation."
            )
    values: Tensor = mark(cat([value.flatten(1) for value in uses], 1))
    return values
