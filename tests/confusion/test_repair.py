"""Training on what is confused: halves that do not meet, additions that differ only by the choice, before and after."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core.confusion import type1_confusion
from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError, DataError
from idc_core.experiments import retraining
from idc_core.experiments.confusion_repair import ADDITIONS, repair


@pytest.fixture(scope="module")
def train():
    return load_dataset("digits", "train", 200)


@pytest.fixture(scope="module")
def test():
    return load_dataset("digits", "test", 240)


@pytest.fixture(scope="module")
def net(train):
    """A network that has hardly learnt anything, so that much is confused."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Linear(16, 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(12):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.tensor(train.inputs)), torch.tensor(train.targets)).backward()
        optimizer.step()
    return net.eval()


def test_before_and_after(net, train, test, monkeypatch):
    given = {}

    run = retraining.retrain

    def spy(model, data, additions, tests, **settings):
        given.update(additions=additions, tests=tests)
        given["done"] = run(model, data, additions, tests, **settings)
        return given["done"]

    monkeypatch.setattr(retraining, "retrain", spy)
    state = {name: value.clone() for name, value in net.state_dict().items()}
    found = repair(net, train, test, deviations=0.5, seeds=2, epochs=1)
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())

    first, other = (np.sort(part) for part in np.array_split(np.random.default_rng(0).permutation(240), 2))
    with torch.no_grad():
        said = net(torch.tensor(test.inputs)).argmax(1).numpy()
    pairs = {tuple(pair) for pair in found.pairs.tolist()}
    wrong = [i for i in first if tuple(sorted((test.targets[i], said[i]))) in pairs]
    np.testing.assert_array_equal(given["additions"]["confused"][0], test.inputs[wrong])
    np.testing.assert_array_equal(given["tests"]["other half"][1], test.targets[other])
    assert found.added == len(wrong) > 0
    assert found.measured == 120
    some, _ = given["additions"]["random"](3)
    assert len(some) == len(wrong)
    own = {one.tobytes() for one in test.inputs[first]}
    assert all(one.tobytes() in own for one in some)

    both = type1_confusion(test.targets[other], said[other], 10)
    mean = {(a, b): np.nanmean([both[a, b], both[b, a]]) for a in range(10) for b in range(a + 1, 10)}
    inside = [mean[pair] for pair in pairs]
    outside = [value for pair, value in mean.items() if pair not in pairs]
    wanted = [(said[other] == test.targets[other]).mean(), np.mean(inside), np.mean(outside)]
    np.testing.assert_allclose(found.before, wanted)
    assert list(found.after) == list(ADDITIONS)
    for name, values in found.after.items():
        assert values.shape == (2, 3)
        accuracies = [given["done"].networks[name, seed].values[-1, 0] for seed in (0, 1)]
        np.testing.assert_allclose(values[:, 0], accuracies)
    assert not np.array_equal(found.after["confused"], found.after["nothing"])
    again = repair(net, train, test, deviations=0.5, seeds=2, epochs=1)
    for name in ADDITIONS:
        np.testing.assert_array_equal(again.after[name], found.after[name])


def test_a_stop_before_everything_was_seen_once(net, train, test):
    with pytest.raises(CancelledError):
        repair(net, train, test, deviations=0.5, seeds=1, epochs=1, on_progress=lambda *_: "Retrain" not in _[2])


def test_tests_of_other_classes_and_nothing_to_add_are_refused(net, train, test):
    from dataclasses import replace

    with pytest.raises(DataError, match="of the classes"):
        repair(net, train, replace(test, class_names=("a", "b")))
    right = replace(test, targets=net(torch.tensor(test.inputs)).argmax(1).numpy())
    with pytest.raises(DataError, match="nothing can be added"):
        repair(net, train, right)
