"""Small networks and data of the tests of the check: registered for one test, and trained once where they learn."""

from functools import cache

import numpy as np
import torch
from torch import nn

import idc_core as idc
from idc_core.datasets import load_dataset


class Before(nn.Module):
    """A network with something done to its inputs first, or to its scores afterwards."""

    def __init__(self, inner, inputs=None, scores=None):
        super().__init__()
        self.inner, self._inputs, self._scores = inner, inputs, scores

    def forward(self, inputs):
        """Run it."""
        scores = self.inner(self._inputs(inputs) if self._inputs else inputs)
        return self._scores(scores) if self._scores else scores


def lenet():
    """Return a trained network for the digits."""
    return idc.load_model("lenet4-digits")


@cache
def digits(split):
    """Return inputs and targets of the digits."""
    data = load_dataset("digits", split)
    return data.inputs, data.targets


def colours(split):
    """Return pictures whose class is how bright one channel is, and where: another scale, order or place is another."""
    rng = np.random.default_rng(0 if split == "train" else 1)
    targets = np.arange(600 if split == "train" else 240) % 6
    pictures = rng.uniform(0.0, 1.0, (len(targets), 3, 8, 8)).astype(np.float32)
    for picture, target in zip(pictures, targets, strict=True):
        place, level = divmod(int(target), 3)
        picture[0, 4 * place : 4 * place + 4, :3] = 0.2 + 0.3 * level + rng.uniform(-0.1, 0.1, (4, 3))
        picture[0, 4 - 4 * place : 8 - 4 * place, :3] = 0.0
    return pictures, targets


class Colours(nn.Module):
    """A network that learns them."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.hidden = nn.Linear(8 * 16, 16)
        self.last = nn.Linear(16, 6)

    def forward(self, pictures):
        """Return scores."""
        return self.last(torch.relu(self.hidden(self.pool(torch.relu(self.conv(pictures))).flatten(1))))


def train(network, inputs, targets, loss=nn.functional.cross_entropy, steps=150, rate=0.01):
    """Train a network on all inputs at once and return it."""
    torch.manual_seed(0)
    for module in network.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    inputs, targets = (
        torch.tensor(values) if isinstance(values, np.ndarray) else values for values in (inputs, targets)
    )
    optimizer = torch.optim.Adam(network.parameters(), rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(network(inputs), targets).backward()
        optimizer.step()
    return network.eval()


MEAN, DEVIATION = (torch.tensor(value)[:, None, None] for value in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


@cache
def trained_colours():
    """Return the network, trained on pictures standardised by ImageNet's constants."""
    pictures, targets = colours("train")
    return train(Colours(), (torch.tensor(pictures) - MEAN) / DEVIATION, targets)
