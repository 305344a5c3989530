"""The network and the images that most attribution methods are tried on."""

import pytest
import torch
from torch import nn

from tests.attribution.networks import Functional


@pytest.fixture
def network():
    torch.manual_seed(1)
    network = Functional().double()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.4)
    return network


@pytest.fixture
def images():
    # Half of the pixels are black, like the baseline: differences of exactly zero are the hard case.
    return (torch.rand(7, 1, 12, 12, generator=torch.Generator().manual_seed(0)).double() - 0.5).clamp(min=0)
