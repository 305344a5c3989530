"""Resizing by interpolation, axis by axis: a linear operation, so that relevance passes as through a dense one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from idc_core.models.onnx.registry import Function, Node, integers, operator, room

_ROUNDINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
    "round_prefer_floor": lambda x: (x - 0.5).ceil(),
    "round_prefer_ceil": lambda x: (x + 0.5).floor(),
}


@dataclass(frozen=True)
class _Settings:
    """The attributes of a Resize node."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    outside: float = 0.0

    def places(self, out: int, size: int, scale: float, region: tuple[float, float]) -> Tensor:
        """Return where each of `out` values lies among `size` values."""
        i = torch.arange(out, dtype=torch.float64)
        if self.coordinates == "asymmetric":
            return i / scale
        if self.coordinates == "align_corners":
            return i * (size - 1) / (scale * size - 1) if out > 1 else i * 0
        if self.coordinates == "tf_crop_and_resize":
            begin, end = region
            if out == 1:
                return i + 0.5 * (begin + end) * (size - 1)
            return begin * (size - 1) + i * (end - begin) * (size - 1) / (out - 1)
        if self.coordinates == "tf_half_pixel_for_nn":
            return (i + 0.5) / scale
        if self.coordinates == "pytorch_half_pixel" and out == 1:
            return i - 0.5
        shift = size / 2 * (1 - out / (scale * size)) if self.coordinates == "half_pixel_symmetric" else 0.0
        return shift + (i + 0.5) / scale - 0.5

    def nearest(self, places: Tensor, size: int) -> Tensor:
        """Return the nearest value of each place."""
        return _ROUNDINGS[self.rounding](places).long().clamp(0, size - 1)

    def weights(self, places: Tensor, size: int, scale: float) -> Tensor:
        """Return how much each of `size` values adds to each place, (places, size)."""
        shrink = min(scale, 1.0) if self.antialias else 1.0
        first = math.floor(-(1 if self.mode == "linear" else 2) / shrink) + 1
        base = places.floor()
        taps = torch.arange(first, 2 - first, dtype=torch.float64)
        share = self._kernel((taps - (places - base)[:, None]) * shrink)
        index = base[:, None] + taps
        if self.exclude_outside:
            share = share * ((index >= 0) & (index < size))
        share = share / share.sum(1, keepdim=True)
        room([len(places), size])
        matrix = torch.zeros(len(places), size, dtype=torch.float64)
        return matrix.scatter_add_(1, index.long().clamp(0, size - 1), share)

    def _kernel(self, t: Tensor) -> Tensor:
        """Return the weight of a value at a distance: a triangle, or Keys' cubic."""
        t = t.abs()
        if self.mode == "linear":
            return (1 - t).clamp(min=0)
        a = self.cubic
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return torch.where(t <= 1, near, torch.where(t < 2, far, torch.zeros_like(t)))


@operator("Resize", "Upsample")
def _resize(node: Node) -> Function:
    settings = _read(node)
    written, axes, policy = node.get("scales"), node.get("axes"), node.get("keep_aspect_ratio_policy", "stretch")
    if settings.mode not in ("nearest", "linear", "cubic"):
        raise node.refuse(f"the mode {settings.mode!r}")

    def run(x: Tensor, *given: Tensor | None) -> Tensor:
        if node.operator == "Upsample" or node.opset < 11:
            region, scales, sizes = None, given[0] if given else None, None
        else:
            region, scales, sizes = [*given, None, None, None][:3]
        chosen = list(range(x.dim())) if axes is None else [axis % x.dim() for axis in axes]
        factors = written if scales is None or not scales.numel() else scales.tolist()
        lengths = None if sizes is None or not sizes.numel() else integers(sizes)
        plan = _plan([x.shape[axis] for axis in chosen], factors, lengths, policy)
        if node.batch is not None and chosen[0] == 0:
            plan[0] = (x.shape[0], 1.0)
        corners = [0.0, 1.0] * len(chosen) if region is None or not region.numel() else None
        ends = corners or [v for pair in zip(*region.reshape(2, -1).tolist(), strict=True) for v in pair]  # type: ignore[union-attr]
        room([*(out for out, _ in plan)])
        for axis, (out, scale), begin, end in zip(chosen, plan, ends[::2], ends[1::2], strict=True):
            x = _along(settings, x, axis, out, scale, (begin, end))
        return x

    return run


def _read(node: Node) -> _Settings:
    if node.operator == "Upsample" or node.opset < 11:
        return _Settings(node.get("mode", "nearest"), "asymmetric", "floor")
    return _Settings(
        node.get("mode", "nearest"),
        node.get("coordinate_transformation_mode", "half_pixel"),
        node.get("nearest_mode", "round_prefer_floor"),
        node.get("cubic_coeff_a", -0.75),
        bool(node.get("exclude_outside", 0)),
        bool(node.get("antialias", 0)),
        node.get("extrapolation_value", 0.0),
    )


def _plan(
    shape: Sequence[int], factors: Sequence[float], wanted: list[int] | None, policy: str
) -> list[tuple[int, float]]:
    """Return the new size and the scale of each axis."""
    if wanted is None:
        return [(math.floor(size * factor), factor) for size, factor in zip(shape, factors, strict=True)]
    ratios = [want / size for want, size in zip(wanted, shape, strict=True)]
    if policy == "stretch":
        return list(zip(wanted, ratios, strict=True))
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [(math.floor(ratio * size + 0.5), ratio) for size in shape]


def _along(settings: _Settings, x: Tensor, axis: int, out: int, scale: float, region: tuple[float, float]) -> Tensor:
    """Resize one axis."""
    size = x.shape[axis]
    cropped = settings.coordinates == "tf_crop_and_resize" and region != (0.0, 1.0)
    if out == size and scale == 1 and not cropped:
        return x
    places = settings.places(out, size, scale, region)
    if settings.mode == "nearest":
        z = x.index_select(axis, settings.nearest(places, size).to(x.device))
    else:
        matrix = settings.weights(places, size, scale).to(x.device, x.dtype)
        z = torch.matmul(x.movedim(axis, -1), matrix.T).movedim(-1, axis)
    beyond = (places < 0) | (places > size - 1)
    if settings.coordinates == "tf_crop_and_resize" and bool(beyond.any()):
        shape = [out if dimension == axis else 1 for dimension in range(x.dim())]
        z = z.masked_fill(beyond.reshape(shape).to(x.device), settings.outside)
    return z
