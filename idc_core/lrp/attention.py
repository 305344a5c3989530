"""Softmax inside a network, and attention.

The softmax is expanded to first order at its input, and what the expansion leaves over is a bias ([1], equation 11);
the products with it follow the uniform rule (`products`). A rule that holds weights constant takes the softmax's output
as numbers that do not depend on the input, so that relevance flows through the values only ([2]).

References
----------
.. [1] R. Achtibat, S. M. V. Hatefi, M. Dreyer, A. Jain, T. Wiegand, S. Lapuschkin, W. Samek, "AttnLRP:
   Attention-aware layer-wise relevance propagation for transformers", ICML 2024.
.. [2] A. Ali, T. Schnake, O. Eberle, G. Montavon, K.-R. Müller, L. Wolf, "XAI for transformers: better explanations
   through conservative propagation", ICML 2022.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine, Keeps, applied
from idc_core.lrp.joining import concatenate, masked_fill
from idc_core.lrp.operations import add, affine, depends, linear, operation, scaled
from idc_core.lrp.products import matmul, product
from idc_core.lrp.rules import RelevanceSettings

_Kept = Keeps[tuple[int, bool, Tensor, Tensor]]


class _SoftmaxRelevance(torch.autograd.Function):
    """A softmax: R_i = x_i (R_i - s_i sum_j R_j); with `spread`, what is left over goes to all of the row equally."""

    @staticmethod
    def forward(ctx: _Kept, dim: int, dtype: torch.dtype | None, spread: bool, x: Tensor) -> Tensor:
        """Apply the softmax."""
        s = torch.softmax(x, dim, dtype)
        ctx.kept = dim, spread, x.detach(), s.detach()
        return s

    @staticmethod
    def backward(ctx: _Kept, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the relevance of the softmax's input; what is masked has none."""
        (dim, spread, x, s), relevance = ctx.kept, grads[0]
        whole = relevance.sum(dim, keepdim=True)
        result = torch.where(s == 0, 0.0, x * (relevance - s * whole))
        if spread:
            seen = s > 0
            result = result + seen * (whole - result.sum(dim, keepdim=True)) / seen.sum(dim, keepdim=True)
        return None, None, None, result.to(x.dtype)


@operation("softmax", "special_softmax")
def _softmax(
    settings: RelevanceSettings,
    input: Tensor,
    dim: int | None = None,
    *rest: object,
    dtype: torch.dtype | None = None,
    **_: object,
) -> Tensor:
    """Run a softmax along `dim`, by default along the one that torch still chooses."""
    dim = (0 if input.dim() in (0, 1, 3) else 1) if dim is None else dim
    dtype = next((value for value in rest if isinstance(value, torch.dtype)), dtype)
    if settings.holds_weights:
        return torch.softmax(input.detach(), dim, dtype)
    if settings.as_gradient:
        return torch.softmax(input, dim, dtype)
    spread = settings.bias == "redistribute"
    return applied(_SoftmaxRelevance, dim, dtype, spread, input)


@operation("scaled_dot_product_attention")
def _attention(
    settings: RelevanceSettings,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Run scaled dot-product attention; queries and keys take a quarter of the relevance each, values a half."""
    if dropout_p:
        raise UnsupportedOperationError("dropout that stays active in evaluation, so that no two passes agree")
    # What masks and the softmax leave over is a bias; to spread it, each step has to be seen.
    if settings.bias == "redistribute" or depends(attn_mask):
        return _step_by_step(settings, query, key, value, attn_mask, is_causal, scale)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
        )

    if settings.holds_weights:
        query, key = query.detach(), key.detach()
    given = (query, key, value)
    watched = [x for x in given if depends(x)]
    if not watched:
        return run(*given)

    def of_watched(*inputs: Tensor) -> Tensor:
        rest = iter(inputs)
        return run(*(next(rest) if depends(x) else x for x in given))

    if len(watched) == 1 and depends(value):
        return affine(settings, Affine("dense", lambda x, _, __: of_watched(*x)), value)
    weights = 0.5 if depends(value) else 1.0
    pair = weights / 2 if depends(query) and depends(key) else weights
    parts = [0.5 if x is value and i == 2 else pair for i, x in enumerate(given) if depends(x)]
    return product(settings, of_watched, parts, *watched)


def _step_by_step(
    settings: RelevanceSettings,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    """Run attention as its products and its softmax, each by its own handler."""
    groups = query.shape[-3] // key.shape[-3] if query.dim() > 3 else 1
    if groups > 1:
        key, value = (x.repeat_interleave(groups, -3) for x in (key, value))
    root = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = scaled(settings, _times(settings, query, key.transpose(-1, -2)), root)
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = _masked(settings, scores, later)
    if mask is not None and mask.dtype == torch.bool:
        scores = _masked(settings, scores, ~mask)
    elif mask is not None:
        scores = add(settings, scores, mask) if depends(scores) or depends(mask) else scores + mask
    weights = _softmax(settings, scores, -1) if depends(scores) else torch.softmax(scores, -1)
    return _times(settings, weights, value)


def _times(settings: RelevanceSettings, one: Tensor, other: Tensor) -> Tensor:
    return matmul(settings, one, other) if depends(one) or depends(other) else one @ other


def _masked(settings: RelevanceSettings, scores: Tensor, hidden: Tensor) -> Tensor:
    hidden = hidden.expand(scores.shape)
    if not depends(scores):
        return scores.masked_fill(hidden, float("-inf"))
    return masked_fill(settings, scores, hidden, float("-inf"))


_OnHeads = Callable[[Tensor], Tensor]
"""Given what heads give, (n, heads, tokens, features), returns what the network goes on with instead."""


@operation("multi_head_attention_forward")
def _multi_head_attention(
    settings: RelevanceSettings,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    on_heads: _OnHeads | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Run `nn.MultiheadAttention`: positions before inputs; the weights it also returns are constants.

    `on_heads` gets what the heads give, (n, heads, tokens, features), and returns what goes on instead.
    """
    if static_k is not None or static_v is not None or (training and dropout_p):
        raise UnsupportedOperationError("multi_head_attention_forward with fixed keys, or with dropout in evaluation")
    single = query.dim() == 2
    given = [x.unsqueeze(1) if single else x for x in (query, key, value)]
    if key_padding_mask is not None and single:
        key_padding_mask = key_padding_mask.unsqueeze(0)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    weights = separate if use_separate_proj_weight else in_proj_weight.chunk(3)  # type: ignore[union-attr]
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = (_project(settings, x, w, b) for x, w, b in zip(given, weights, biases, strict=True))
    if bias_k is not None and bias_v is not None:
        k, v = (_behind(settings, x, b.expand(1, x.shape[1], -1)) for x, b in ((k, bias_k), (v, bias_v)))
    q, k, v = (x.unflatten(2, (num_heads, -1)).permute(1, 2, 0, 3) for x in (q, k, v))
    if add_zero_attn:
        k, v = (_behind(settings, x, x.new_zeros(*x.shape[:2], 1, x.shape[3]), 2) for x in (k, v))
    mask = _joined_mask(q, k, attn_mask, key_padding_mask)
    followed = any(depends(x) for x in (q, k, v, mask))
    z = _attention(settings, q, k, v, mask) if followed else F.scaled_dot_product_attention(q, k, v, mask)
    z = z if on_heads is None else on_heads(z)
    z = z.permute(2, 0, 1, 3).flatten(2)
    z = _project(settings, z, out_proj_weight, out_proj_bias)
    shown = None
    if need_weights:
        scores = q.detach() @ k.detach().transpose(-1, -2) / math.sqrt(q.shape[-1])
        shown = torch.softmax(scores if mask is None else scores + mask, -1)
        shown = shown.mean(1) if average_attn_weights else shown
        shown = shown.squeeze(0) if single else shown
    return (z.squeeze(1) if single else z), shown


def _project(settings: RelevanceSettings, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return linear(settings, x, weight, bias) if depends(x) else F.linear(x, weight, bias)


def _behind(settings: RelevanceSettings, x: Tensor, more: Tensor, dim: int = 0) -> Tensor:
    return concatenate(settings, [x, more], dim)


def _joined_mask(q: Tensor, k: Tensor, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
    """Return the masks of attention and of padding as one that is added, (n, heads, queries, keys); None for none."""
    n, heads, queries, keys = (*q.shape[:3], k.shape[2])
    parts = []
    if attn_mask is not None:
        mask = attn_mask if attn_mask.dim() == 2 else attn_mask.reshape(n, heads, *attn_mask.shape[-2:])
        parts.append(mask.expand(n, heads, queries, mask.shape[-1]))
    if padding is not None:
        parts.append(padding.reshape(n, 1, 1, -1).expand(n, heads, queries, -1))
    # bias_k and zero attention add keys that no mask hides.
    added = [F.pad(_added(part, q), (0, keys - part.shape[-1])) for part in parts]
    return sum(added[1:], added[0]) if added else None


def _added(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(mask, float("-inf"))
    return mask.to(like.dtype)
