"""Maps that scale and shift channels by numbers that no input changes, and where linear operations have channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from idc_core.lrp.calls import Args, Kwargs
from idc_core.lrp.captures import in_full

_NORMALISATION = ["input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"]

PRODUCTS = frozenset(("matmul", "__matmul__", "mm"))
LINEAR = frozenset(("linear", "addmm", *PRODUCTS, *(f"conv{'_transpose' * t}{d}d" for t in (0, 1) for d in (1, 2, 3))))
"""Operations that maps are folded into."""

IsConstant = Callable[[object], bool]
"""Whether an argument of an operation is known to be the same for every input."""


@dataclass(frozen=True)
class Layout:
    """Where the channels of a linear operation are."""

    axis: int  # of inputs and outputs, counted from the end
    transposed: bool = (
        False  # whether the weight is (inputs, outputs of a group, ...), not (outputs, inputs of a group)
    )
    groups: int = 1
    padded: bool = False  # whether some outputs see places that are no input, so that a shift before is no bias

    def by_outputs(self, weight: Tensor, factor: Tensor) -> Tensor:
        """Return the weight with every output channel scaled, by a factor each."""
        return (self._grouped(weight) * self._shaped(weight, factor, 2 if self.transposed else 1)).flatten(0, 1)

    def by_inputs(self, weight: Tensor, factor: Tensor) -> Tensor:
        """Return the weight with every input channel scaled."""
        return (self._grouped(weight) * self._shaped(weight, factor, 1 if self.transposed else 2)).flatten(0, 1)

    def carried(self, weight: Tensor, shift: Tensor) -> Tensor:
        """Return what a shift of the input channels adds to every output channel."""
        outputs = 2 if self.transposed else 1
        parts = self._grouped(self.by_inputs(weight, shift))
        return parts.sum([axis for axis in range(1, parts.dim()) if axis != outputs]).reshape(-1)

    def across(self, values: Tensor) -> Tensor:
        """Return one value per channel in a shape that broadcasts against inputs and outputs."""
        return values.reshape([*values.shape, *[1] * (-self.axis - 1)])

    def per_channel(self, values: Tensor | None, like: Tensor) -> Tensor | None:
        """Return values that broadcast against a tensor as one per channel; None where they differ along other axes."""
        if values is None or values.dim() > like.dim():
            return None
        if any(size > 1 for axis, size in enumerate(values.shape) if axis - values.dim() != self.axis):
            return None
        return values.reshape(-1).expand(like.shape[self.axis])

    def _grouped(self, weight: Tensor) -> Tensor:
        grouped: Tensor = weight.unflatten(0, (self.groups, -1))
        return grouped

    def _shaped(self, weight: Tensor, values: Tensor, axis: int) -> Tensor:
        shape = [self.groups, *[1] * weight.dim()]
        shape[axis] = -1
        return values.reshape(shape)


@dataclass(frozen=True)
class Map:
    """What a map does: ``scale * x + shift``, both in shapes that broadcast against x; no shift where it has none."""

    scale: Tensor
    shift: Tensor | None = None

    def then(self, other: Map) -> Map:
        """Return this map with another one behind it."""
        moved = None if self.shift is None else self.shift * other.scale
        shifts = [shift for shift in (moved, other.shift) if shift is not None]
        return Map(self.scale * other.scale, sum(shifts[1:], shifts[0]) if shifts else None)

    def fits(self, layout: Layout, like: Tensor, before: bool) -> bool:
        """Return whether an operation of this layout takes the map in, behind it or before it."""
        if self.shift is not None and ((before and layout.padded) or layout.per_channel(self.shift, like) is None):
            return False
        return layout.per_channel(self.scale, like) is not None


_Found = tuple[Tensor, Map] | None
"""A value and the map of it that an operation is; None where it is none."""


def _normalisation(args: Args, kwargs: Kwargs, is_constant: IsConstant) -> _Found:
    given = dict(zip(_NORMALISATION, args, strict=False)) | kwargs
    x, mean, variance = given["input"], given.get("running_mean"), given.get("running_var")
    if given.get("training", False) or mean is None or variance is None:
        return None
    weight, bias = given.get("weight"), given.get("bias")
    scale = torch.rsqrt(in_full(variance) + given.get("eps", 1e-5))
    scale = scale if weight is None else scale * weight
    shift = (0.0 if bias is None else bias) - mean * scale
    shape = (-1, *[1] * (x.dim() - 2))
    return x, Map(scale.reshape(shape), shift.reshape(shape))


def _of_instances(args: Args, kwargs: Kwargs, is_constant: IsConstant) -> _Found:
    kwargs = {"training" if key == "use_input_stats" else key: value for key, value in kwargs.items()}
    return _normalisation(args, ({} if len(args) > 5 else {"training": True}) | kwargs, is_constant)


def _one_constant(args: Args, kwargs: Kwargs, is_constant: IsConstant) -> tuple[Tensor, Tensor, bool] | None:
    """Return the value and the constant among two arguments; None where there are not one of each.

    Whole numbers are no value: they would take the constant in as a whole number, too.
    """
    first, other = (*args, *(kwargs[key] for key in ("input", "other") if key in kwargs))[:2]
    if isinstance(first, Tensor) and first.is_floating_point() and not is_constant(first) and is_constant(other):
        return first, torch.as_tensor(other, dtype=first.dtype, device=first.device), False
    if isinstance(other, Tensor) and other.is_floating_point() and not is_constant(other) and is_constant(first):
        return other, torch.as_tensor(first, dtype=other.dtype, device=other.device), True
    return None


def _scaling(args: Args, kwargs: Kwargs, is_constant: IsConstant) -> _Found:
    parts = _one_constant(args, kwargs, is_constant)
    return None if parts is None else (parts[0], Map(parts[1]))


def _division(args: Args, kwargs: Kwargs, is_constant: IsConstant) -> _Found:
    parts = _one_constant(args, kwargs, is_constant)
    return None if parts is None or parts[2] or kwargs.get("rounding_mode") else (parts[0], Map(1 / parts[1]))


def _shifting(sign: float) -> Callable[..., _Found]:
    def shift(args: Args, kwargs: Kwargs, is_constant: IsConstant) -> _Found:
        parts = _one_constant(args, kwargs, is_constant)
        if parts is None or (sign < 0 and parts[2]):
            return None
        x, constant, turned = parts
        alpha = kwargs.get("alpha", 1)
        scale = torch.full((), float(alpha) if turned else 1.0, dtype=x.dtype, device=x.device)
        return x, Map(scale, constant if turned else constant * (sign * alpha))

    return shift


MAPS: dict[str, Callable[..., _Found]] = {
    "batch_norm": _normalisation,
    "instance_norm": _of_instances,
    **dict.fromkeys(("mul", "multiply", "__mul__", "__rmul__", "__imul__"), _scaling),
    **dict.fromkeys(("div", "divide", "true_divide", "__truediv__", "__itruediv__"), _division),
    **dict.fromkeys(("add", "__add__", "__radd__", "__iadd__"), _shifting(1.0)),
    **dict.fromkeys(("sub", "subtract", "__sub__", "__isub__"), _shifting(-1.0)),
}
"""Operation name -> what of it is a map: the value, and what is done to it; None where it is none."""
