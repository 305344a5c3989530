"""Sums, means and extremes over axes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from idc_core.models.onnx.registry import Build, Function, Node, integers, operator

_Reduce = Callable[[Tensor, tuple[int, ...], bool], Tensor]


def _least(dtype: torch.dtype) -> float:
    return False if dtype == torch.bool else -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _most(dtype: torch.dtype) -> float:
    return True if dtype == torch.bool else float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


def _prod(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = x.prod(axis, keepdim=keep, dtype=x.dtype)
    return x


def _extreme(function: Callable[..., Tensor], nothing: Callable[[torch.dtype], float]) -> _Reduce:
    def run(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        if not x.numel():
            return torch.full_like(x.sum(axes, keepdim=keep), nothing(x.dtype), dtype=x.dtype)
        return function(x, axes, keep)

    return run


def _sum(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    return x.sum(axes, keepdim=keep) if x.is_floating_point() else x.sum(axes, keepdim=keep, dtype=x.dtype)


def _mean(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    return x.mean(axes, keepdim=keep)


_REDUCTIONS: dict[str, _Reduce] = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceMax": _extreme(torch.amax, _least),
    "ReduceMin": _extreme(torch.amin, _most),
    "ReduceProd": _prod,
    "ReduceL1": lambda x, axes, keep: _sum(x.abs(), axes, keep),
    "ReduceL2": lambda x, axes, keep: _sum(x * x, axes, keep).sqrt(),
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: _sum(x, axes, keep).log(),
    "ReduceLogSumExp": lambda x, axes, keep: x.logsumexp(axes, keep),
}


def _reduction(function: _Reduce) -> Build:
    def build(node: Node) -> Function:
        given, keep, idle = node.get("axes"), node.get("keepdims", 1) == 1, node.get("noop_with_empty_axes", 0) == 1

        def run(x: Tensor, axes: Tensor | None = None) -> Tensor:
            chosen = tuple(given or ()) if axes is None else tuple(integers(axes))
            if not chosen and idle:
                return function(x.unsqueeze(-1), (-1,), False)
            return function(x, chosen or tuple(range(x.dim())), keep) if x.dim() else function(x[None], (0,), False)

        return run

    return build


for _name, _function in _REDUCTIONS.items():
    operator(_name)(_reduction(_function))


@operator("ArgMax", "ArgMin")
def _arg_extreme(node: Node) -> Function:
    function = torch.argmax if node.operator == "ArgMax" else torch.argmin
    axis, keep, last = node.get("axis", 0), node.get("keepdims", 1) == 1, node.get("select_last_index", 0)

    def run(x: Tensor) -> Tensor:
        place = function(x.flip(axis) if last else x, axis, keep)
        return x.shape[axis] - 1 - place if last else place

    return run


@operator("TopK")
def _top(node: Node) -> Function:
    axis, largest, fixed = node.get("axis", -1), node.get("largest", 1) == 1, node.get("k")
    node.get("sorted")

    def run(x: Tensor, k: Tensor | None = None) -> tuple[Tensor, Tensor]:
        count = fixed if k is None else integers(k)[0]
        # Equal values come in the order of their places, which torch.topk does not promise.
        values, places = torch.sort(x, dim=axis, descending=largest, stable=True)
        return values.narrow(axis, 0, count), places.narrow(axis, 0, count)

    return run


@operator("CumSum")
def _running_sum(node: Node) -> Function:
    exclusive, reverse = node.get("exclusive", 0), node.get("reverse", 0)

    def run(x: Tensor, axis: Tensor) -> Tensor:
        along = integers(axis)[0]
        turned = x.flip(along) if reverse else x
        total = turned.cumsum(along, dtype=x.dtype)
        total = total - turned if exclusive else total
        return total.flip(along) if reverse else total

    return run
