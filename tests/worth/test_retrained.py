"""The killing rule beside sums of binomials, changes of trainings beside what they say, and planted mutants."""

import dataclasses
from math import comb

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.datasets import Dataset, load_dataset
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.models import MODELS
from idc_core.models.entry import ModelEntry, Recipe
from idc_core.worth import retrained
from idc_core.worth.retrained import kills, retrained_mutants
from idc_core.worth.training_changes import TRAINING_CHANGES, Training

RANDOM = np.random.default_rng(0)
TARGETS = np.arange(90) % 3
POINTS = (np.eye(3)[TARGETS] * 2 + RANDOM.normal(0, 0.7, (90, 3))).astype(np.float32)
DATA = Dataset("points", "train", POINTS, TARGETS, tuple("abc"), "classification", (), (), np.arange(90), "f")
TRAINING = Training(DATA, Recipe("adamw", 0.05, batch=16, epochs=4))


def fisher(had, of, has, out_of):
    """Return the two-sided p-value: all tables with the same sums that are at most as likely."""
    right = had + has

    def likely(one):
        return comb(of, one) * comb(out_of, right - one) if 0 <= right - one <= out_of and one <= of else 0

    return sum(likely(one) for one in range(of + 1) if likely(one) <= likely(had)) / comb(of + out_of, right)


@pytest.mark.parametrize(("of", "out_of"), [(5, 5), (4, 6), (10, 4)])
def test_a_test_kills_where_fishers_test_says_fewer_trainings_are_right(of, out_of):
    pairs = [(had, has) for had in range(of + 1) for has in range(out_of + 1)]
    original = np.stack([np.arange(of) < had for had, _ in pairs], 1)
    mutant = np.stack([np.arange(out_of) < has for _, has in pairs], 1)
    slow = [fisher(had, of, has, out_of) < 0.05 and had / of > has / out_of for had, has in pairs]
    assert kills(original, mutant).tolist() == slow
    assert any(slow)


def test_a_larger_set_kills_at_least_as_much_and_three_trainings_tell_nothing():
    original = np.ones((5, 3), bool)
    mutant = np.array([[0, 1, 1]] * 5, bool)
    assert kills(original, mutant).tolist() == [True, False, False]
    with pytest.raises(SettingError, match="at least 4"):
        kills(original[:3], mutant[:3])


def changed(name, value, seed=0, training=TRAINING):
    return TRAINING_CHANGES[name].apply(training, value, np.random.default_rng(seed))


def counts(training):
    return np.bincount(training.data.targets, minlength=3).tolist()


def test_changes_of_data_do_what_they_say():
    labels = changed("labels", 0.5).data.targets
    assert len(set(TARGETS[labels != TARGETS])) == 1
    assert np.count_nonzero(labels != TARGETS) == 15
    assert counts(changed("removal", 0.9)) == [3, 3, 3]
    few = dataclasses.replace(TRAINING, data=DATA.only(np.arange(5, 90)))
    assert counts(few) == [28, 28, 29]
    assert counts(changed("unbalance", 0.75, training=few)) == [7, 7, 29]
    noisy = changed("noise", 2.0).data.inputs - POINTS
    np.testing.assert_allclose((noisy / POINTS.std(1, keepdims=True)).std(), 2, rtol=0.2)
    twice = changed("overlap", 1.0).data
    extra = [np.flatnonzero((row == POINTS).all(1))[0] for row in twice.inputs[90:]]
    assert len(set(extra)) == 30
    assert len(set(TARGETS[extra])) == len(set(twice.targets[90:].tolist())) == 1
    assert TARGETS[extra[0]] != twice.targets[90]


def test_changes_of_settings_reach_the_recipe():
    assert changed("batch", 4.0).recipe.batch == 4
    assert changed("no-batches", "all").recipe.batch == 90
    assert changed("learning-rate", 0.1).recipe.learning_rate == pytest.approx(0.005)
    assert changed("epochs", 1.0).recipe.epochs == 1
    assert changed("regularisation", 3.0).recipe.weight_decay == 3
    assert changed("optimiser", "sgd").recipe.optimizer == "sgd"


def network():
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))


def test_changes_of_the_network_reach_one_place():
    inputs, plain = torch.from_numpy(POINTS), network()
    other = changed("activation", "tanh").prepare(plain)
    assert torch.equal(other(inputs), plain[2](torch.tanh(plain[0](inputs))))
    assert torch.equal(changed("activation", "none").prepare(plain)(inputs), plain[2](plain[0](inputs)))
    for name, value, left in (("initialisation", "ones", "weight"), ("no-bias", "none", "bias")):
        fresh = network()
        before = {key: tensor.clone() for key, tensor in fresh.state_dict().items()}
        changed(name, value).prepare(fresh)
        differ = [key for key, tensor in fresh.state_dict().items() if not torch.equal(tensor, before[key])]
        assert [key.split(".")[1] for key in differ] == [left]
        assert torch.equal(fresh.state_dict()[differ[0]], torch.full_like(before[differ[0]], float(left == "weight")))


@pytest.mark.parametrize("name", ["squared error", "absolute error", "hinge"])
def test_other_losses_are_least_where_the_class_is_right(name):
    loss, classes = changed("loss", name).loss, torch.tensor([0, 2])
    right, wrong = 9 * torch.eye(3)[[0, 2]], 9 * torch.eye(3)[[1, 1]]
    assert [float(loss(scores, classes)) > 1e-3 for scores in (right, wrong)] == [False, True]


@pytest.fixture
def known(monkeypatch, tmp_path):
    """A tiny network in the registry, two planted mutants, one that is equivalent and one that is weak."""
    entry = ModelEntry(
        "tiny", "Tiny", "", network, ("0",), "points", "0", None, Recipe("adamw", 0.1, 45, 12), "", "MIT"
    )
    monkeypatch.setitem(MODELS, "tiny", entry)
    monkeypatch.setattr(retrained, "load_dataset", lambda name, split: DATA)
    monkeypatch.setattr(retrained, "cache_folder", lambda: tmp_path)

    def blind(training, value, random):
        """Take the few inputs of class 0 with a large third coordinate for class 2."""
        planted = (TARGETS == 0) & (POINTS[:, 2] > value)
        targets = np.where(planted, 2, TARGETS)
        return dataclasses.replace(training, data=dataclasses.replace(training.data, targets=targets))

    def forget(training, value, random):
        return dataclasses.replace(training, data=DATA.only(np.flatnonzero(TARGETS != 0)))

    changes = {"forget": forget, "same": lambda training, value, random: training, "blind": blind}
    kind = type(TRAINING_CHANGES["labels"])
    held = {name: kind(name, "", name, (0.6,), False, apply) for name, apply in changes.items()}
    monkeypatch.setattr(retrained, "TRAINING_CHANGES", held)
    return tmp_path


def test_a_planted_fault_is_killed_by_its_own_tests_and_kept_work_goes_on(known):
    found = retrained_mutants("tiny", DATA, count=1)
    planted = (TARGETS == 0) & (POINTS[:, 2] > 0.6)
    assert [mutant.operator for mutant in found.mutants] == ["blind"]
    assert (found.inaccurate, found.equivalent) == (1, 1)
    assert found.killed[planted, 0].mean() > 0.5
    assert not found.killed[TARGETS != 0, 0].any()
    files = sorted(known.rglob("*.npz"))
    assert len(files) == 5 + 2 + 5 + 5, "the network's, two of the weak mutant, five of the two others"
    before = [file.stat().st_mtime_ns for file in files]
    assert (retrained_mutants("tiny", DATA, count=1).killed == found.killed).all()
    assert [file.stat().st_mtime_ns for file in files] == before


def test_what_has_no_training_or_classes_is_refused():
    with pytest.raises(ModelError, match="not trained here"):
        retrained_mutants("deepxplore-model1", DATA)
    with pytest.raises(DataError, match="regression"):
        retrained_mutants("lenet1-digits", dataclasses.replace(DATA, task="regression"))
    with pytest.raises(SettingError, match="trainings"):
        retrained_mutants("lenet1-digits", DATA, trainings=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINING_CHANGES)
def test_every_change_trains_the_shipped_network(name):
    entry, data = MODELS["lenet1-digits"], load_dataset("digits", "train", 200)
    for value in TRAINING_CHANGES[name].values:
        training = changed(name, value, training=Training(data, dataclasses.replace(entry.recipe, epochs=1)))
        predicted = retrained._trained(entry, training, 0, data)
        assert predicted.shape == (200,)
        assert set(predicted) <= set(range(-1, 10))
