"""What is captured while a network runs, and the mark by which a value is known that relevance can be followed from."""

import sys
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor, bfloat16, float16, strided

from idc_core.lrp.calls import Args, is_transformed, tensors_of

_Result = TypeVar("_Result")

INPUT = "input"
"""The name under which the network's own input is watched, beside the names of its modules."""

INPUT_MODULE = "input@module"
"""The name of a module that the network itself calls "input"."""

HALF = frozenset((float16, bfloat16))
"""Types of too few digits for sums; what is watched goes on in single precision."""


@dataclass(eq=False)
class Capture:
    """What one use of a watched layer gave; `swapped` where the layer puts positions before inputs.

    `inputs` of the `rows` of its batch are inputs; the others only fill the batch.
    """

    layer: str
    value: Tensor
    swapped: bool = False
    version: int = 0
    inputs: int = 1
    rows: int = 1

    def rows_first(self, value: Tensor) -> Tensor:
        """Return a value of this capture's shape with one row per input."""
        value = value.transpose(0, 1) if self.swapped else value
        return value if self.inputs == self.rows else value[: len(value) * self.inputs // self.rows]


@dataclass(frozen=True)
class CaptureTraits:
    """What a first pass has found out about how a network treats what is captured."""

    overwrites: bool = False  # it writes into its input or into a captured output, so that they must be copied
    forks: frozenset[str] = frozenset()
    """Layers whose output it uses before their activation function as well; theirs is captured before it."""
    shifts: bool = False  # a linear operation takes in a shift beside it
    maps: bool = True  # a captured value may be that of a map, which an operation behind it takes in
    swapped: frozenset[str] = frozenset()
    """Layers that put positions before inputs, (time, n, ...)."""
    least: int = 1
    """Rows that a batch needs, filled up by copies of its last input; where more than 2, it takes no more either."""
    searching: bool = False  # forks are still to be found

    @property
    def most(self) -> int:
        """How many inputs a batch may have."""
        return self.least if self.least > 2 else sys.maxsize


def in_full(tensor: Tensor) -> Tensor:
    """Return a tensor of half precision in single precision, any other as it is."""
    return tensor.float() if tensor.dtype in HALF else tensor


def mark(result: _Result) -> _Result:
    """Mark what a known operation gave, so that the result of an unseen one is noticed."""
    for tensor in (result,) if isinstance(result, Tensor) else tensors_of((result,), {}):
        if tensor.requires_grad:
            tensor._idc_followed = (tensor.grad_fn,)  # type: ignore[attr-defined]
    return result


def followed(tensor: Tensor) -> bool:
    """Return whether a known operation gave this tensor; a custom function around it has its own gradient."""
    return getattr(tensor, "_idc_followed", None) == (tensor.grad_fn,)


def is_constant(tensor: Tensor) -> bool:
    """Return whether a tensor has a gradient of its own, and was computed from nothing that is followed.

    The network made it, in this pass or before, as it does with what it keeps between passes.
    """
    if not tensor.requires_grad or followed(tensor):
        return False
    seen, waiting = set(), [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, Tensor) and followed(leaf):
            return False
        waiting += [before for before, _ in node.next_functions]
    return True


def _is_view(result: Tensor, args: Args) -> bool:
    """Return whether a result lies in the memory of what it was computed from."""
    place = place_of(result)
    return place is not None and any(place == place_of(given) for given in tensors_of(args, {}))


def place_of(tensor: Tensor) -> int | None:
    """Return where in memory the numbers of a tensor begin; None of a sparse one, or in torch.vmap or torch.func."""
    return None if tensor.layout is not strided or is_transformed(tensor) else tensor.untyped_storage().data_ptr()


_WEIGHING = frozenset(("linear", "conv1d", "conv2d", "conv3d"))
"""Operations whose second argument is a weight with one row per output channel."""


@dataclass(eq=False)
class Counts:
    """How much a network computes, from which memory and the size of batches follow."""

    elements: int = 0  # numbers that the network computed
    recorded: int = 0  # those among them that are held for the way back, in memory of their own
    largest: int = 0  # those of one operation
    weights: int = 0  # weights of dense layers and convolutions
    products: int = 0  # what these were multiplied by
    counting: bool = True  # whether anything is counted; batches behind the first are not

    def add(self, name: str, args: Args, result: object) -> None:
        """Count an operation and its result."""
        if self.counting and isinstance(result, Tensor):
            numbers = result.numel()
            self.elements += numbers
            self.recorded += numbers * (result.requires_grad and not _is_view(result, args))
            self.largest = max(self.largest, numbers)
            if name in _WEIGHING and len(args) > 1:
                size = args[1].numel()
                self.weights += size
                self.products += numbers * size // len(args[1])
