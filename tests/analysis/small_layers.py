"""A setup file: a network with dropout, a layer of three neurons, and one whose neurons never fire."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import relu

import idc_core as idc


class SmallLayers(nn.Module):
    """Scores come from both layers, of which one is silent."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.three, self.dead = nn.Linear(4, 3), nn.Linear(4, 8)
        self.wide, self.drop, self.out = nn.Linear(3, 9), nn.Dropout(0.3), nn.Linear(17, 3)
        self.dead.bias.data[:] = -1000

    def forward(self, x):
        return self.out(self.drop(torch.cat([relu(self.wide(relu(self.three(x)))), relu(self.dead(x))], 1)))


@idc.dataset("small-rows", class_names=("a", "b", "c"))
def rows(split):
    random = np.random.default_rng(split == "test")
    count = 60 if split == "test" else 150
    return random.normal(size=(count, 4)).astype(np.float32), random.integers(0, 3, count)


@idc.network("small-layers", "Small layers", data="small-rows", layer="three", layers=("three", "dead", "wide"))
def build():
    return SmallLayers()
