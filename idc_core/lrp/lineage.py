"""What a value was computed from without any learned weights in between, and whether weights came before it.

The factor of a normalisation written by hand (``x * rsqrt(mean(x ** 2))``) and an activation function written by hand
(``x * sigmoid(x)``) are both products of two quantities that depend on the input. They are told from a product of two
activations, such as attention or a gate, by their origin: both factors come from the same value, by element-wise
functions alone, or one of them by a reduction as well.
"""

from enum import IntEnum

from torch import Tensor

from idc_core.lrp.calls import Args, Kwargs, tensors_of
from idc_core.lrp.channel_maps import LINEAR
from idc_core.lrp.operations import ACTIVATIONS, FUNCTIONS, STRUCTURAL


class Way(IntEnum):
    """How a value was computed from its origin; of several steps the last one here counts."""

    ELEMENTWISE = 0  # each number from the number at its own place
    MOVED = 1  # the same numbers at other places, or fewer of them
    REDUCED = 2  # sums, means, norms over some axes


_ELEMENTWISE = """
add __add__ __radd__ __iadd__ sub subtract __sub__ __isub__ rsub __rsub__ neg negative __neg__ mul multiply __mul__
__rmul__ __imul__ div divide true_divide __truediv__ __itruediv__ __rtruediv__ to type type_as float double half
bfloat16 contiguous clone positive pow __pow__ __ipow__ __rpow__ addcmul addcdiv lerp dropout
"""
ELEMENTWISE_STEPS = frozenset(_ELEMENTWISE.split())
"""Operations without weights that work element by element, beside the functions of one argument."""

_REDUCTIONS = "mean sum var std var_mean std_mean norm vector_norm amax amin max min logsumexp nanmean"

_WAYS = (
    dict.fromkeys(STRUCTURAL, Way.MOVED)
    | dict.fromkeys((*ELEMENTWISE_STEPS, *ACTIVATIONS, *FUNCTIONS), Way.ELEMENTWISE)
    | dict.fromkeys(_REDUCTIONS.split(), Way.REDUCED)
)
"""How the result of an operation is computed from its sources, where it is without weights."""


def note(name: str, given: list[Tensor], result: object) -> None:
    """Note what the result of an operation on these tensors was computed from without weights in between."""
    if name in _WAYS:
        sources = [tensor for tensor in given if tensor.requires_grad]
        for tensor in tensors_of((result,), {}):
            _note(tensor, sources, _WAYS[name])


def _note(result: Tensor, sources: list[Tensor], way: Way) -> None:
    """Note from which of these a value was computed; several sources count where they have an origin in common."""
    if not sources or any(source is result for source in sources):
        return
    origin, rest = sources[0], sources[1:]
    for other in rest:
        common = common_origin(origin, other)
        if common is None:
            return
        origin, way = common[0], Way(max(way, common[1], common[2]))
    if way is Way.ELEMENTWISE and result.shape != origin.shape:
        way = Way.MOVED
    if origin is not result:
        result._idc_origin = (origin, way)  # type: ignore[attr-defined]


def common_origin(one: Tensor, other: Tensor) -> tuple[Tensor, Way, Way] | None:
    """Return the nearest value that both were computed from, and how each was; None where there is none."""
    ways = {id(origin): way for origin, way in _origins(one)}
    for origin, way in _origins(other):
        if id(origin) in ways:
            return origin, ways[id(origin)], way
    return None


def _origins(value: Tensor) -> list[tuple[Tensor, Way]]:
    """Return a value and everything it was computed from, nearest first."""
    origins, way = [(value, Way.ELEMENTWISE)], Way.ELEMENTWISE
    while (step := getattr(value, "_idc_origin", None)) is not None:
        value, way = step[0], Way(max(way, step[1]))
        origins.append((value, way))
    return origins


_WEIGHING = LINEAR | {"bilinear", "bmm", "einsum", "tensordot", "inner", "multi_head_attention_forward", "lstm", "gru"}


def is_first(args: Args, kwargs: Kwargs) -> bool:
    """Return whether none of the arguments was computed by a dense operation or a convolution."""
    return not any(getattr(x, "_idc_deep", False) for x in tensors_of(args, kwargs))


def note_depth(name: str, args: Args, kwargs: Kwargs, result: object) -> None:
    """Note of a result whether a dense operation or a convolution was on the way to it."""
    if name in _WEIGHING or not is_first(args, kwargs):
        for tensor in tensors_of((result,), {}):
            tensor._idc_deep = getattr(tensor, "_idc_constant", None) is None  # type: ignore[attr-defined]
