"""Scaled dot-product attention (opset 23), composed of products of matrices and a softmax."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from idc_core.models.onnx.registry import Function, Node, operator, room


@operator("Attention")
def _attention(node: Node) -> Function:
    causal, softcap, given = node.get("is_causal", 0) == 1, node.get("softcap", 0.0), node.get("scale")
    heads, key_heads = node.get("q_num_heads"), node.get("kv_num_heads")
    node.get("softmax_precision"), node.get("qk_matmul_output_mode")
    empty = [position for position in (4, 5) if position in node.constants and not node.constants[position].numel()]
    if any(node.has(position) and position not in empty for position in (4, 5, 6)) or any(node.outputs[3:]):
        raise node.refuse("attention with past keys, lengths or further outputs")

    def run(
        q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *_: Tensor | None
    ) -> Tensor | tuple[Tensor, ...]:
        flat = q.dim() == 3
        if flat:
            q, k, v = _heads(q, heads), _heads(k, key_heads), _heads(v, key_heads)
        present = k, v
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        root = math.sqrt(1 / math.sqrt(q.shape[-1]) if given is None else given)
        room((*q.shape[:-1], k.shape[-2]))
        scores = torch.matmul(q * root, k.transpose(-1, -2) * root)
        if softcap > 0:
            scores = softcap * torch.tanh(scores / softcap)
        if causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        if mask is not None:
            mask = _filled_up(mask, scores.shape[-1])
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
        nothing = (scores == float("-inf")).all(-1, keepdim=True)  # of what looks at no key
        z = torch.matmul(torch.softmax(scores, -1).masked_fill(nothing, 0.0), v)
        z = z.transpose(1, 2).flatten(2) if flat else z
        return (z, *present) if any(node.outputs[1:]) else z

    return run


def _heads(x: Tensor, count: int) -> Tensor:
    """Return (n, heads, length, size) of (n, length, heads x size)."""
    heads: Tensor = x.unflatten(2, (count, -1))
    return heads.transpose(1, 2)


def _filled_up(mask: Tensor, length: int) -> Tensor:
    """Return a mask of which keys beyond its end are not looked at."""
    missing = length - mask.shape[-1]
    if missing <= 0:
        return mask
    nothing = False if mask.dtype == torch.bool else float("-inf")
    return torch.nn.functional.pad(mask, (0, missing), value=nothing)
