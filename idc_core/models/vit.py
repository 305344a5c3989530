"""A small vision transformer for CIFAR-10."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.lrp.layer_parts import CLASS, HEADS
from idc_core.models.encoder import Block, Encoder

_WIDTH = 96
_HEADS = 4
_HIDDEN = 192
_PATCHES = 4 * 4


class ViT(Encoder):
    """Three convolutions that cut 32x32 colour images into 4x4 patches, four transformer blocks, and a class token.

    Layers: `stem1`, `stem2`, `patches` (96 features of each patch), `block1` to `block4` (the class token first, then
    the patches row by row), `norm` (of the class token alone), `logits`.

    Notes
    -----
    A. Dosovitskiy et al., "An Image Is Worth 16x16 Words", ICLR 2021, with three 3x3 convolutions of stride 2 instead
    of one of 8x8 without overlap, which learn in fewer epochs: T. Xiao et al., "Early Convolutions Help Transformers
    See Better", NeurIPS 2021.
    """

    parts = (CLASS, HEADS)

    channels_last = True

    def __init__(self) -> None:
        super().__init__()
        self.stem1 = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.stem2 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.patches = nn.Conv2d(64, _WIDTH, 3, stride=2, padding=1)
        self.class_token = nn.Parameter(torch.empty(1, 1, _WIDTH))
        self.positions = nn.Parameter(torch.empty(1, 1 + _PATCHES, _WIDTH))
        self.block1 = Block(_WIDTH, _HEADS, _HIDDEN)
        self.block2 = Block(_WIDTH, _HEADS, _HIDDEN)
        self.block3 = Block(_WIDTH, _HEADS, _HIDDEN)
        self.block4 = Block(_WIDTH, _HEADS, _HIDDEN)
        self.norm = nn.LayerNorm(_WIDTH)
        self.logits = nn.Linear(_WIDTH, 10)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the class token and the positions anew; layers draw their own weights."""
        nn.init.normal_(self.class_token, std=0.02)
        nn.init.normal_(self.positions, std=0.02)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores (n, 10) of images (n, 3, 32, 32) in 0..1."""
        patches = self.patches(F.relu(self.stem2(F.relu(self.stem1(inputs)))))
        patches = patches.flatten(2).transpose(1, 2)  # (n, 16, 96)
        tokens = torch.cat((self.class_token.expand(len(inputs), -1, -1), patches), dim=1) + self.positions
        for block in (self.block1, self.block2, self.block3, self.block4):
            tokens = block(tokens)
        scores: Tensor = self.logits(self.norm(tokens[:, 0]))
        return scores
