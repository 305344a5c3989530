"""Where in a network an operation is: whether dense operations or convolutions are before it, and behind it."""

from collections.abc import Callable

from torch import Tensor

from idc_core.lrp.affine import Affine, Place, Rule
from idc_core.lrp.calls import Args, Kwargs, tensors_of
from idc_core.lrp.channel_maps import LINEAR

_WEIGHING = LINEAR | {"bilinear", "bmm", "einsum", "tensordot", "inner", "multi_head_attention_forward", "lstm", "gru"}


class ChosenLater:
    """A rule that is chosen on the way back, when it is known what is behind the operation."""

    def __init__(self, place: Place, choose: Callable[[Place], Rule]) -> None:
        self.place, self._choose = place, choose

    def __call__(self, affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        """Share the relevance by the rule for the place."""
        return self._choose(self.place)(affine, inputs, z, relevance)


def is_first(args: Args, kwargs: Kwargs) -> bool:
    """Return whether none of the arguments was computed by a dense operation or a convolution."""
    return not any(getattr(x, "_idc_deep", False) for x in tensors_of(args, kwargs))


def note_depth(name: str, args: Args, kwargs: Kwargs, result: object) -> None:
    """Note of a result whether a dense operation or a convolution was on the way to it."""
    if name in _WEIGHING or not is_first(args, kwargs):
        for tensor in tensors_of((result,), {}):
            tensor._idc_deep = getattr(tensor, "_idc_constant", None) is None  # type: ignore[attr-defined]


def mark_last(scores: Tensor) -> None:
    """Tell the places from which nothing but other operations leads to the scores that they are the last."""
    waiting, seen = [scores.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        place = getattr(getattr(node, "rule", None), "place", None)
        if place in ("dense", "convolution"):
            place.last = True
        else:
            waiting.extend(before for before, _ in node.next_functions)
