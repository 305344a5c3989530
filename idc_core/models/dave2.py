"""Dave-2, NVIDIA's network that steers a car from a camera picture."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.models.network import Network


class Dave2(Network):
    """Five convolutions and four hidden dense layers that turn 100x100 colour images into a steering angle.

    Layers: `conv1` to `conv5`, `fc1` to `fc4`, `steering`; 2,116,983 parameters.

    Notes
    -----
    M. Bojarski et al., "End to End Learning for Self-Driving Cars", 2016, at DeepXplore's input size. As in
    NVIDIA's network the output is linear; DeepXplore bounds it by 2 atan(score). Angles here stay below 1
    radian, so nothing needs the bound, and relevance can start from the angle itself. Pixels are RGB in 0..1
    without normalisation, where DeepXplore subtracts channel means from BGR.
    """

    channels_last = True

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 24, 5, stride=2)
        self.conv2 = nn.Conv2d(24, 36, 5, stride=2)
        self.conv3 = nn.Conv2d(36, 48, 5, stride=2)
        self.conv4 = nn.Conv2d(48, 64, 3)
        self.conv5 = nn.Conv2d(64, 64, 3)
        self.fc1 = nn.Linear(64 * 5 * 5, 1164)
        self.fc2 = nn.Linear(1164, 100)
        self.fc3 = nn.Linear(100, 50)
        self.fc4 = nn.Linear(50, 10)
        self.steering = nn.Linear(10, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the angles (n, 1) in radians, positive = left, of images (n, 3, 100, 100) in 0..1."""
        hidden = F.relu(self.conv1(inputs))
        hidden = F.relu(self.conv2(hidden))
        hidden = F.relu(self.conv3(hidden))
        hidden = F.relu(self.conv4(hidden))
        hidden = F.relu(self.conv5(hidden)).flatten(1)
        hidden = F.relu(self.fc1(hidden))
        hidden = F.relu(self.fc2(hidden))
        hidden = F.relu(self.fc3(hidden))
        hidden = F.relu(self.fc4(hidden))
        angles: Tensor = self.steering(hidden)
        return angles
