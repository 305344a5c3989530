"""Resizing by interpolation, axis by axis: a linear operation, so that relevance passes as through a dense one.

Sizes and places are computed as onnxruntime does, in single precision step by step: there, `align_corners` goes by the
size that came out and not by the scale (docs/ONNX.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.models.onnx.registry import Function, Node, integers, operator, room

_TIE = 1e-6
"""How far from the middle of two values a place still counts as the middle."""

_ROUNDINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
    "round_prefer_floor": lambda x: (x - 0.5 - _TIE).ceil(),
    "round_prefer_ceil": lambda x: (x + 0.5 + _TIE).floor(),
}

_SINGLE = np.float32
_Singles = NDArray[np.float32]


@dataclass(frozen=True)
class _Settings:
    """The attributes of a Resize node."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"  # "": up where the array gets smaller, else down
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    outside: float = 0.0

    def places(self, out: int, size: int, scale: float, region: tuple[float, float]) -> Tensor:
        """Return where each of `out` values lies among `size` values, in single precision."""
        return torch.from_numpy(self._places(np.arange(out, dtype=_SINGLE), size, _SINGLE(scale), region))

    def _places(self, i: _Singles, size: int, scale: np.float32, region: tuple[float, float]) -> _Singles:
        if scale == 1:
            return i
        if self.coordinates == "asymmetric":
            return i / scale
        if self.coordinates == "align_corners":
            return i * _SINGLE(size - 1) / _SINGLE(max(len(i) - 1, 1))
        if self.coordinates == "tf_crop_and_resize":
            begin, end = map(_SINGLE, region)
            if len(i) == 1:
                return i + (begin + end) * _SINGLE((size - 1) / 2)
            return begin * _SINGLE(size - 1) + i * (end - begin) * _SINGLE(size - 1) / _SINGLE(len(i) - 1)
        if self.coordinates == "tf_half_pixel_for_nn":
            return (i + _SINGLE(0.5)) / scale
        if self.coordinates == "pytorch_half_pixel" and len(i) == 1:
            return i
        if self.coordinates == "half_pixel_symmetric":
            shift = _SINGLE(size / 2) * (1 - _SINGLE(len(i)) / (scale * _SINGLE(size)))
            return (shift + (i.astype(np.float64) + 0.5) / scale - 0.5).astype(_SINGLE)
        return (i + _SINGLE(0.5)) / scale - _SINGLE(0.5)

    def nearest(self, places: Tensor, size: int, scale: float) -> Tensor:
        """Return the nearest value of each place."""
        rounding = self.rounding or ("ceil" if scale < 1 else "floor")  # as onnxruntime does before opset 11
        return _ROUNDINGS[rounding](places.double()).long().clamp(0, size - 1)

    def weights(self, places: Tensor, size: int, scale: float) -> Tensor:
        """Return how much each of `size` values adds to each place, (places, size)."""
        shrink = min(scale, 1.0) if self.antialias else 1.0
        first = math.floor(-(1 if self.mode == "linear" else 2) / shrink) + 1
        places = places.double()
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
    written, axes, policy = (
        node.get("scales"),
        node.get("axes") or None,
        node.get("keep_aspect_ratio_policy", "stretch"),
    )
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
        if all(out == x.shape[axis] for axis, (out, _) in zip(chosen, plan, strict=True)):
            return x
        z = x
        for axis, (out, scale), begin, end in zip(chosen, plan, ends[::2], ends[1::2], strict=True):
            z = _along(settings, z, axis, out, scale, (begin, end))
        return z.to(x.dtype)

    return run


def _read(node: Node) -> _Settings:
    if node.operator == "Upsample" or node.opset < 11:
        return _Settings(node.get("mode", "nearest"), "asymmetric", "")
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
    sides = np.array(shape, _SINGLE)
    if wanted is None:
        scales = np.array(factors, _SINGLE)
        return [(int(size), float(scale)) for size, scale in zip(scales * sides, scales, strict=True)]
    ratios = np.array(wanted, _SINGLE) / sides
    if policy == "stretch":
        return list(zip(wanted, ratios.tolist(), strict=True))
    ratio = ratios.min() if policy == "not_larger" else ratios.max()
    return [(math.floor(float(side) + 0.5), float(ratio)) for side in ratio * sides]


def _along(settings: _Settings, x: Tensor, axis: int, out: int, scale: float, region: tuple[float, float]) -> Tensor:
    """Resize one axis."""
    size = x.shape[axis]
    if scale == 1:
        return x
    places = settings.places(out, size, scale, region)
    if settings.antialias and out == size:
        z = x
    elif settings.mode == "nearest":
        z = x.index_select(axis, settings.nearest(places, size, scale).to(x.device))
    else:
        whole = x if x.is_floating_point() else x.float()
        matrix = settings.weights(places, size, scale).to(whole.device, whole.dtype)
        z = torch.matmul(whole.movedim(axis, -1), matrix.T).movedim(-1, axis)
    beyond = (places < 0) | (places > size - 1)
    if settings.coordinates == "tf_crop_and_resize" and bool(beyond.any()):
        shape = [out if dimension == axis else 1 for dimension in range(x.dim())]
        z = z.masked_fill(beyond.reshape(shape).to(x.device), settings.outside)
    return z
