"""A small transformer for text."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from idc_core.models.encoder import Block, Encoder

_WORDS = 10_002  # the 10,000 commonest, padding and the unknown word
_PADDING = 0
_LENGTH = 200
_WIDTH = 48
_HEADS = 4
_HIDDEN = 96


class TextTransformer(Encoder):
    """Word embeddings with learnt positions, two transformer blocks, and the mean over the words of a message.

    Layers: `block1` and `block2` have features at every word, `norm` the mean of each over the words; `logits`.
    Padding is neither attended to nor part of the mean. Dropout follows the embedding, the halves of the blocks, and
    the mean.

    Notes
    -----
    The encoder of A. Vaswani et al., "Attention Is All You Need", NeurIPS 2017, narrow and shallow, with an embedding
    learnt from the data itself: there are 3,563 messages to learn from.
    """

    padding_idx = _PADDING

    def __init__(self) -> None:
        super().__init__()
        self.embedding = _Words(_WORDS, _WIDTH, padding_idx=_PADDING)
        self.positions = nn.Parameter(torch.empty(_LENGTH, _WIDTH))
        self.drop1 = nn.Dropout(0.3)
        self.block1 = Block(_WIDTH, _HEADS, _HIDDEN, dropout=0.3)
        self.block2 = Block(_WIDTH, _HEADS, _HIDDEN, dropout=0.3)
        self.norm = nn.LayerNorm(_WIDTH)
        self.drop2 = nn.Dropout(0.5)
        self.logits = nn.Linear(_WIDTH, 6)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the positions anew; layers draw their own weights."""
        nn.init.normal_(self.positions, std=0.02)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores (n, 6) of token ids (n, length), int64, 0 = padding; at most 200 each."""
        seen = inputs != _PADDING
        seen[:, 0] = True  # an empty message consists of its first place
        tokens = self.drop1(self.embedding(inputs) + self.positions[: inputs.shape[1]])
        for block in (self.block1, self.block2):
            tokens = block(tokens, seen[:, None, None])
        mean = tokens.masked_fill(~seen[:, :, None], 0.0).sum(1) / seen.sum(1, keepdim=True)
        scores: Tensor = self.logits(self.drop2(self.norm(mean)))
        return scores


class _Words(nn.Embedding):
    """An embedding whose words start close together."""

    def reset_parameters(self) -> None:
        """Draw the words anew; from torch's unit variance a small data set only learns the noise by heart."""
        nn.init.normal_(self.weight, std=0.1)
        nn.init.zeros_(self.weight[_PADDING])
