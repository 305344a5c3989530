"""Operations of today's networks: conservation of each, and slow versions of those that share in a way of their own."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from idc_core.lrp.pooling import _share_among_winners
from idc_core.tracing.trace import collect
from tests.lrp.networks import IMAGES, ROWS, SERIES, TOKENS, VOLUMES, Written, numbers, settle
from tests.lrp.test_conservation import check
from tests.lrp.test_equation import share

EVEN = IMAGES[..., :6, :6].repeat(1, 2, 1, 1)
WEIGHT = numbers(5, 6, 6, seed=3)
POSITIVE = IMAGES.abs()

# name: inputs, function; each only moves, sums or weighs numbers, so that without biases all relevance arrives.
FUNCTIONS = {
    "fold": (IMAGES, lambda x: F.fold(F.unfold(x, 3, padding=1), (7, 7), 3, padding=1)),
    "fold with stride": (EVEN, lambda x: F.fold(F.unfold(x, 2, stride=2), (6, 6), 2, stride=2)),
    "unfold of a tensor": (IMAGES, lambda x: x.unfold(2, 3, 2)),
    "overlapping chunks": (SERIES, lambda x: x.as_strided((len(x), 2, 3, 5), (18, 9, 2, 1))),
    "pixel unshuffle": (EVEN, lambda x: F.pixel_unshuffle(x, 2)),
    "channel shuffle": (EVEN, nn.ChannelShuffle(2)),
    "nearest": (IMAGES, lambda x: F.interpolate(x, scale_factor=2)),
    "bilinear": (IMAGES, lambda x: F.interpolate(x, size=(5, 9), mode="bilinear", align_corners=False)),
    "linear": (SERIES, lambda x: F.interpolate(x, size=5, mode="linear")),
    "trilinear": (VOLUMES, lambda x: F.interpolate(x, scale_factor=2, mode="trilinear")),
    "bicubic": (IMAGES, lambda x: F.interpolate(x, size=(5, 5), mode="bicubic")),
    "area": (IMAGES, lambda x: F.interpolate(x, size=(3, 3), mode="area")),
    "cumsum": (ROWS, lambda x: x.cumsum(1)),
    "where": (ROWS, lambda x: torch.where(x > 0, x, 0.5 * x)),
    "where a constant": (ROWS, lambda x: torch.where(x > -0.7, x, 0.0)),
    "einsum": (ROWS, lambda x: torch.einsum("ni,kij->nkj", x, WEIGHT)),
    "circular padding": (IMAGES, lambda x: F.pad(x, (1, 1, 2, 0), mode="circular")),
    "replicated padding": (IMAGES, lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate")),
    "cropping": (IMAGES, lambda x: F.pad(x, (-1, 1))),
    "alpha dropout": (ROWS, lambda x: F.alpha_dropout(x, 0.5, training=False)),
    "feature dropout": (IMAGES, lambda x: F.feature_alpha_dropout(x, 0.5, training=False)),
    "vstack": (ROWS, lambda x: torch.vstack([x])),
    "dstack": (ROWS, lambda x: torch.dstack([x, torch.zeros_like(x), x])),
    "column stack": (ROWS, lambda x: torch.column_stack([x, x])),
    "fliplr": (ROWS, torch.fliplr),
    "amin": (IMAGES.round(), lambda x: x.amin((2, 3))),
    "min": (SERIES, lambda x: x.min(2)[0]),
    "inner": (ROWS, lambda x: torch.inner(x, WEIGHT[0])),
    "tensordot": (ROWS, lambda x: torch.tensordot(x, WEIGHT, dims=([1], [1]))),
    "tensordot of two": (ROWS[:1], lambda x: torch.tensordot(x, x + torch.tanh(x), dims=([1], [1]))),
    "lerp": (ROWS, lambda x: torch.lerp(x, torch.relu(x), 0.3)),
    "lerp of a gate": (ROWS, lambda x: torch.lerp(x, torch.tanh(x), torch.sigmoid(x.flip(1)))),
    "bilinear layer": (ROWS, lambda x: F.bilinear(x, torch.tanh(x.flip(1)), WEIGHT)),
    "bilinear layer, one fixed": (ROWS, lambda x: F.bilinear(x, torch.ones_like(x), WEIGHT)),
    "bilinear layer, other fixed": (ROWS, lambda x: F.bilinear(torch.ones_like(x), x, WEIGHT)),
    "lp pool": (POSITIVE, lambda x: F.lp_pool2d(x, 2, 3, 2)),
    "lp pool of cubes": (POSITIVE, nn.LPPool2d(3, (2, 3), ceil_mode=True)),
    "lp pool 1d": (SERIES, nn.LPPool1d(2, 3)),
    "lp pool 3d": (VOLUMES, nn.LPPool3d(4, 2)),
    "squeeze and excitation": (
        IMAGES,
        lambda x: x * torch.sigmoid(F.conv2d(F.adaptive_avg_pool2d(x, 1), WEIGHT[0, :2, :2, None, None])),
    ),
    "depthwise": (EVEN, lambda x: F.conv2d(x, WEIGHT[:4, None, :3, :3], groups=4)),
}
HALVES = {"lerp of a gate"}
"""Here a sum holds a constant, which keeps a share where biases do."""


def network_of(inputs, function, bias=True):
    with torch.no_grad():
        width = function(inputs).flatten(1).shape[1]
    return settle(Written(lambda net, x: net.out(function(x).flatten(1)), out=nn.Linear(width, 3, bias)))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_conserved(name):
    inputs, function = FUNCTIONS[name]
    for rule in ("epsilon", "gamma", "alpha-beta"):
        check(network_of(inputs, function), inputs, ["input", "out"], bias="redistribute", rule=rule)
    if name not in HALVES:
        check(network_of(inputs, function, False), inputs, ["input", "out"], 1e-7, bias="absorb", rule="z")


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_embeddings(mode):
    network = settle(
        Written(lambda net, x: net.out(net.a(x)), a=nn.EmbeddingBag(10, 6, mode=mode), out=nn.Linear(6, 3))
    )
    check(network, TOKENS, ["a", "out"], bias="redistribute", rule="epsilon")


def test_stochastic_depth_is_the_identity_in_evaluation():
    class DropPath(nn.Module):
        def forward(self, x):
            if not self.training:
                return x
            return x * (torch.rand(len(x), 1) > 0.5) / 0.5

    def forward(net, x):
        return net.out(x + net.drop(net.a(x)))

    network = settle(Written(forward, a=nn.Linear(6, 6), drop=DropPath(), out=nn.Linear(6, 3))).train()
    check(network.eval(), ROWS, ["input", "drop", "out"][::2], bias="redistribute", rule="epsilon")


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("rule", ["z", "epsilon", "gamma", "alpha-beta"])
def test_a_fold_shares_as_the_sum_that_it_is(rule, bias):
    x, size = numbers(1, 4, 4), 5  # patches of 2 x 2 laid in a row of 2 x 5
    network = network_of(x, lambda x: F.fold(x, (2, size), 2))
    found = relevance(network, x, ["input"], rule, 0.05, gamma=0.4, alpha=3.0, bias=bias)["input"][0]
    w = np.zeros((16, 10))
    for row, column, patch in np.ndindex(2, 2, 4):
        w[(row * 2 + column) * 4 + patch, row * size + patch + column] = 1
    folded = settle(Written(lambda net, x: net.out(x), out=network.out))
    z = torch.tensor(x.flatten().numpy() @ w)[None]
    above = relevance(folded, z, ["input"], rule, 0.05, gamma=0.4, alpha=3.0, bias=bias)["input"][0]
    expected = share(rule, bias, x.flatten().numpy(), w, w > 0, np.zeros(10)) @ above
    np.testing.assert_allclose(found.flatten(), expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("power", [2, 4])
def test_power_pooling_shares_by_powers(power):
    network = network_of(SERIES, lambda x: F.lp_pool1d(x, power, 3, 2))
    found = relevance(network, SERIES, ["input"], "z")["input"]
    z = F.lp_pool1d(SERIES, power, 3, 2)
    above = relevance(Written(lambda net, x: net.out(x.flatten(1)), out=network.out), z, ["input"], "z")["input"]
    expected = np.zeros(SERIES.shape)
    for n, c, j in np.ndindex(*z.shape):
        window = SERIES[n, c, 2 * j : 2 * j + 3].numpy() ** power
        np.testing.assert_allclose(z[n, c, j], window.sum() ** (1 / power))
        expected[n, c, 2 * j : 2 * j + 3] += above[n, c, j] * window / window.sum()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", [(2, 2), (3, 2), (1, 41)])
def test_winners_of_max_pooling_share_equally_in_every_layout(kernel):
    height, width = kernel
    x = torch.randint(0, 3, (2, 9, 2 * height, 3 * width), generator=torch.Generator().manual_seed(0)).double()
    z, above = F.max_pool2d(x, kernel), numbers(2, 9, 2, 3, seed=4)
    expected = torch.zeros_like(x)
    for n, c, i, j in np.ndindex(*z.shape):
        window = (n, c, slice(i * height, (i + 1) * height), slice(j * width, (j + 1) * width))
        winners = x[window] == z[n, c, i, j]
        expected[window] = above[n, c, i, j] * winners / winners.sum()
    sizes = [kernel, kernel, (0, 0), (1, 1)]
    for layout in (torch.contiguous_format, torch.channels_last):
        found = _share_among_winners(x.contiguous(memory_format=layout), z, above, sizes)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("rule", ["z", "epsilon", "gamma", "alpha-beta"])
def test_a_bilinear_layer_with_one_fixed_input_is_dense(rule, bias):
    fixed = numbers(1, 4, seed=5)

    def forward(net, x):
        return net.out(net.a(x, fixed))

    network = settle(Written(forward, a=nn.Bilinear(3, 4, 5), out=nn.Linear(5, 3)))
    x = numbers(1, 3)
    found = relevance(network, x, ["input", "a"], rule, 0.05, gamma=0.4, alpha=3.0, bias=bias)
    w = np.zeros((3, 5))
    for k, i, j in np.ndindex(5, 3, 4):
        w[i, k] += network.a.weight[k, i, j].item() * fixed[0, j].item()
    parts = share(rule, bias, x[0].numpy(), w, np.ones_like(w, bool), network.a.bias.detach().numpy())
    np.testing.assert_allclose(found["input"][0], parts @ found["a"][0], rtol=1e-9)


def test_a_bilinear_layer_of_two_inputs_gives_each_half():
    # The uniform rule: of z_k = sum_ij w_kij x_i y_j each factor takes half, divided by contributions.
    network = settle(
        Written(lambda net, x: net.out(net.a(net.x(x), net.y(x))), x=nn.Linear(6, 3), y=nn.Linear(6, 4),
                a=nn.Bilinear(3, 4, 5, bias=False), out=nn.Linear(5, 3))
    )  # fmt: skip
    found = relevance(network, ROWS, ["x", "y", "a"], "z")
    for n, row in enumerate(ROWS):
        x, y, z = (one.detach() for one in (network.x(row), network.y(row), network.a(network.x(row), network.y(row))))
        above, expected = found["a"][n], {"x": np.zeros(3), "y": np.zeros(4)}
        for k, i, j in np.ndindex(5, 3, 4):
            part = (network.a.weight[k, i, j] * x[i] * y[j] / z[k]).item() * above[k] / 2
            expected["x"][i] += part
            expected["y"][j] += part
        for layer, values in expected.items():
            np.testing.assert_allclose(found[layer][n], values, rtol=1e-9)


def test_cumulated_sums_share_by_contributions():
    network = network_of(ROWS, lambda x: x.cumsum(1))
    found = relevance(network, ROWS, ["input"], "z")["input"]
    z = ROWS.cumsum(1)
    above = relevance(Written(lambda net, x: net.out(x), out=network.out), z, ["input"], "z")["input"]
    for n, row in enumerate(ROWS.numpy()):
        expected = [sum(row[i] / z[n, j].item() * above[n, j] for j in range(i, 6)) for i in range(6)]
        np.testing.assert_allclose(found[n], expected, rtol=1e-9)
    assert collect(network, ROWS, ["out"]).activations["out"].shape == (4, 3)
