"""A network is given inputs as they lie when it runs alone, whatever looks at it, and however they were handed in."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import idc_core as idc
from idc_core.models import MODELS
from idc_core.models.convnet import ConvNet
from idc_core.tracing.batching import placed
from idc_core.tracing.trace import collect
from tests.lrp.view_programs import Parts

ATTACKS = ("fgsm", "bim", "pgd", "deepfool", "cw", "pgd-l2", "ddn", "jsma", "boundary", "hop-skip-jump")


class Viewing(nn.Module):
    """The network of a tutorial; it refuses a batch of none, whose `view` has no width, and writes into a view."""

    def __init__(self, colours, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.conv, self.out = nn.Conv2d(colours, 6, 3), nn.Linear(6 * 9, 3)
        self.eval()

    def forward(self, x):
        h = self.conv(x)
        torch.tanh_(h.view(h.size(0), -1)[:, ::2])
        h = F.max_pool2d(h, 2)
        return self.out(h.view(h.size(0), -1))


def pictures(colours, count=8):
    return torch.rand(count, colours, 8, 8, generator=torch.Generator().manual_seed(1))


GIVEN = {
    "row by row": lambda x: x,
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "turned": lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "an array with the channels last": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x.numpy(), 1, 3)), 3, 1),
    "a column-major array": lambda x: np.asfortranarray(x.numpy()),
    "a part": lambda x: torch.cat([x, x], 3)[..., :8],
}


@pytest.mark.parametrize("colours", [1, 3])
@pytest.mark.parametrize("given", GIVEN)
def test_scores_are_those_of_the_network_alone(given, colours):
    network, x = Viewing(colours), pictures(colours)
    with torch.no_grad():
        expected = network(x).numpy()
    np.testing.assert_array_equal(collect(network, GIVEN[given](x), ["conv"]).scores, expected)


@pytest.mark.parametrize("colours", [1, 3])
def test_attacks_and_searches_take_a_network_that_takes_views(colours):
    network, x = Viewing(colours), pictures(colours)
    with torch.no_grad():
        classes = network(x).argmax(1).numpy()
    for name in ATTACKS:
        settings = {"cw": {"iterations": 5, "search_steps": 1}, "boundary": {"steps": 50}}.get(name, {})
        result = idc.attack(network, x.numpy(), classes, name, **settings)
        np.testing.assert_array_equal(result.before, classes, err_msg=name)
    found = idc.differential_search([network, Viewing(colours, 1)], x.numpy(), iterations=2)
    assert found.inputs.shape[1:] == x.shape[1:]


def test_networks_of_ours_run_with_the_channels_last_and_what_is_derived_from_them_does_not():
    class Derived(ConvNet):
        def forward(self, inputs):
            return super().forward(inputs)

    def has_channels_last(network):
        return placed(network, torch.zeros(2, 3, 32, 32)).is_contiguous(memory_format=torch.channels_last)

    assert has_channels_last(MODELS["convnet-cifar10"].build())
    assert not has_channels_last(Derived())
    assert not has_channels_last(Parts(3))
