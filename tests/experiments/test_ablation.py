"""Silencing neurons: planted networks with known answers, a slow reference, and the network left as it was found."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError, DataError, ModelError, SettingError, UnsupportedOperationError
from idc_core.evidence.finding import Verdict
from idc_core.experiments.ablation import _prepare, ablate, silence_each
from idc_core.experiments.random_neurons import shuffled_others, some_neurons
from idc_core.models import load_model
from tests.lrp.networks import CLASSES, IMAGES, ROWS, SEQUENCES, SERIES, TOKENS, Written, numbers, settle
from tests.lrp.test_model_untouched import MANY, assert_free, build, state


def planted():
    """Six units that repeat the input; only the first has a say: class 1 where it is above a half."""
    network = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    with torch.no_grad():
        network[0].weight.copy_(torch.eye(6))
        network[0].bias.zero_()
        network[2].weight.zero_()
        network[2].weight[1, 0] = 1
        network[2].bias.copy_(torch.tensor([0.5, 0.0]))
    inputs = np.random.default_rng(3).random((50, 6)).astype(np.float32)
    return network, inputs, (inputs[:, 0] > 0.5).astype(np.int64)


def test_only_the_neuron_that_decides_costs_accuracy():
    network, inputs, targets = planted()
    found = ablate(network, inputs, targets, "0", [0, 1, 2], seeds=3)
    assert found.counts.tolist() == [0, 1, 2, 3]
    assert found.neurons == 6
    assert found.tests == 50
    assert found.baseline == 1.0
    # Without its neuron the network says class 0 to everything.
    without = float((targets == 0).mean())
    assert found.important.tolist() == [1.0, without, without, without]
    # Three of three others are one draw, and with none silenced every draw is the same network.
    assert np.isnan(found.random[1:, 3]).all()
    assert (found.random[~np.isnan(found.random)] == 1.0).all()
    assert not np.isnan(found.random[:, 0]).any()
    assert found.random.shape == (3, 4)
    backwards = ablate(network, inputs, targets, "0", [5, 4, 3, 2, 1, 0], counts=[5, 6], seeds=1)
    assert backwards.important.tolist() == [1.0, without]


@pytest.mark.parametrize("size", [None, 7])
def test_each_neuron_alone_costs_what_its_class_owes_it(size):
    network, inputs, targets = planted()
    found = silence_each(network, inputs, targets, "0", [4, 0], targets, 3, batch_size=size)
    assert found.neurons.tolist() == [4, 0]
    assert found.before[:2].tolist() == [1.0, 1.0]
    assert np.isnan(found.before[2]), "no test is of this class"
    assert found.change[:, :2].tolist() == [[0.0, 0.0], [0.0, -1.0]]
    amounts = silence_each(network, inputs, inputs[:, 1], "0", [0], targets * 0, 1, task="regression")
    scores = network(torch.from_numpy(inputs)).detach().numpy()[:, 0]  # class 0 needs no neuron
    assert amounts.after == pytest.approx(np.sqrt(((scores - inputs[:, 1]) ** 2).mean()))
    with pytest.raises(SettingError, match="no neurons to silence"):
        silence_each(network, inputs, targets, "input", [0], targets, 2)


def test_the_range_of_other_neurons_leaves_the_neuron_itself_out():
    network, inputs, targets = planted()
    found = silence_each(network, inputs, targets, "0", some_neurons(6, 40), targets, 2)
    assert found.neurons.tolist() == [0, 1, 2, 3, 4, 5]
    assert np.concatenate(found.without(0).range).tolist() == [0.0] * 4, "the others cost nothing"
    low, high = found.without(3).range
    assert low.tolist() == [0.0, pytest.approx(np.quantile([-1.0, 0, 0, 0, 0], 0.025))]
    assert high.tolist() == [0.0, 0.0]


def test_some_neurons_are_drawn_once_each():
    drawn = [some_neurons(84, 40, seed) for seed in (0, 0, 1)]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()
    assert len(np.unique(drawn[0])) == 40
    assert drawn[0].tolist() == sorted(drawn[0].tolist())


def test_random_neurons_are_the_others_and_missing_where_there_are_too_few():
    network, inputs, targets = planted()
    found = ablate(network, inputs, targets, "0", [1, 2, 3, 4], counts=[0, 2, 4], seeds=(7, 8))
    assert found.seeds == (7, 8)
    assert np.isnan(found.random[:, 2]).all()
    assert np.isnan(found.random_mean).tolist() == [False, False, True]
    # Both others, the deciding neuron 0 among them, are silenced in every order.
    assert found.random[0, 1] == float((targets == 0).mean())
    assert np.isnan(found.random[1, 1]), "there is one draw of two of two others"
    assert found.finding(2, "Accuracy", "with random ones").verdict is Verdict.TOO_FEW


def test_orders_of_random_neurons_depend_on_the_seed_alone_and_are_nested():
    important = np.array([3, 1])
    orders = [shuffled_others(important, 9, seed) for seed in range(6)]
    for order in orders:
        assert sorted(order.tolist()) == [0, 2, 4, 5, 6, 7, 8]
    assert len({tuple(order) for order in orders}) > 1
    assert orders[4].tolist() == shuffled_others(important[::-1], 9, 4).tolist()


def test_regression_is_measured_by_its_root_mean_squared_error():
    network = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Identity(), nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        network[0].weight.copy_(torch.eye(2))
        network[2].weight.copy_(torch.tensor([[1.0, 10.0]]))
    inputs = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32)
    found = ablate(network, inputs, np.array([21.0, -7.0]), "0", [1], task="regression", seeds=1)
    assert found.unit == "RMSE"
    assert found.baseline == 0.0
    assert found.important.tolist() == pytest.approx([0.0, np.sqrt((20**2 + 10**2) / 2)])
    assert found.random.tolist() == [pytest.approx([0.0, np.sqrt((1 + 9) / 2)])]


def residual(net, x):
    return net.out((x + F.relu(net.hidden(x))).flatten(1))


def joined(net, x):
    hidden = F.relu(net.hidden(x))
    return net.out(torch.cat([hidden.mean(2), hidden.amax(2), x.mean(2)], 1))


def reshaped(net, x):
    return net.out(F.relu(net.hidden(x)).view(x.shape[0], -1))


def branching(net, x):
    """Looks at a value behind the layer, which passes that run together cannot do."""
    hidden = F.relu(net.hidden(x))
    return net.out(hidden * 2 if hidden.sum() > 0 else hidden)


def twice(net, x):
    return net.out(F.relu(net.hidden(F.relu(net.hidden(x)))))


def in_place(net, x):
    return net.out(F.relu_(net.hidden(x)))


def squashed(net, x):
    return F.softmax(net.out(torch.sigmoid(net.hidden(x))), 1)


def forked(net, x):
    """Uses the layer's output before its activation function as well, which is where its neurons are then."""
    hidden = net.hidden(x)
    return net.out(F.relu(hidden) + 2 * hidden)


def looked_up(net, x):
    return net.out(F.relu(net.hidden(net.words(x).transpose(1, 2))).mean(2))


NETWORKS = {
    "residual": (residual, {"hidden": nn.Conv2d(2, 2, 3, padding=1), "out": nn.Linear(98, CLASSES)}, IMAGES, 0.0, True),
    "joined": (joined, {"hidden": nn.Conv1d(2, 3, 2), "out": nn.Linear(8, CLASSES)}, SERIES, 0.0, True),
    "reshaped": (reshaped, {"hidden": nn.Conv2d(2, 5, 3), "out": nn.Linear(125, CLASSES)}, IMAGES, 0.0, True),
    "branching": (branching, {"hidden": nn.Linear(6, 5), "out": nn.Linear(5, CLASSES)}, ROWS, 0.0, False),
    "twice": (twice, {"hidden": nn.Linear(6, 6), "out": nn.Linear(6, CLASSES)}, ROWS, 0.0, True),
    "in place": (in_place, {"hidden": nn.Linear(6, 5), "out": nn.Linear(5, CLASSES)}, ROWS, 0.0, True),
    "squashed": (squashed, {"hidden": nn.Linear(6, 5), "out": nn.Linear(5, CLASSES)}, ROWS, -torch.inf, True),
    "forked": (forked, {"hidden": nn.Linear(6, 5), "out": nn.Linear(5, CLASSES)}, ROWS, 0.0, True),
    "text": (
        looked_up,
        {"words": nn.Embedding(10, 4), "hidden": nn.Conv1d(4, 5, 2), "out": nn.Linear(5, CLASSES)},
        TOKENS,
        0.0,
        True,
    ),
}


def silenced_by_hand(network, inputs, neurons, axis, off):
    """Scores with the layer's neurons set to what its activation function turns into 0."""

    def hook(module, args, output):
        output = output.clone()
        output[(slice(None),) * (axis % output.dim()) + (list(neurons),)] = off
        return output

    handle = network.hidden.register_forward_hook(hook)
    with torch.no_grad():
        scores = network(inputs)
    handle.remove()
    return scores


@pytest.mark.parametrize("name", NETWORKS)
def test_agrees_with_networks_silenced_by_hand(name):
    forward, modules, inputs, off, together = NETWORKS[name]
    network = settle(Written(forward, **modules))
    prepared = _prepare(network, inputs[:1], "hidden")
    assert prepared.together is together
    sets = torch.tensor([[False] * prepared.neurons, *np.eye(prepared.neurons, dtype=bool).tolist()])
    found = prepared.run(inputs, sets)
    if name == "squashed":
        found = torch.softmax(found, 2)
    for silent, scores in zip(sets, found, strict=True):
        neurons = torch.nonzero(silent).flatten().tolist()
        expected = silenced_by_hand(network, inputs, neurons, prepared.axis, off)
        assert torch.allclose(scores, expected, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(found[0], found[1:].mean(0))


def test_passes_that_disagree_when_run_together_are_run_one_by_one(monkeypatch):
    network = settle(Written(in_place, hidden=nn.Linear(6, 5), out=nn.Linear(5, CLASSES)))
    assert _prepare(network, ROWS[:1], "hidden").together
    vmap = torch.vmap
    monkeypatch.setattr(torch, "vmap", lambda run: lambda sets: vmap(run)(sets) + 0.01)
    assert not _prepare(network, ROWS[:1], "hidden").together


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_recurrent_layer_is_silenced_in_its_output_and_its_last_state(batch_first):
    def forward(net, x):
        output, (hidden, _) = net.hidden(x if batch_first else x.transpose(0, 1))
        return net.out(torch.cat([output.mean(1 if batch_first else 0), hidden[-1]], 1))

    network = settle(Written(forward, hidden=nn.LSTM(6, 4, batch_first=batch_first), out=nn.Linear(8, CLASSES)))
    prepared = _prepare(network, SEQUENCES[:1], "hidden")
    sets = torch.eye(4, dtype=torch.bool)
    found = prepared.run(SEQUENCES, sets)
    for neuron in range(4):
        quiet = settle(Written(forward, hidden=nn.LSTM(6, 4, batch_first=batch_first), out=nn.Linear(8, CLASSES)))
        with torch.no_grad():
            quiet.out.weight[:, [neuron, neuron + 4]] = 0
            assert torch.allclose(found[neuron], quiet(SEQUENCES), rtol=1e-9, atol=1e-12)


def test_any_batch_size_gives_the_same():
    model, test = load_model("lenet5-digits"), load_dataset("digits", "test", 60)
    results = [ablate(model, test, test.targets, "conv2", np.arange(8), batch_size=size) for size in (1, 7, 60, None)]
    for other in results[1:]:
        assert other.important.tolist() == results[0].important.tolist()
        np.testing.assert_array_equal(other.random, results[0].random)
    with torch.no_grad():
        right = model(torch.tensor(test.inputs)).argmax(1).numpy() == test.targets
    assert results[0].baseline == results[0].important[0] == pytest.approx(right.mean(), abs=1e-12)


def test_counts_reach_half_of_the_layer_in_thirteen_steps():
    model, test = load_model("lenet5-digits"), load_dataset("digits", "test", 5)
    ranking = np.arange(84)[::-1]
    found = ablate(model, test, test.targets, "fc2", ranking, seeds=1)
    assert found.counts[0] == 0
    assert found.counts[-1] == 42
    assert len(found.counts) == 13
    assert not np.isnan(found.random).any()
    assert ablate(model, test, test.targets, "fc2", ranking[:4], seeds=1).counts.tolist() == [0, 1, 2, 3, 4]


def test_progress_is_told_and_can_stop_and_leaves_the_network_as_it_was():
    network = build()
    before = state(network)
    targets = np.zeros(len(MANY), np.int64)
    heard = []
    ablate(network, MANY, targets, "0", [0, 1], batch_size=16, on_progress=lambda *told: heard.append(told))
    assert [(done, total) for done, total, _ in heard] == [(16, 40), (32, 40), (40, 40)]
    assert state(network) == before
    with pytest.raises(CancelledError, match="after 16 of 40"):
        ablate(network, MANY, targets, "0", [0, 1], batch_size=16, on_progress=lambda *told: False)
    assert state(network) == before
    with pytest.raises(ModelError, match="failed on inputs of shape"):
        ablate(network, MANY[:, :1], targets, "0", [0, 1])
    assert state(network) == before
    assert_free(network)


def some_rows(count=8):
    return numbers(count, 6)


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"inputs": np.zeros((0, 6), np.float32), "targets": np.zeros(0, np.int64)}, DataError, "at least one input"),
        ({"inputs": [1, 2]}, DataError, "not list"),
        ({"targets": np.zeros(7, np.int64)}, DataError, r"targets of shape \(7,\) for 8 inputs"),
        ({"targets": np.zeros(8)}, DataError, "targets of a classification"),
        ({"task": "ranking"}, SettingError, "'classification' or 'regression', not 'ranking'"),
        ({"layer": "9"}, ModelError, "no layer '9'"),
        ({"layer": "input"}, SettingError, "choose a layer of the network"),
        ({"layer": "1.never"}, ModelError, "no layer"),
        ({"important": [0, 0]}, SettingError, "twice"),
        ({"important": [6]}, SettingError, r"outside 0\.\.5"),
        ({"important": [0.5]}, SettingError, "whole numbers"),
        ({"important": []}, SettingError, "list of neurons"),
        ({"counts": [3]}, SettingError, "from 0 to 2"),
        ({"counts": []}, SettingError, "from 0 to 2"),
        ({"counts": [-1]}, SettingError, "from 0 to 2"),
        ({"seeds": 0}, SettingError, "seeds must be"),
        ({"seeds": [1, -1]}, SettingError, "seeds must be"),
        ({"seeds": True}, SettingError, "seeds must be"),
        ({"batch_size": 0}, SettingError, "batch_size must be a whole number of at least 1"),
    ],
)
def test_mistakes_are_explained(change, error, sentence):
    network = planted()[0]
    good = {"inputs": some_rows(), "targets": np.zeros(8, np.int64), "layer": "0", "important": [0, 1]}
    ablate(network, **good)
    with pytest.raises(error, match=sentence):
        ablate(network, **good | change)


def test_a_layer_that_does_not_run_is_refused():
    network = settle(Written(lambda net, x: net.out(x), out=nn.Linear(6, CLASSES), spare=nn.Linear(6, 2)))
    with pytest.raises(UnsupportedOperationError, match="'spare' did not run"):
        ablate(network, some_rows(), np.zeros(8, np.int64), "spare", [0])
