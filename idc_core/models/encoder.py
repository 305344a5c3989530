"""A transformer's block: attention between tokens, then two dense layers for each token by itself."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.lrp.layer_parts import HEADS, part_of_layer
from idc_core.models.network import Network


class Encoder(Network):
    """Base class of networks made of blocks; units inside and `parts` of each block are layers beside the whole."""

    parts: tuple[str, ...] = (HEADS,)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have neurons, of a block its inner units before it and its parts behind it."""
        names: list[str] = []
        for name in super().layers:
            if isinstance(self.get_submodule(name), Block):
                names += [f"{name}.mlp.hidden", name, *(part_of_layer(name, part) for part in self.parts)]
            else:
                names.append(name)
        return tuple(names)


class Block(nn.Module):
    """One block of an encoder, for tokens (n, tokens, width); layer norm stands before each half (pre-norm).

    Layers: `attention` adds to each token what it takes from others, `mlp` what follows from the token alone. Dropout
    acts on both sums.

    Notes
    -----
    A. Vaswani et al., "Attention Is All You Need", NeurIPS 2017, with the norms in front of the halves, where R. Xiong
    et al., "On Layer Normalization in the Transformer Architecture", ICML 2020, put them: it trains with less care.
    """

    def __init__(self, width: int, heads: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.drop1 = nn.Dropout(dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = MLP(width, hidden)
        self.drop2 = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, seen: Tensor | None = None) -> Tensor:
        """Return the tokens after the block; `seen`, bool (n, 1, 1, tokens), is False for padding."""
        tokens = tokens + self.drop1(self.attention(self.norm1(tokens), seen))
        after: Tensor = tokens + self.drop2(self.mlp(self.norm2(tokens)))
        return after


class Attention(nn.Module):
    """Attention of several heads; `heads` gives what they found side by side, `output` mixes it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.queries = nn.Linear(width, width)
        self.keys = nn.Linear(width, width)
        self.values = nn.Linear(width, width)
        self.heads = Heads(heads)
        self.output = nn.Linear(width, width)

    def forward(self, tokens: Tensor, seen: Tensor | None = None) -> Tensor:
        """Return what each token (n, tokens, width) takes from those seen."""
        mixture = self.heads(self.queries(tokens), self.keys(tokens), self.values(tokens), seen)
        mixed: Tensor = self.output(mixture)
        return mixed


class Heads(nn.Module):
    """Scaled dot-product attention, each of `num_heads` heads in its own equal part of the features."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, seen: Tensor | None = None) -> Tensor:
        """Return (n, tokens, width), the features of the first head first."""
        q, k, v = (x.unflatten(2, (self.num_heads, -1)).transpose(1, 2) for x in (queries, keys, values))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(2)


class MLP(nn.Module):
    """Two dense layers with GELU between them; the units of `hidden` are what neurons are elsewhere."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, hidden)
        self.output = nn.Linear(hidden, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (n, tokens, width)."""
        result: Tensor = self.output(F.gelu(self.hidden(tokens)))
        return result
