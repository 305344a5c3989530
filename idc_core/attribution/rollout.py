"""Attention rollout: which inputs the attention of all layers together looks at.

References
----------
.. [1] S. Abnar, W. Zuidema, "Quantifying attention flow in transformers", ACL 2020 (arXiv:2005.00928).
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from idc_core.attribution.gradients import as_tensor
from idc_core.base.progress import Progress, report
from idc_core.errors import UnsupportedOperationError
from idc_core.lrp import endings
from idc_core.lrp.calls import Args, Kwargs, Operation, name_of
from idc_core.lrp.captures import in_full
from idc_core.lrp.named_inputs import filled, main_of
from idc_core.lrp.scores import scores_of
from idc_core.lrp.session import undisturbed
from idc_core.tracing.batching import batches


def attention_rollout(
    model: nn.Module, inputs: object, *, batch_size: int | None = None, on_progress: Progress | None = None
) -> NDArray[np.floating]:
    """Return how much of what the predicted score reads comes from each part of the input, by attention alone.

    Parameters
    ----------
    model : Module
        A network of self-attention layers, by whichever operation: ``scaled_dot_product_attention``,
        `nn.MultiheadAttention`, or a softmax between products of matrices. Left as it was found.
    inputs : Tensor, array or Dataset, (n, ...)
        What the network reads.
    batch_size : int, optional
        Default: chosen from the network's size.
    on_progress : Progress, optional
        Called after every batch.

    Returns
    -------
    ndarray, (n, ...)
        In the shape of the inputs and the network's dtype; of token inputs one number per token. Not negative, and
        the same whichever class is explained. Each input's sum is 1, less the share of tokens that come from no part of
        the input, such as the class token.

    Raises
    ------
    UnsupportedOperationError
        If the network has no attention, or attention between other tokens than those that it started with.
    ModelError, DataError
        As `idc_core.relevance`.

    Notes
    -----
    Equation 1 of [1]: a layer's attention, averaged over its heads, half of it replaced by the identity for the
    residual connection, ``A = (W + I) / 2``. The rollout is the product of all layers' matrices, the last one's first;
    its row of the class token says what that token is made of. Two things are measured here, so that no layout is
    assumed. The rows that a network reads are those of the last attention's output with a gradient of the predicted
    score; of several, as under a mean over tokens, the mean is taken. A token's share is spread evenly over the pixels
    with a gradient of what the first attention reads of it: those of its patch, where patches do not overlap.
    """
    shares: list[NDArray[np.floating]] = []
    given = as_tensor(model, inputs)
    for portion in (one for batch in batches(model, given, (), None, batch_size) for one in batch.runs()):
        batch = main_of(filled(portion.inputs, portion.traits.least))
        with undisturbed(model), torch.enable_grad():
            run = _Rollout(batch)
            with run:
                output = scores_of(model(run.given))
            shares.append(_spread(run, _of_tokens(run, output))[: len(portion.inputs)].cpu().numpy())
        report(on_progress, portion.start + len(portion.inputs), len(given), "inputs through the network")
    return np.concatenate(shares)


class _Rollout(TorchFunctionMode):
    """One run of the network during which every attention is multiplied to those before it."""

    def __init__(self, batch: Tensor) -> None:
        super().__init__()
        self.leaf: Tensor | None = None  # what the network computes its tokens from: pixels, or the words' embeddings
        self.tokens: Tensor | None = None  # (n, heads, tokens, features), what the first attention reads of each token
        self.product: Tensor | None = None  # (n, tokens, tokens), the rollout so far
        self.last: Tensor | None = None  # what the last attention gave each token
        self.arrange: Callable[[Tensor], Tensor] = self.by_heads  # puts it, or its gradient, as (n, heads, tokens, ...)
        self.rows = len(batch)
        self.given = batch
        if batch.is_floating_point():
            self.leaf = batch.detach().requires_grad_()
            self.given = self.leaf.clone()

    def __torch_function__(
        self, func: Operation, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run one operation of the network."""
        kwargs = kwargs or {}
        name = name_of(func)
        if name in _ATTENTIONS:
            result: Any = _ATTENTIONS[name](self, func, *args, **kwargs)
            endings.note(name, args, kwargs, result)
            return result
        result = func(*args, **kwargs)
        endings.note(name, args, kwargs, result)
        if name == "embedding" and self.leaf is None and self._is_given(args[0]):
            result = self.leaf = result.detach().requires_grad_()
        return result

    def by_heads(self, x: Tensor) -> Tensor:
        """Return what an attention reads or gives as (n, heads, tokens, features); heads may stand among the inputs."""
        if x.dim() == 3 and len(x) % self.rows == 0:
            x = x.reshape(self.rows, -1, *x.shape[1:])
        return x

    def add(self, weights: Tensor, tokens: Tensor, output: Tensor, arrange: Callable[[Tensor], Tensor]) -> None:
        """Add an attention: weights (n, heads, queries, keys), its queries (n, heads, tokens, ...), and its output."""
        known = weights.shape[-1] if self.product is None else self.product.shape[-1]
        if weights.dim() != 4 or weights.shape[:1] + weights.shape[2:] != (self.rows, known, known):
            raise UnsupportedOperationError(
                f"Attention rollout needs attention of the same tokens to each other in all layers; here weights of "
                f"shape {tuple(weights.shape)} come for {self.rows} inputs of {known} tokens. Choose a rule of "
                "relevance propagation."
            )
        mixed = in_full(weights.detach()).mean(1)
        mixed = (mixed + torch.eye(known, dtype=mixed.dtype, device=mixed.device)) / 2
        if self.product is None:
            self.tokens = tokens
        self.product = mixed if self.product is None else mixed @ self.product
        self.last, self.arrange = output, arrange

    def _is_given(self, indices: Tensor) -> bool:
        """Return whether an embedding looks the network's own input up, not positions or segments."""
        return indices.shape == self.given.shape and bool((indices == self.given).all())


def _scaled_dot_product(
    run: _Rollout,
    func: Operation,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **options: object,
) -> Tensor:
    result: Tensor = func(query, key, value, attn_mask, dropout_p, is_causal, **options)
    # Values that are 1 at their own key and 0 elsewhere make the result the weights themselves, masks and all.
    ones = torch.eye(key.shape[-2], dtype=key.dtype, device=key.device).expand(*key.shape[:-1], -1)
    with torch.no_grad():
        weights = func(query, key, ones, attn_mask, 0.0, is_causal, **options)
    run.add(run.by_heads(weights), run.by_heads(query), result, run.by_heads)
    return result


def _multi_head(run: _Rollout, func: Operation, *args: object, **kwargs: object) -> tuple[Tensor, Tensor | None]:
    call = inspect.signature(func).bind(*args, **kwargs)
    given = call.arguments
    needed, averaged = given.get("need_weights", True), given.get("average_attn_weights", True)
    given.update(need_weights=True, average_attn_weights=False)
    output, weights = func(*call.args, **call.kwargs)
    run.add(weights, _inputs_first(given["query"]), output, _inputs_first)
    return output, (weights.mean(1) if averaged else weights) if needed else None


def _inputs_first(x: Tensor) -> Tensor:
    """Return what has positions before inputs, (tokens, n, features), as (n, 1, tokens, features)."""
    return x.transpose(0, 1)[:, None]


def _softmax(
    run: _Rollout, func: Operation, input: Tensor, dim: int | None = None, *rest: object, **options: object
) -> Tensor:
    result: Tensor = func(input, dim, *rest, **options)
    if result.dim() > 2 and dim in (-1, result.dim() - 1):
        # What queries and keys give at a token's own place depends on no other token.
        own = run.by_heads(input).diagonal(0, -2, -1)[..., None]
        run.add(run.by_heads(result), own, result, run.by_heads)
    return result


_ATTENTIONS: dict[str, Callable[..., object]] = {
    "scaled_dot_product_attention": _scaled_dot_product,
    "multi_head_attention_forward": _multi_head,
    "softmax": _softmax,
}


def _of_tokens(run: _Rollout, output: Tensor) -> Tensor:
    """Return the share of each token that the network started with in what the score reads, (n, tokens)."""
    if run.product is None or run.last is None:
        raise UnsupportedOperationError(
            "Attention rollout needs a network with attention, and none ran. Choose a rule of relevance propagation."
        )
    scores = endings.scores_before(output)
    gradient = None
    if scores.requires_grad and run.last.requires_grad:
        explained = scores.flatten(1).amax(1) if scores.dim() > 1 else scores
        (gradient,) = torch.autograd.grad(explained.sum(), run.last, retain_graph=True, allow_unused=True)
    if gradient is None:
        raise UnsupportedOperationError(
            "Attention rollout finds no way from the scores to the last attention. Choose a rule of relevance "
            "propagation."
        )
    read = (run.arrange(gradient) != 0).any(-1).any(1).to(run.product.dtype)
    return (read[:, None] @ run.product)[:, 0] / read.sum(1, keepdim=True).clamp(min=1)


def _spread(run: _Rollout, share: Tensor) -> Tensor:
    """Spread the share of each token (n, tokens) over what it was computed from, in the shape of the inputs."""
    leaf, tokens = run.leaf, run.tokens
    if leaf is None or tokens is None or not tokens.requires_grad:
        raise UnsupportedOperationError(
            "Attention rollout finds no way from the first attention to the input. Choose a rule of relevance "
            "propagation."
        )
    features = tokens.transpose(1, 2).flatten(2)
    # In a random direction: a layer norm gives sums that depend on nothing.
    direction = torch.randn(features.shape[2], generator=torch.Generator().manual_seed(0)).to(features)
    along = features @ direction
    spread = torch.zeros_like(share[:, :1]).expand(share.shape[0], leaf[0].numel()).clone()
    for token in range(share.shape[1]):
        (gradient,) = torch.autograd.grad(along[:, token].sum(), leaf, retain_graph=True)
        from_here = (gradient != 0).flatten(1)
        spread += from_here * (share[:, token : token + 1] / from_here.sum(1, keepdim=True).clamp(min=1))
    spread = spread.reshape(leaf.shape)
    return spread if run.given.is_floating_point() else spread.sum(-1)
