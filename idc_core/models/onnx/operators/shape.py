"""Operators that move, copy and measure: shapes, slices, joins, padding."""

from __future__ import annotations

from math import prod
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.errors import ModelError
from idc_core.models.onnx.operators.windows import flat
from idc_core.models.onnx.registry import Function, Node, functions, integers, operator, room
from idc_core.models.onnx.tensors import torch_type

functions(
    {
        "Identity": lambda x: x,
        "Size": lambda x: torch.tensor(x.numel(), device=x.device),
        "Expand": lambda x, shape: _expand(x, integers(shape)),
        "CastLike": lambda x, like: x.to(like.dtype),
    }
)


def _expand(x: Tensor, shape: list[int]) -> Tensor:
    shape = list(np.broadcast_shapes(x.shape, shape))
    room(shape)
    return x.expand(shape)


@operator("Shape")
def _shape(node: Node) -> Function:
    start, end = node.get("start", 0), node.get("end")
    return lambda x: torch.tensor(list(x.shape[start:end]), dtype=torch.int64, device=x.device)


@operator("Reshape")
def _reshape(node: Node) -> Function:
    keep_zeros, written = node.get("allowzero", 0) == 1, node.get("shape")
    known = 1 in node.constants or written is not None

    def run(x: Tensor, shape: Tensor | None = None) -> Tensor:
        sizes = list(written) if shape is None else integers(shape)
        if not keep_zeros:
            sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
        if node.batch is None or not known:
            return x.reshape(sizes)
        if node.batch.learning:
            z = x.reshape(sizes)
            node.batch.shapes[node] = list(x.shape), list(z.shape)
            return z
        then, made = node.batch.shapes.get(node, ([], []))
        return x.reshape(_for_this_batch(list(x.shape), then, made) or sizes)

    return run


def _for_this_batch(now: list[int], then: list[int], made: list[int]) -> list[int] | None:
    """Return the shape that a reshape makes of `now`, where of `then`, of another batch size, it made `made`.

    The batch is the one axis that has changed; in the result it has as many numbers before it, and it is no part of the
    last axis, which holds features. None: it is not clear where it is.
    """
    changed = [axis for axis, (first, other) in enumerate(zip(now, then, strict=False)) if first != other]
    if len(now) != len(then) or len(changed) != 1:
        return None
    before = prod(then[: changed[0]])
    place = next((axis for axis in range(len(made)) if prod(made[:axis]) == before), None)
    if place is None:
        return None
    place -= 0 < place == len(made) - 1
    return [-1 if axis == place else size for axis, size in enumerate(made)]


@operator("Flatten")
def _flatten(node: Node) -> Function:
    axis = node.get("axis", 1)

    def run(x: Tensor) -> Tensor:
        first = axis if axis >= 0 else axis + x.dim()
        if first == 1 and x.dim() > 1:
            return x.flatten(1)
        return x.reshape(prod(x.shape[:first]), prod(x.shape[first:]))

    return run


@operator("Transpose")
def _transpose(node: Node) -> Function:
    order = node.get("perm")
    return lambda x: x.permute(order if order is not None else tuple(reversed(range(x.dim()))))


@operator("Squeeze")
def _squeeze(node: Node) -> Function:
    given = node.get("axes")

    def run(x: Tensor, axes: Tensor | None = None) -> Tensor:
        chosen = given if axes is None else integers(axes)
        if not chosen:
            return x.squeeze()
        if any(x.shape[axis] != 1 for axis in chosen):
            raise ModelError(f"{node} squeezes axes {list(chosen)} of the shape {list(x.shape)}, which are not all 1.")
        return x.squeeze(tuple(chosen))

    return run


@operator("Unsqueeze")
def _unsqueeze(node: Node) -> Function:
    given = node.get("axes")

    def run(x: Tensor, axes: Tensor | None = None) -> Tensor:
        chosen = given if axes is None else integers(axes)
        rank = x.dim() + len(chosen)
        for axis in sorted(axis % rank for axis in chosen):
            x = x.unsqueeze(axis)
        return x

    return run


@operator("Concat")
def _concat(node: Node) -> Function:
    axis = node.need("axis") if node.opset >= 4 else node.get("axis", 1)

    def run(*values: Tensor) -> Tensor:
        rows = max(value.shape[0] for value in values)
        if node.batch is not None and node.batch.size == 1 and axis % values[0].dim():
            # A constant that was made for a batch of one belongs to every input.
            values = tuple(v.expand(rows, *v.shape[1:]) if v.shape[0] == 1 else v for v in values)
        room([sum(value.numel() for value in values)])
        return torch.cat(values, axis)

    return run


@operator("Split")
def _split(node: Node) -> Function:
    axis, given, parts = node.get("axis", 0), node.get("split"), node.get("num_outputs") or len(node.outputs)

    def run(x: Tensor, split: Tensor | None = None) -> tuple[Tensor, ...]:
        sizes = given if split is None else integers(split)
        return torch.split(x, list(sizes) if sizes is not None else -(-x.shape[axis] // parts), axis)

    return run


@operator("Slice")
def _slice(node: Node) -> Function:
    old = [node.get(name) for name in ("starts", "ends", "axes")]

    def run(x: Tensor, *given: Tensor | None) -> Tensor:
        starts, ends, axes, steps = (
            None if values is None else integers(values) if isinstance(values, Tensor) else list(values)
            for values in ([*given, None, None][:4] if given else [*old, None])
        )
        axes = list(range(len(starts or ()))) if axes is None else axes
        for start, end, axis, step in zip(starts or (), ends or (), axes, steps or [1] * len(axes), strict=True):
            size = x.shape[axis]
            places = range(size)[_bound(start) : _bound(end, below=step < 0, size=size) : step]
            if step < 0:
                x = x.index_select(axis, torch.tensor(list(places), dtype=torch.int64, device=x.device))
            else:
                cut = slice(places.start, max(places.start, places.stop), step)
                x = x[(*(slice(None),) * (axis % x.dim()), cut)]
        return x

    return run


def _bound(value: int, *, below: bool = False, size: int = 0) -> int | None:
    """Return a bound of a slice as Python reads it: walking backwards, an end before the first place is no end."""
    return None if below and value < -size else value


@operator("Tile")
def _tile(node: Node) -> Function:
    def run(x: Tensor, repeats: Tensor) -> Tensor:
        times = integers(repeats)
        room([size * count for size, count in zip(x.shape, times, strict=True)])
        return x.repeat(times)

    return run


@operator("Pad")
def _pad(node: Node) -> Function:
    mode, written, value = node.get("mode", "constant"), node.get("pads"), node.get("value", 0.0)

    def run(x: Tensor, pads: Tensor | None = None, fill: Tensor | None = None, axes: Tensor | None = None) -> Tensor:
        numbers = written if pads is None else integers(pads)
        chosen = range(x.dim()) if axes is None else [axis % x.dim() for axis in integers(axes)]
        both = dict(zip(chosen, zip(numbers[: len(chosen)], numbers[len(chosen) :], strict=True), strict=True))
        sides = [both.get(axis, (0, 0)) for axis in range(x.dim())]
        if mode == "constant":
            first = next((axis for axis, side in enumerate(sides) if side != (0, 0)), x.dim())
            amount = value if fill is None else fill.item()
            return F.pad(x, flat(sides[first:], x), value=amount) if first < x.dim() else x
        room([size + before + after for size, (before, after) in zip(x.shape, sides, strict=True)])
        for axis, (before, after) in enumerate(sides):
            if (before, after) != (0, 0):
                x = x.index_select(axis, _places(x.shape[axis], before, after, mode).to(x.device))
        return x

    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise node.refuse(f"the mode {mode!r}")
    return run


def _places(size: int, before: int, after: int, mode: Literal["constant", "reflect", "edge", "wrap"]) -> Tensor:
    """Return which place of an axis each place of the padded axis shows."""
    padded = np.pad(np.arange(size), (max(0, before), max(0, after)), mode=mode)
    return torch.from_numpy(padded[max(0, -before) : len(padded) - max(0, -after)].copy())


@operator("Along")
def _along(node: Node) -> Function:
    """Of no file: scales and zero points of quantised arrays, in the shape in which they are along an axis."""
    axis = node.get("axis")

    def run(value: Tensor, x: Tensor) -> Tensor:
        if value.numel() == 1 or value.dim() >= x.dim():
            return value
        shape = [1] * x.dim()
        shape[axis] = len(value)
        shape[x.dim() - value.dim() + 1 :] = value.shape[1:]  # of recurrent layers: directions, and their gates
        return value.reshape(shape)

    return run


class Cast(nn.Module):
    """Turns numbers into another type; one of floats goes with the network where that is put into another precision."""

    like: Tensor

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("like", torch.empty(0, dtype=dtype), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the numbers in the type."""
        return x.to(self.like.dtype)


@operator("Cast")
def _cast(node: Node) -> nn.Module:
    node.get("saturate"), node.get("round_mode")
    return Cast(torch_type(node.need("to"), str(node)))


@operator("ConstantOfShape")
def _constant_of_shape(node: Node) -> Function:
    value = node.get("value", torch.zeros(1))

    def run(shape: Tensor) -> Tensor:
        sizes = integers(shape)
        room(sizes)
        return torch.full(sizes, value.item(), dtype=value.dtype, device=shape.device)

    return run


@operator("Range")
def _range(node: Node) -> Function:
    def run(start: Tensor, limit: Tensor, step: Tensor) -> Tensor:
        first, last, by = start.item(), limit.item(), step.item()
        count = max(0, int(np.ceil((last - first) / by)))
        room([count])
        return start + step * torch.arange(count, dtype=start.dtype, device=start.device)

    return run


@operator("DepthToSpace")
def _depth_to_space(node: Node) -> Function:
    block, mode = node.need("blocksize"), node.get("mode", "DCR")

    def run(x: Tensor) -> Tensor:
        if mode == "CRD":
            return F.pixel_shuffle(x, block)
        n, channels, height, width = x.shape
        parts = x.reshape(n, block, block, channels // block**2, height, width).permute(0, 3, 4, 1, 5, 2)
        return parts.reshape(n, channels // block**2, height * block, width * block)

    return run


@operator("SpaceToDepth")
def _space_to_depth(node: Node) -> Function:
    block, order = (
        node.need("blocksize"),
        (0, 3, 5, 1, 2, 4) if node.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4),
    )

    def run(x: Tensor) -> Tensor:
        n, channels, height, width = x.shape
        parts = x.reshape(n, channels, height // block, block, width // block, block).permute(order)
        return parts.reshape(n, channels * block**2, height // block, width // block)

    return run
