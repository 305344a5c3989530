"""What runs on an accelerator, shown without one: tensors without values cannot be waited for, nor mixed with others.

A tensor on torch's `meta` device has a shape and no values. Whatever asks for a value fails on it, as `.item()`,
`bool(tensor)` or a copy to the processor does; so does an operation with a tensor of another device. A pass that ends
on `meta` therefore waits nowhere for the device.
"""

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.networks import resnet18
from idc_core.attribution.relevance import relevance
from idc_core.errors import DataError
from idc_core.importance.training_pass import rank_layers
from idc_core.lrp.rules import RULES, RelevanceSettings
from idc_core.models import MODELS
from idc_core.tracing import transfers
from idc_core.tracing.pieces import Pieces
from idc_core.tracing.trace import collect, trace
from tests.lrp.networks import numbers, settle

NETWORKS = {
    "LeNet-5": (MODELS["lenet5-digits"].build, (1, 28, 28)),
    "ResNet-18": (resnet18, (3, 32, 32)),
    "ViT": (MODELS["vit-cifar10"].build, (3, 32, 32)),
}


@pytest.fixture
def copied(monkeypatch):
    """Have copies to the processor made of nothing, as `meta` has no values; return how many there were."""
    found = []

    def begin(tensors):
        assert {tensor.device.type for tensor in tensors.values()} == {"meta"}
        found.append(len(tensors))
        return {name: torch.zeros(tensor.shape, dtype=tensor.dtype) for name, tensor in tensors.items()}, None

    monkeypatch.setattr(transfers, "_begin", begin)
    return found


def without_values(name):
    """Return a network on `meta`, its layers with weights, and seven inputs on the processor."""
    build, shape = NETWORKS[name]
    with torch.device("meta"):
        network = build().eval()
    layers = [name for name, module in network.named_modules() if isinstance(module, nn.Linear | nn.Conv2d)]
    return network, layers, np.zeros((7, *shape), np.float32)


@pytest.mark.parametrize("name", NETWORKS)
def test_relevance_waits_for_the_device_once_a_batch(copied, name):
    network, layers, inputs = without_values(name)
    ranked = rank_layers(network, inputs, layers, 2, RelevanceSettings(), batch_size=3)
    assert list(ranked) == layers
    assert copied == [1 + 2 * len(layers)] * 3  # classes, activations and relevance of three batches
    found = relevance(network, inputs, ["input"], target=np.arange(7) % 3, batch_size=4)["input"]
    assert found.shape == inputs.shape


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["LeNet-5", "ResNet-18"])
def test_no_rule_waits_for_the_device(copied, rule, name):
    network, layers, inputs = without_values(name)
    assert len(collect(network, inputs, layers, RelevanceSettings.of(rule)).scores) == 7


def test_a_value_that_is_asked_for_is_noticed(copied):
    """What the tests above rely on."""

    class Asks(nn.Module):
        def forward(self, x):
            return x if bool((x > 0).any()) else -x

    network = nn.Sequential(nn.Linear(2, 2, device="meta"), Asks())
    with pytest.raises(Exception, match="meta"):
        collect(network, np.zeros((3, 2), np.float32), ["0"])


class Arrival:
    """Stands in for an event of a GPU: notes when it is waited for."""

    def __init__(self, log, number):
        self.log, self.number = log, number

    def synchronize(self):
        self.log.append(f"wait {self.number}")


def test_the_next_batch_is_begun_before_this_one_is_waited_for(monkeypatch):
    log = []

    def begin(tensors):
        number = len([one for one in log if one.startswith("run")]) - 1
        return tensors, Arrival(log, number)

    def batches():
        for number in range(3):
            log.append(f"run {number}")
            yield number, {"x": torch.full((2,), number)}

    monkeypatch.setattr(transfers, "_begin", begin)
    found = [(number, arrays["x"].tolist()) for number, arrays in transfers.brought_back(batches())]
    assert found == [(0, [0, 0]), (1, [1, 1]), (2, [2, 2])]
    assert log == ["run 0", "run 1", "wait 0", "run 2", "wait 1", "wait 2"]


class Small(nn.Module):
    """A network for which a device has too little memory above some number of inputs."""

    def __init__(self, most):
        super().__init__()
        self.most, self.tried = most, []
        self.hidden, self.scores = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        self.tried.append(len(x))
        if len(x) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.scores(torch.relu(self.hidden(x)))


def test_memory_that_runs_out_halves_the_batch_and_changes_no_number():
    network, inputs = settle(Small(100)), numbers(50, 4)
    whole = collect(network, inputs, ["hidden"], RelevanceSettings(), target=[n % 3 for n in range(50)])
    network.most, network.tried = 6, []
    done = []
    halved = collect(
        network,
        inputs,
        ["hidden"],
        RelevanceSettings(),
        target=[n % 3 for n in range(50)],
        batch_size=20,
        on_progress=lambda n, total, label: done.append(n),
    )
    np.testing.assert_allclose(halved.scores, whole.scores, rtol=1e-6)
    np.testing.assert_allclose(halved.activations["hidden"], whole.activations["hidden"], rtol=1e-6)
    np.testing.assert_allclose(halved.relevance["hidden"], whole.relevance["hidden"], rtol=1e-5)
    assert network.tried == [1, 20, 10, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]  # what was learnt holds for later batches
    assert done == list(range(5, 51, 5))


def test_memory_that_does_not_suffice_for_one_input_is_said():
    network = settle(Small(100))
    passes = trace(network, numbers(4, 4), ["hidden"], batch_size=2)
    next(passes)
    network.most = 0
    with pytest.raises(DataError, match=r"does not suffice for one input \(CUDA out of memory"):
        next(passes)


def test_pieces_hold_no_result_while_the_next_is_made():
    """Else two batches would have to fit."""
    alive = []

    class Result:
        def __init__(self):
            alive.append(self)

        def __del__(self):
            gone.append(len(gone))

    gone = []
    for rows, found in Pieces(2)(6, lambda rows: Result()):
        alive.clear()
        del found
        assert len(gone) == rows.stop // 2 - 1  # the generator holds this one until it is asked for the next
    assert len(gone) == 3
