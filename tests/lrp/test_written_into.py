"""What is written into after it was noted is not folded as it was; half precision is folded like single precision."""

import copy
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core.lrp.rules import RULES, RelevanceSettings
from idc_core.tracing.trace import trace


def normalisation(channels):
    norm = nn.BatchNorm2d(channels)
    torch.manual_seed(1)
    norm.running_mean += torch.randn(channels)
    norm.running_var += torch.rand(channels)
    norm.weight.data += 0.3 * torch.randn(channels)
    norm.bias.data += 0.3
    return norm


def of_parts(make):
    torch.manual_seed(0)
    net = nn.Sequential(*make(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5)).eval()
    net(torch.zeros(1, 3, 8, 8))
    return net


def found(net, layer, rule, bias="absorb"):
    torch.manual_seed(2)
    x = torch.randn(4, 3, 8, 8).to(next(net.parameters()).dtype)
    (batch,) = trace(net.eval(), x, [layer], RelevanceSettings(rule, bias=bias))
    return batch.relevance[layer]


ORDERS = {
    "norm, relu, conv": lambda place: (normalisation(3), nn.ReLU(place), nn.Conv2d(3, 4, 3)),
    "conv, relu, norm": lambda place: (nn.Conv2d(3, 3, 3), nn.ReLU(place), normalisation(3), nn.Conv2d(3, 4, 3)),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("layer", ["0", "1", "2"])
@pytest.mark.parametrize("order", ORDERS)
def test_an_activation_in_place_is_the_same_as_one_that_is_not(order, layer, rule):
    one, other = (found(of_parts(partial(ORDERS[order], place)).double(), layer, rule) for place in (True, False))
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


class Changed(nn.Module):
    """Writes into what its normalisation was given, or into a copy of it."""

    def __init__(self, in_place):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.conv, self.out = (
            nn.Conv2d(3, 3, 3),
            normalisation(3),
            nn.Conv2d(3, 4, 3),
            nn.Linear(64, 5),
        )
        self.in_place = in_place

    def forward(self, x):
        x = torch.tanh(self.first(x))
        y = self.norm(x)
        if self.in_place:
            F.relu_(x)
        return self.out(torch.relu(self.conv(y)).flatten(1)) if y.shape[-1] < 5 else self.end(y)

    def end(self, y):
        return self.out(F.adaptive_avg_pool2d(torch.relu(self.conv(y)), 4).flatten(1))


@pytest.mark.parametrize("rule", ["epsilon", "gamma", "alpha-beta", "composite"])
def test_what_a_map_was_given_may_change_behind_it(rule):
    plain = found(Changed(False).double(), "conv", rule)
    torch.testing.assert_close(found(Changed(True).double(), "conv", rule), plain, rtol=1e-9, atol=1e-12)
    one, other = (found(Changed(place).double(), "norm", rule, "redistribute") for place in (True, False))
    assert one.isfinite().all()
    torch.testing.assert_close(one.sum((1, 2, 3)), other.sum((1, 2, 3)), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_folded_too(dtype, rule):
    net = of_parts(lambda: (nn.Conv2d(3, 4, 1), normalisation(4), nn.Conv2d(4, 4, 3)))
    whole = found(net, "1", rule)
    half = found(copy.deepcopy(net).to(dtype), "1", rule)
    assert half.isfinite().all()
    assert float((half - whole).abs().sum()) < 0.05 * float(whole.abs().sum())
