"""Networks that attribution methods are tried on, and the names of those methods that run through captum."""

import torch.nn.functional as F
from torch import nn

from idc_core.attribution.methods import METHODS
from idc_core.lrp.rules import RULES

THROUGH_CAPTUM = [name for name in METHODS if name not in RULES]
INSIDE = [name for name in THROUGH_CAPTUM if METHODS[name].inside]  # those that say something of layers


class Functional(nn.Module):
    """A network whose activations and one of whose poolings are calls, not modules."""

    def __init__(self, activation=F.relu):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 5, 3)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(20, 8)
        self.logits = nn.Linear(8, 3)
        self.activation = activation

    def forward(self, x):
        x = F.max_pool2d(self.activation(self.conv1(x)), 2)
        x = self.pool(self.activation(self.conv2(x)))
        return self.logits(self.activation(self.fc1(x.flatten(1))))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 6, padding_idx=0)
        self.conv = nn.Conv1d(6, 5, 2)
        self.logits = nn.Linear(5, 3)

    def forward(self, ids):
        return self.logits(F.relu(self.conv(self.embedding(ids).transpose(1, 2))).mean(2))


class Sharing(nn.Module):
    """A residual network that uses one in-place ReLU three times and ends in a softmax."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.relu = nn.ReLU(inplace=True)
        self.logits = nn.Linear(6, 4)

    def forward(self, x):
        x = self.relu(self.first(x))
        x = self.relu(x + self.relu(self.second(x)))
        return F.softmax(self.logits(x), 1)

    def scores(self, x):
        x = F.relu(self.first(x))
        return self.logits(F.relu(x + F.relu(self.second(x))))
