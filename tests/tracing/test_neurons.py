"""Where the neurons of a layer lie: units, channels, features of tokens."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.tracing.neurons import CHANNELS, TOKENS, UNITS, axis_in, neuron_axes
from idc_core.tracing.trace import collect
from tests.lrp.networks import IMAGES, SEQUENCES, SERIES, Written, settle


def network():
    return settle(
        Written(
            lambda net, x: net.out(net.act(net.block(x)).mean(1)),
            block=nn.TransformerEncoderLayer(6, 2, 8, batch_first=True),
            act=nn.GELU(),
            out=nn.Linear(6, 3),
        )
    )


def test_features_of_tokens_are_the_neurons_of_a_block():
    net = network()
    assert neuron_axes(net, ["block", "block.dropout1", "act", "out", "input"]) == {
        "block": TOKENS,
        "block.dropout1": UNITS,
        "act": UNITS,
        "out": UNITS,
        "input": CHANNELS,
    }
    found = collect(net, SEQUENCES, ["block"])
    with torch.no_grad():
        expected = net.act(net.block(SEQUENCES)).mean(1).numpy()
    np.testing.assert_allclose(found.activations["block"], expected, rtol=1e-5)
    assert found.shapes["block"] == (5, 6)


@pytest.mark.parametrize(
    ("block", "inputs", "neurons"),
    [
        (nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU()), SERIES, 4),
        (nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)), IMAGES, 4),
        (nn.Sequential(nn.Linear(6, 8), nn.ReLU()), SEQUENCES, 8),
    ],
)
def test_a_block_of_convolutions_keeps_its_channels(block, inputs, neurons):
    net = settle(Written(lambda net, x: net.block(x).flatten(1)[:, :3], block=block))
    found = collect(net, inputs, ["block", "block.1"])
    assert found.activations["block"].shape == found.activations["block.1"].shape == (4, neurons)


def test_the_shape_of_a_value_decides():
    assert [axis_in(n, TOKENS) for n in (2, 3, 4, 5)] == [1, 2, 1, 1]
    assert [axis_in(n, UNITS) for n in (2, 3, 4)] == [1, 2, 3]
    assert [axis_in(n, CHANNELS) for n in (2, 3, 4)] == [1, 1, 1]
