"""A pass over many batches holds what came of one of them at a time."""

import weakref

import numpy as np
import pytest
from torch import nn

from idc_core.analysis import layer_sweep
from idc_core.analysis.layer_sweep import run_tests
from idc_core.attribution import relevance as attribution
from idc_core.coverage import activations, idc
from idc_core.coverage.idc import IDC
from idc_core.coverage.neuron import NC
from idc_core.datasets import Dataset
from idc_core.importance import maximisation, training_pass
from idc_core.importance.maximisation import strongest_inputs
from idc_core.importance.training_pass import rank_layers
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing import trace as tracing
from tests.lrp.networks import Written, numbers, settle

LAYERS = ["first", "second"]


@pytest.fixture
def batches(monkeypatch):
    """Return weak references to the batches that passes have yielded so far."""
    seen, real = [], tracing.trace

    def watched(*given, **options):
        passed = real(*given, **options)
        while (box := [next(passed, None)]) != [None]:
            seen.append(weakref.ref(box[0]))
            yield box.pop()

    for module in (tracing, training_pass, attribution, maximisation, idc, activations, layer_sweep):
        monkeypatch.setattr(module, "trace", watched)
    return seen


def network(batches, held):
    """Return a network that notes, whenever it runs, how many of the batches before are still there."""

    def forward(net, x):
        held.append(sum(batch() is not None for batch in batches))
        return net.out(net.second(net.first(x).relu()).relu())

    return settle(Written(forward, first=nn.Linear(2, 6), second=nn.Linear(6, 5), out=nn.Linear(5, 3)))


@pytest.mark.parametrize(
    "run",
    [
        lambda net: tracing.collect(net, numbers(40, 2), LAYERS, RelevanceSettings(), batch_size=8),
        lambda net: rank_layers(net, numbers(40, 2), LAYERS, 2, batch_size=8),
        lambda net: attribution.relevance(net, numbers(40, 2), LAYERS, batch_size=8),
        lambda net: strongest_inputs(net, numbers(40, 2), "first", k=3, batch_size=8),
    ],
    ids=["collect", "rank_layers", "relevance", "strongest_inputs"],
)
def test_each_batch_is_dropped_before_the_next(batches, run):
    held = []
    run(network(batches, held))
    assert len(batches) == 5
    assert len(held) >= 5
    assert set(held) == {0}


def test_idc_drops_each_batch_before_the_next(batches):
    held = []
    criterion = IDC(network(batches, held), "first", 2, batch_size=8).fit(numbers(40, 2))
    criterion.update(numbers(40, 2))
    assert len(batches) == 10
    assert set(held) == {0}


def test_criteria_and_layer_sweeps_drop_each_batch_before_the_next(batches):
    held = []
    net = network(batches, held)
    NC(net, LAYERS, scale="positions", batch_size=8).update(numbers(40, 2))
    assert len(batches) == 5
    inputs, targets = numbers(4000, 2).numpy(), np.arange(4000) % 3
    tests = Dataset("some", "test", inputs, targets, ("a", "b", "c"), "classification", (), (), np.arange(4000), "")
    run_tests(net, tests, {"first": np.array([0])}, "abc")
    assert len(batches) > 6
    assert set(held) == {0}
