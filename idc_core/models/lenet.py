"""LeNet-1, LeNet-4 and LeNet-5: two convolutions with pooling, then none, one or two hidden dense layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.models.network import Network


class LeNet(Network):
    """A LeNet for 28x28 grey images and ten classes.

    Layers: `conv1`, `pool1`, `conv2`, `pool2`, then `fc1`, `fc2`, ... and `logits`. `channels` are the filters of the
    two 5x5 convolutions, `hidden` the units of the hidden dense layers; a padding of 2 keeps the size ("same"), 0 is
    "valid".

    Notes
    -----
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document recognition",
    Proceedings of the IEEE 86(11), 1998, in the simplified form of DeepXplore (SOSP 2017): ReLU, max pooling,
    full connections between the two convolutions.
    """

    channels_last = True

    def __init__(self, channels: tuple[int, int], hidden: Sequence[int], padding: int) -> None:
        super().__init__()
        first, second = channels
        self.conv1 = nn.Conv2d(1, first, 5, padding=padding)
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(first, second, 5, padding=padding)
        self.pool2 = nn.MaxPool2d(2)
        side = ((28 + 2 * padding - 4) // 2 + 2 * padding - 4) // 2
        width = second * side * side
        self.dense = tuple(f"fc{number}" for number in range(1, len(hidden) + 1))
        for name, units in zip(self.dense, hidden, strict=True):
            self.add_module(name, nn.Linear(width, units))
            width = units
        self.logits = nn.Linear(width, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores (n, 10) of images (n, 1, 28, 28) in 0..1."""
        hidden = self.pool1(F.relu(self.conv1(inputs)))
        hidden = self.pool2(F.relu(self.conv2(hidden))).flatten(1)
        for name in self.dense:
            hidden = F.relu(self.get_submodule(name)(hidden))
        scores: Tensor = self.logits(hidden)
        return scores
