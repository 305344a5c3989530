"""Layers that give several rows per input, as those within the windows of Swin do."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core import relevance
from idc_core.errors import UnsupportedOperationError
from idc_core.tracing.trace import collect
from tests.lrp.networks import Written, numbers, settle, total

SEQUENCES = numbers(5, 12, 6)


def in_windows(x):
    """Cut 12 tokens into 3 windows of 4, those of an input one after the other."""
    return x.reshape(-1, 4, 6)


def network_of(cut):
    def forward(net, x):
        windows = torch.relu(net.a(cut(x)))
        return net.out(torch.relu(net.b(windows)).reshape(-1, 3, 4, 5).transpose(1, 2).reshape(-1, 60))

    return settle(Written(forward, a=nn.Linear(6, 6), b=nn.Linear(6, 5), out=nn.Linear(60, 3)))


def test_windows_are_to_a_feature_what_positions_are():
    network = network_of(in_windows)
    with torch.no_grad():
        start = network(SEQUENCES).amax(1)
        expected = torch.relu(network.a(SEQUENCES)).mean(1)
    found = relevance(network, SEQUENCES, ["a", "b", "out"], bias="redistribute")
    assert found["a"].shape == (5, 4, 6)
    for layer in ("a", "b", "out"):
        np.testing.assert_allclose(total(found[layer]), start, rtol=1e-9)
    traces = collect(network, SEQUENCES, ["a"])
    np.testing.assert_allclose(traces.activations["a"], expected, rtol=1e-6)
    for size in (1, 2, 5):
        np.testing.assert_allclose(
            relevance(network, SEQUENCES, ["a"], bias="redistribute", batch_size=size)["a"], found["a"], rtol=1e-9
        )


@pytest.mark.parametrize("cut", [
    lambda x: x.reshape(len(x), 3, 4, 6).transpose(0, 1).reshape(-1, 4, 6),  # first windows first
    lambda x: (in_windows(x) + in_windows(x).mean(0)),  # inputs of a batch mixed
])  # fmt: skip
def test_windows_of_several_inputs_that_do_not_lie_together_are_refused(cut):
    with pytest.raises(UnsupportedOperationError, match=r"Layer 'a' gives an array of shape \(3, 4, 6\) for 1 inputs"):
        relevance(network_of(cut), SEQUENCES, ["a"])


def test_a_layer_without_rows_for_the_inputs_is_refused():
    network = settle(
        Written(
            lambda net, x: net.out((x + net.places(torch.arange(12))).flatten(1)),
            places=nn.Embedding(12, 6),
            out=nn.Linear(72, 3),
        )
    )
    with pytest.raises(UnsupportedOperationError, match=r"'places' gives an array of shape \(12, 6\) for 1 inputs"):
        relevance(network, SEQUENCES, ["places"])
