"""Poolings of windows and of everything."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.errors import ModelError
from idc_core.models.onnx.operators.windows import Windows, flat
from idc_core.models.onnx.registry import Function, Node, functions, operator

_MAX: tuple[Callable[..., Any], ...] = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
_AVERAGE: tuple[Callable[..., Tensor], ...] = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)


def _plain(windows: Windows) -> tuple[int, ...] | None:
    """Return the padding where PyTorch's own pooling takes it."""
    padding = windows.symmetric
    fits = padding is not None and all(2 * p <= k for p, k in zip(padding, windows.kernel, strict=True))
    return padding if fits and len(windows.kernel) <= 3 else None


@operator("MaxPool")
def _max_pool(node: Node) -> Function:
    windows, columns_first = Windows.of(node), node.get("storage_order", 0)
    padding, rank = _plain(windows), len(windows.kernel)
    if rank > 3:
        raise node.refuse(f"windows of {rank} dimensions")
    pool = _MAX[rank - 1]

    def run(x: Tensor) -> Tensor:
        if not x.is_floating_point():
            return run(x.double()).to(x.dtype)
        if padding is not None:
            z: Tensor = pool(x, windows.kernel, windows.stride, padding, windows.dilation, windows.ceil)
            return z
        x = F.pad(x, flat(windows.exact(x), x), value=float("-inf"))
        return pool(x, windows.kernel, windows.stride, 0, windows.dilation)  # type: ignore[no-any-return]

    def with_places(x: Tensor) -> tuple[Tensor, Tensor]:
        if padding is None:
            raise node.refuse("places of maxima with such padding")
        z, places = pool(x, windows.kernel, windows.stride, padding, windows.dilation, windows.ceil, True)
        if columns_first:
            axes = torch.unravel_index(places, x.shape[2:])
            places = sum(axis * prod(x.shape[2 : 2 + i]) for i, axis in enumerate(axes))
        planes = torch.arange(x.shape[0] * x.shape[1], device=x.device).reshape(*x.shape[:2], *[1] * rank)
        return z, places + planes * prod(x.shape[2:])

    return with_places if any(node.outputs[1:]) else run


@operator("AveragePool")
def _average_pool(node: Node) -> Function:
    windows, counted = Windows.of(node), bool(node.get("count_include_pad", 0))
    padding, rank = _plain(windows), len(windows.kernel)
    plain = padding is not None and max(windows.dilation) == 1

    def run(x: Tensor) -> Tensor:
        if plain:
            return _AVERAGE[rank - 1](x, windows.kernel, windows.stride, padding, windows.ceil, counted)
        inside = x.new_ones((1, 1, *x.shape[2:]))
        if counted:
            sides = windows.padding(x)
            inside = F.pad(inside, flat(sides, inside), value=1.0)
            exact = [(0, a - after) for (_, a), (_, after) in zip(windows.exact(x), sides, strict=True)]
            inside = F.pad(inside, flat(exact, inside))
        else:
            inside = F.pad(inside, flat(windows.exact(x), inside))
        return _total(x, windows) / _slide(inside, windows)

    return run


@operator("LpPool")
def _power_pool(node: Node) -> Function:
    windows, p = Windows.of(node), node.get("p", 2)
    return lambda x: _total(x.abs() ** p, windows) ** (1 / p)


def _total(x: Tensor, windows: Windows) -> Tensor:
    """Return the sum over each window."""
    return _slide(F.pad(x, flat(windows.exact(x), x)), windows)


def _slide(x: Tensor, windows: Windows) -> Tensor:
    """Return the sum over each window of an input that is padded already."""
    counts: list[int] = [
        (size - span) // s + 1 for size, span, s in zip(x.shape[2:], windows.reach, windows.stride, strict=True)
    ]
    if min(counts) < 1:
        raise ModelError(f"Windows of {list(windows.kernel)} do not fit into an input of {list(x.shape[2:])}.")
    total = x.new_zeros(())
    for place in product(*map(range, windows.kernel)):
        part = x
        for axis, (o, d, n, s) in enumerate(zip(place, windows.dilation, counts, windows.stride, strict=True), start=2):
            part = part[(slice(None),) * axis + (slice(o * d, o * d + (n - 1) * s + 1, s),)]
        total = total + part
    return total


def _spatial(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, x.dim()))


functions(
    {
        "GlobalAveragePool": lambda x: x.mean(_spatial(x), keepdim=True),
        "GlobalMaxPool": lambda x: x.amax(_spatial(x), keepdim=True),
    }
)


@operator("GlobalLpPool")
def _global_power_pool(node: Node) -> Function:
    p = node.get("p", 2)
    return lambda x: (x.abs() ** p).sum(_spatial(x), keepdim=True) ** (1 / p)
