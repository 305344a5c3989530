"""What a value was computed from without any learned weights in between.

The factor of a normalisation written by hand (``x * rsqrt(mean(x ** 2))``) and an activation function written by hand
(``x * sigmoid(x)``) are both products of two quantities that depend on the input. They are told from a product of two
activations, such as attention or a gate, by their origin: both factors come from the same value, by element-wise
functions alone, or one of them by a reduction as well.
"""

from enum import IntEnum

from torch import Tensor


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
REDUCTIONS = frozenset(_REDUCTIONS.split())


def note(result: Tensor, sources: list[Tensor], way: Way) -> None:
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
