"""Normalisations of channels against slow versions: affine with the deviation of each group held constant."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from idc_core.tracing.neurons import CHANNELS, neuron_axes
from tests.lrp.networks import IMAGES, SERIES, VOLUMES, Written, numbers, settle
from tests.lrp.test_conservation import check
from tests.lrp.test_equation import share

GROUPS = {"group": (2, lambda: nn.GroupNorm(2, 4)), "instance": (4, lambda: nn.InstanceNorm2d(4, affine=True))}


def dense_form(x, groups, weight, bias, eps):
    """Return a normalisation of (channels, height, width) as weights over flattened maps, connections and biases."""
    channels, size = x.shape[0], x[0].size
    per_group = channels // groups
    w, connected = np.zeros((x.size, x.size)), np.zeros((x.size, x.size), bool)
    for g in range(groups):
        members = slice(g * per_group * size, (g + 1) * per_group * size)
        deviation = np.sqrt(x[g * per_group : (g + 1) * per_group].var() + eps)
        count = per_group * size
        w[members, members] = (np.eye(count) - 1 / count) / deviation
        connected[members, members] = True
    return w * np.repeat(weight, size), connected, np.repeat(bias, size)


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("rule", ["z", "epsilon"])
@pytest.mark.parametrize("kind", GROUPS)
def test_equal_to_a_slow_version(kind, rule, bias):
    groups, build = GROUPS[kind]
    x = numbers(1, 4, 2, 3)
    norm = settle(build())
    network = nn.Sequential(norm, nn.Flatten(), settle(nn.Linear(24, 3)))
    found = relevance(network, x, ["input", "0"], rule, 0.05, bias=bias)
    shift = norm.bias.detach().numpy()
    w, connected, b = dense_form(x[0].numpy(), groups, norm.weight.detach().numpy(), shift, norm.eps)
    np.testing.assert_allclose(x[0].flatten().numpy() @ w + b, norm(x)[0].flatten().detach(), rtol=1e-9)
    expected = share(rule, bias, x[0].flatten().numpy(), w, connected, b) @ found["0"][0].flatten()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found["input"][0].flatten(), expected, rtol=1e-9, atol=1e-11 * scale)


NETWORKS = {
    "group norm of one group": (IMAGES, lambda bias: nn.GroupNorm(1, 2, affine=bias)),
    "group norm of series": (SERIES, lambda bias: nn.GroupNorm(2, 2, affine=bias)),
    "instance norm 1d": (SERIES, lambda bias: nn.InstanceNorm1d(2, affine=bias)),
    "instance norm 2d": (IMAGES, lambda bias: nn.InstanceNorm2d(2, affine=bias)),
    "instance norm 3d": (VOLUMES, lambda bias: nn.InstanceNorm3d(2, affine=bias)),
    "local response": (IMAGES, lambda bias: nn.LocalResponseNorm(3, alpha=0.5)),
    "local response of series": (SERIES, lambda bias: nn.LocalResponseNorm(2, alpha=0.5)),
    "stored statistics": (IMAGES, lambda bias: nn.InstanceNorm2d(2, affine=True, track_running_stats=True)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_conserved(name):
    inputs, build = NETWORKS[name]

    def network(bias):
        width = inputs[0].numel()
        return settle(
            Written(lambda net, x: net.out(F.relu(net.a(x)).flatten(1)), a=build(bias), out=nn.Linear(width, 3, bias))
        )

    for rule in ("epsilon", "gamma", "alpha-beta", "composite"):
        check(network(True), inputs, ["input", "a", "out"], bias="redistribute", rule=rule)
    if name != "stored statistics":
        check(network(False), inputs, ["input", "a", "out"], 1e-7, bias="absorb", rule="z")


def test_local_response_hands_relevance_on_unchanged():
    network = settle(nn.Sequential(nn.LocalResponseNorm(3, alpha=0.5), nn.Flatten(), nn.Linear(98, 3)))
    found = relevance(network, IMAGES, ["input", "0"])
    np.testing.assert_array_equal(found["input"], found["0"])
    assert (network[0](IMAGES) - IMAGES).abs().max() > 0.1


def test_stored_statistics_are_those_of_batch_normalisation():
    batch, instance = nn.BatchNorm2d(2), nn.InstanceNorm2d(2, affine=True, track_running_stats=True)
    networks = [settle(nn.Sequential(norm, nn.Flatten(), nn.Linear(98, 3))) for norm in (batch, instance)]
    networks[1].load_state_dict(networks[0].state_dict())
    found, same = (relevance(network, IMAGES, ["input"])["input"] for network in networks)
    np.testing.assert_allclose(found, same, rtol=1e-12)


@pytest.mark.parametrize(
    "parametrise", [nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.spectral_norm]
)
def test_parametrised_weights_are_the_weights_that_they_give(parametrise):
    plain = settle(nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(75, 3)))
    with torch.no_grad():
        found = settle(nn.Sequential(parametrise(nn.Conv2d(2, 3, 3)), nn.ReLU(), nn.Flatten(), nn.Linear(75, 3)))
        plain[0].weight.data, plain[0].bias.data = found[0].weight.clone(), found[0].bias.clone()
        plain[3].load_state_dict(found[3].state_dict())
    for bias in ("absorb", "redistribute"):
        one, other = (relevance(network, IMAGES, ["input", "0"], "gamma", bias=bias) for network in (found, plain))
        for layer in one:
            np.testing.assert_allclose(one[layer], other[layer], rtol=1e-9)


def test_neurons_are_channels():
    network = nn.Sequential(nn.GroupNorm(1, 2), nn.InstanceNorm1d(2, affine=True), nn.LocalResponseNorm(2))
    assert set(neuron_axes(network, ["0", "1", "2"]).values()) == {CHANNELS}
