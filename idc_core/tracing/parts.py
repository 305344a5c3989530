"""What is looked at of a layer of tokens, of which only a part is meant: one token, or the heads of its attention."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from idc_core.lrp.layer_parts import CLASS, HEADS, LAST, split_layer
from idc_core.lrp.named_inputs import Batch, NamedInputs, main_of

TokenMask = Tensor | None
"""Which tokens of a batch are no padding, bool (n, tokens); None where all of them are kept."""


@dataclass(frozen=True)
class _Part:
    """A part of a value of a layer; neurons lie in axis 1 of what it gives.

    Attributes
    ----------
    active, relevant : callable
        From a layer's value, or its relevance, and what is kept, to those of the part.
    places : callable
        From a layer's value and what is kept to where its neurons are, bool, to be broadcast.
    axis : int
        Where neurons lie in the layer's value.
    """

    active: Callable[[Tensor, TokenMask], Tensor]
    relevant: Callable[[Tensor, TokenMask], Tensor]
    places: Callable[[Tensor, TokenMask], Tensor]
    axis: int


def _first(value: Tensor, kept: TokenMask) -> Tensor:
    """Return the place of the class token, int64 (n,)."""
    return torch.zeros(len(value), dtype=torch.int64, device=value.device)


def _last(value: Tensor, kept: TokenMask) -> Tensor:
    """Return the place of the last token that is no padding, int64 (n,)."""
    tokens = value.shape[1]
    if kept is None or kept.shape[1] != tokens:
        return torch.full((len(value),), tokens - 1, device=value.device)
    return (kept * torch.arange(tokens, device=value.device)).amax(1)


def _token(place: Callable[[Tensor, TokenMask], Tensor]) -> _Part:
    """Return the part that is one token of each input."""

    def features(value: Tensor, kept: TokenMask) -> Tensor:
        return value[torch.arange(len(value), device=value.device), place(value, kept)]

    def places(value: Tensor, kept: TokenMask) -> Tensor:
        return (torch.arange(value.shape[1], device=value.device) == place(value, kept)[:, None])[..., None]

    return _Part(features, features, places, 2)


_PARTS = {
    CLASS: _token(_first),
    LAST: _token(_last),
    # The features of a head have no axes of their own: values and the layer behind them may be rotated together and
    # nothing changes. The length of a head's vector is the same then, the mean of its features is not.
    HEADS: _Part(
        lambda value, kept: value.norm(dim=3),
        lambda value, kept: value.sum(3),
        lambda value, kept: value.new_ones((), dtype=torch.bool),
        1,
    ),
}


def part_of(layer: str) -> _Part | None:
    """Return what reads a layer that is meant in part; None for a whole layer."""
    return _PARTS.get(split_layer(layer)[1])


def padding_of(model: nn.Module) -> int | None:
    """Return the token id of padding: what a network says as its attribute `padding_idx`, else its embedding does."""
    model = model._modules.get("_orig_mod") or model
    if hasattr(model, "padding_idx"):
        token = model.padding_idx
        return token if isinstance(token, int) else None
    embeddings = (module.padding_idx for module in model.modules() if isinstance(module, nn.Embedding))
    return next((padding for padding in embeddings if padding is not None), None)


def kept_tokens(model: nn.Module, batch: Batch) -> TokenMask:
    """Return which tokens of token ids (n, tokens) are no padding, told by their mask where it is given by name.

    An input of nothing but padding keeps all of them.
    """
    ids = main_of(batch)
    if ids.dim() != 2 or ids.is_floating_point():
        return None
    mask = batch.values.get("attention_mask") if isinstance(batch, NamedInputs) else None
    if isinstance(mask, Tensor) and mask.shape == ids.shape:
        kept = mask != 0
    elif (padding := padding_of(model)) is not None:
        kept = ids != padding
    else:
        return None
    return None if bool(kept.all()) else kept | ~kept.any(1, keepdim=True)
