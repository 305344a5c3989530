"""The epsilon rule equals captum's, to rounding, on the networks that captum supports."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from tests.lrp.networks import IMAGES, ROWS, Written, settle

captum_attr = pytest.importorskip("captum.attr")
captum_rules = pytest.importorskip("captum.attr._utils.lrp_rules")

NETWORKS = {
    "dense": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 7), nn.Tanh(), nn.Dropout(), nn.Linear(7, 3)),
        ROWS,
        ("0", "2", "5"),
    ),
    "convolutions": (
        lambda: Written(
            lambda net, x: net.fc(net.pool(net.conv2(net.tanh(net.bn(net.relu(net.conv1(x)))))).flatten(1)),
            conv1=nn.Conv2d(2, 3, 3, padding=1),
            relu=nn.ReLU(),
            bn=nn.BatchNorm2d(3),  # beside no linear operation: captum takes it for one of its own everywhere
            tanh=nn.Tanh(),
            conv2=nn.Conv2d(3, 4, 2),
            pool=nn.AvgPool2d(3, 2),
            fc=nn.Linear(16, 3),
        ),
        IMAGES,
        ("conv1", "bn", "conv2", "pool", "fc"),
    ),
    "max pooling": (
        lambda: Written(
            lambda net, x: net.fc(net.dropout(net.mean(net.pool(net.tanh(net.conv(x)))).flatten(1))),
            conv=nn.Conv2d(2, 5, 2, stride=1),
            tanh=nn.Tanh(),
            pool=nn.MaxPool2d(2, ceil_mode=True),
            mean=nn.AdaptiveAvgPool2d((2, 1)),
            dropout=nn.Dropout(),
            fc=nn.Linear(10, 3),
        ),
        IMAGES,
        ("conv", "pool", "mean", "fc"),
    ),
}


def ruled(network, epsilon):
    """Give captum its rules; its max pooling takes an epsilon, ours has none, so there it gets a negligible one."""
    for module in network.modules():
        if not list(module.children()) and not isinstance(module, nn.ReLU | nn.Tanh | nn.Dropout):
            pooled = isinstance(module, nn.MaxPool2d)
            module.rule = captum_rules.EpsilonRule(1e-30 if pooled else epsilon)
    return network


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.25])
@pytest.mark.parametrize("name", NETWORKS)
def test_equal_to_captum(name, epsilon):
    build, inputs, layers = NETWORKS[name]
    network = settle(build())
    with torch.no_grad():
        predicted = network(inputs).argmax(1)
    found = relevance(network, inputs.numpy(), ("input", *layers), epsilon=epsilon)
    inputs = inputs.clone().requires_grad_()
    theirs = captum_attr.LRP(ruled(settle(build()), epsilon)).attribute(inputs, predicted).detach()
    np.testing.assert_allclose(found["input"], theirs, rtol=1e-9, atol=1e-12 * theirs.abs().max())
    for layer in layers:
        network = ruled(settle(build()), epsilon)
        place = dict(network.named_modules())[layer]
        theirs = captum_attr.LayerLRP(network, place).attribute(inputs, predicted).detach()
        np.testing.assert_allclose(found[layer], theirs, rtol=1e-9, atol=1e-12 * theirs.abs().max(), err_msg=layer)


def test_captum_is_wrong_without_a_word_where_operations_are_no_modules():
    # Why operations are intercepted: the same network, its activation and its residual sum written as functions.
    def forward(net, x):
        return net.b(torch.tanh(net.a(x)) + x)

    def build():
        return settle(Written(forward, a=nn.Linear(6, 6), b=nn.Linear(6, 3)))

    network = build()
    with torch.no_grad():
        hidden = network.a(ROWS)
        z = torch.tanh(hidden) + ROWS
        predicted = network.b(z).argmax(1)
        # By hand, for the plain rule: z_j gives its two summands, and the one behind tanh gives its inputs, their part.
        above = network.b.weight[predicted] * z
        below = above * torch.tanh(hidden) / z / hidden
        by_hand = above * ROWS / z + below @ network.a.weight * ROWS
    found = relevance(network, ROWS, ["input"], "z")["input"]
    np.testing.assert_allclose(found, by_hand, rtol=1e-9)
    theirs = captum_attr.LRP(ruled(build(), 1e-12)).attribute(ROWS.clone().requires_grad_(), predicted).detach()
    assert np.abs(found - theirs.numpy()).max() > 0.1 * np.abs(found).max()


def test_functional_and_module_forms_agree():
    def written(net, x):
        x = F.max_pool2d(F.relu(F.conv2d(x, net.conv.weight, net.conv.bias)), 2)
        return F.linear(torch.flatten(x, 1), net.fc.weight, net.fc.bias)

    modules = nn.Sequential(nn.Conv2d(2, 3, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 3))
    network = settle(modules)
    functions = Written(written, conv=network[0], fc=network[4])
    for rule in ("z", "epsilon", "gamma", "alpha-beta", "composite"):
        expected = relevance(network, IMAGES, ["input"], rule)["input"]
        np.testing.assert_array_equal(relevance(functions, IMAGES, ["input"], rule)["input"], expected)
