"""The paper's convolutional network for CIFAR-10."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.models.network import Network


class ConvNet(Network):
    """Four 3x3 convolutions and two hidden dense layers for 32x32 colour images, 952,234 parameters.

    Layers: `conv1`, `conv2`, `pool1`, `conv3`, `conv4`, `pool2`, `fc1`, `fc2`, `logits`; dropout after each
    pooling and after `fc1`.

    Notes
    -----
    The paper (DeepImportance, ICSE 2020, Table 1) gives only the number of layers and of parameters.
    Convolutions without padding leave 64 maps of 5x5 for the first dense layer, which the count asks for.
    """

    channels_last = True

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3)
        self.conv2 = nn.Conv2d(32, 32, 3)
        self.pool1 = nn.MaxPool2d(2)
        self.drop1 = nn.Dropout(0.25)
        self.conv3 = nn.Conv2d(32, 64, 3)
        self.conv4 = nn.Conv2d(64, 64, 3)
        self.pool2 = nn.MaxPool2d(2)
        self.drop2 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(64 * 5 * 5, 512)
        self.drop3 = nn.Dropout(0.5)
        self.fc2 = nn.Linear(512, 128)
        self.logits = nn.Linear(128, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores (n, 10) of images (n, 3, 32, 32) in 0..1."""
        hidden = F.relu(self.conv2(F.relu(self.conv1(inputs))))
        hidden = self.drop1(self.pool1(hidden))
        hidden = F.relu(self.conv4(F.relu(self.conv3(hidden))))
        hidden = self.drop2(self.pool2(hidden)).flatten(1)
        hidden = self.drop3(F.relu(self.fc1(hidden)))
        scores: Tensor = self.logits(F.relu(self.fc2(hidden)))
        return scores
