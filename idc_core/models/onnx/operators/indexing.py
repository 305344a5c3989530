"""Operators that look values up, and write some, by their place."""

from __future__ import annotations

from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.models.onnx.registry import Function, Node, integers, operator, room
from idc_core.models.onnx.tensors import torch_type

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _from_start(places: Tensor, size: int) -> Tensor:
    """Return places of which negative ones are counted from the end."""
    return torch.where(places < 0, places + size, places).long()


class Embedding(nn.Embedding):
    """A table of vectors that whole numbers look up; negative ones count from its end."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the vectors."""
        return F.embedding(_from_start(input, self.num_embeddings), self.weight)


@operator("Gather")
def _gather(node: Node) -> nn.Module | Function:
    axis, table = node.get("axis", 0), node.constants.get(0)
    looked_up = table is not None and table.dim() == 2 and table.is_floating_point() and axis in (0, -2)
    if table is not None and looked_up and 1 not in node.constants:
        layer = Embedding(table.shape[0], table.shape[1], device="meta")
        layer.weight = nn.Parameter(table.clone())
        return layer

    def run(x: Tensor, indices: Tensor) -> Tensor:
        along = axis % x.dim()
        places = _from_start(indices, x.shape[along])
        if indices.dim() == 0:
            return x.select(along, int(places))
        room([*x.shape[:along], *places.shape, *x.shape[along + 1 :]])
        chosen = x.index_select(along, places.flatten())
        return chosen if places.dim() == 1 else chosen.reshape([*x.shape[:along], *places.shape, *x.shape[along + 1 :]])

    return run


@operator("GatherElements")
def _gather_elements(node: Node) -> Function:
    axis = node.get("axis", 0)
    return lambda x, indices: x.gather(axis, _from_start(indices, x.shape[axis]))


@operator("GatherND")
def _gather_nd(node: Node) -> Function:
    shared = node.get("batch_dims", 0)

    def run(x: Tensor, indices: Tensor) -> Tensor:
        rows = prod(x.shape[:shared])
        data, places = x.reshape(rows, *x.shape[shared:]), indices.reshape(rows, -1, indices.shape[-1])
        room([rows, places.shape[1], *data.shape[1 + places.shape[2] :]])
        row = torch.arange(rows, device=x.device)[:, None].expand(places.shape[:2])
        parts = [_from_start(place, size) for place, size in zip(places.unbind(-1), data.shape[1:], strict=False)]
        taken = data[(row, *parts)]
        return taken.reshape([*indices.shape[:-1], *data.shape[1 + len(parts) :]])

    return run


@operator("ScatterElements", "Scatter")
def _scatter_elements(node: Node) -> Function:
    axis, reduction = node.get("axis", 0), node.get("reduction") or "none"

    def run(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
        places = _from_start(indices, x.shape[axis])
        if reduction == "none":
            return x.scatter(axis, places, updates)
        return x.scatter_reduce(axis, places, updates, _REDUCTIONS[reduction])

    return run


@operator("ScatterND")
def _scatter_nd(node: Node) -> Function:
    reduction = node.get("reduction") or "none"

    def run(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
        depth = indices.shape[-1]
        rest = prod(x.shape[depth:])
        places = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=x.device)
        for place, size in zip(indices.unbind(-1), x.shape, strict=False):
            places = places * size + _from_start(place, size)
        rows = x.reshape(prod(x.shape[:depth]), rest)
        index = places.reshape(-1, 1).expand(-1, rest)
        values = updates.reshape(-1, rest)
        if reduction == "none":
            return rows.scatter(0, index, values).reshape(x.shape)
        return rows.scatter_reduce(0, index, values, _REDUCTIONS[reduction]).reshape(x.shape)

    return run


@operator("OneHot")
def _one_hot(node: Node) -> Function:
    axis = node.get("axis", -1)

    def run(indices: Tensor, depth: Tensor, values: Tensor) -> Tensor:
        count = integers(depth)[0]
        room([*indices.shape, count])
        places = _from_start(indices, count)
        hot = places.unsqueeze(-1) == torch.arange(count, device=places.device)
        chosen = torch.where(hot, values[1], values[0])
        return chosen.movedim(-1, axis)

    return run


@operator("NonZero")
def _non_zero(node: Node) -> Function:
    return lambda x: x.nonzero().T


@operator("Trilu")
def _triangle(node: Node) -> Function:
    function = torch.triu if node.get("upper", 1) else torch.tril
    return lambda x, k=None: function(x, 0 if k is None else int(k))


@operator("EyeLike")
def _eye(node: Node) -> Function:
    kind, shift = node.get("dtype"), node.get("k", 0)
    dtype = None if kind is None else torch_type(kind, str(node))

    def run(x: Tensor) -> Tensor:
        return torch.ones_like(x, dtype=torch.float32).triu(shift).tril(shift).to(dtype or x.dtype)

    return run
