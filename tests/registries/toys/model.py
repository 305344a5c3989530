"""A network in one file: any module, weights included."""

import torch
from torch import nn

from idc_core import network


class ToyNet(nn.Module):
    """Six hidden units over a picture of 4 x 4, the same weights every time."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.hidden = nn.Linear(16, 6)
            self.scores = nn.Linear(6, 2)

    def forward(self, inputs):
        return self.scores(torch.relu(self.hidden(inputs.flatten(1))))


@network(
    "toy-net",
    "Toy network",
    "Six hidden units over pictures of 4 x 4.",
    data="toy-squares",
    layer="hidden",
    layers=("hidden", "scores"),
)
def build():
    return ToyNet()
