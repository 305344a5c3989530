"""Retraining with disagreements: disjoint halves, additions of one size, labels by vote, the same every time."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from idc_core.cli import main
from idc_core.datasets import load_dataset
from idc_core.errors import DataError, SettingError
from idc_core.experiments.disagreements import ADDITIONS, TESTS, DisagreementSettings, prepare_disagreements
from idc_core.generation import differential_search, majority
from idc_core.models import MODELS, load_model
from idc_core.models.registry import companions

FEW = DisagreementSettings(added=12, searched=24, iterations=30)


def part(data, count):
    some = {name: getattr(data, name)[:count] for name in ("inputs", "targets", "ids")}
    return replace(data, fingerprint=f"first{count}", **some)


@pytest.fixture(scope="module")
def models():
    return [load_model(name) for name in companions("lenet5-digits")]


@pytest.fixture(scope="module")
def test_half():
    return part(load_dataset("digits", "test"), 160)


@pytest.fixture(scope="module")
def train_half():
    return part(load_dataset("digits", "train"), 300)


def compared(models, train, test, settings=None, *, seeds, epochs=5, store=None, **told):
    plan = prepare_disagreements(models, train, test, settings, epochs=epochs, store=store)
    return plan.run(seeds, **told), plan


def rows_of(inputs, data):
    """Positions of inputs in a data set; -1 where one is not in it."""
    known = {one.tobytes(): place for place, one in enumerate(data.inputs)}
    return [known.get(one.tobytes(), -1) for one in inputs]


def test_what_is_added_and_what_is_measured_come_from_different_tests(models, train_half, test_half):
    ready = prepare_disagreements(models, train_half, test_half, FEW)
    assert set(ready.additions) == set(ADDITIONS)
    assert set(ready.tests) == set(TESTS)
    held = set(rows_of(ready.tests["tests"][0], test_half))
    assert len(held) == 80
    assert -1 not in held
    for seed in (0, 1):
        drawn, targets = ready.additions["random"](seed)
        places = rows_of(drawn, test_half)
        assert not held & set(places)
        np.testing.assert_array_equal(test_half.targets[places], targets)
        sizes = {name: len(ready.additions[name](seed)[1]) for name in ("random", "adversarial", "finds")}
        assert set(sizes.values()) == {12}
        attacked, right = ready.additions["adversarial"](seed)
        np.testing.assert_array_equal(right, targets)
        assert 0.25 < np.abs(attacked - drawn).max() <= 0.3 + 1e-6
    assert not np.array_equal(ready.additions["finds"](0)[0], ready.additions["finds"](1)[0])


def test_disagreements_are_labelled_by_the_votes_and_votes_are_counted(models, train_half, test_half):
    ready = prepare_disagreements(models, train_half, test_half, FEW)
    inputs, labels = ready.additions["finds"](3)
    pool = np.setdiff1d(np.arange(160), rows_of(ready.tests["tests"][0], test_half))
    places = np.random.default_rng(3).permutation(pool)[:24]
    found = differential_search(models, test_half.inputs[places], "light", iterations=30, seed=3)
    said = majority(found.predictions)
    kept = np.flatnonzero(said >= 0)[:12]
    np.testing.assert_array_equal(inputs, found.inputs[kept])
    np.testing.assert_array_equal(labels, said[kept])
    right = said[kept] == test_half.targets[places[found.seed_index[kept]]]
    assert ready.votes(3) == (right.mean(), 12)


@pytest.mark.slow
def test_training_with_disagreements_helps_on_disagreements_and_is_the_same_again(models, train_half, test_half):
    store = {}
    found, _ = compared(models, train_half, test_half, FEW, seeds=2, epochs=1, store=store)
    assert found.complete
    assert found.added("nothing") == [0, 0]
    assert found.added("finds") == [12, 12]
    finds = found.tests.index("finds")
    assert found.mean()[found.additions.index("finds"), -1, finds] > found.mean()[0, 0, finds]
    again, _ = compared(models, train_half, test_half, FEW, seeds=2, epochs=1, store={})
    np.testing.assert_array_equal(found.values, again.values)
    assert len(store) == 8


@pytest.mark.slow
def test_a_stop_keeps_what_was_finished_on_disk(models, test_half, monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    train = part(load_dataset("digits", "train"), 100)
    stop = {"after": 1}

    def on_result(name, seed, unit):
        stop["after"] -= 1

    settings = replace(FEW, searched=12)
    first, _ = compared(
        models,
        train,
        test_half,
        settings,
        seeds=1,
        epochs=1,
        on_result=on_result,
        on_progress=lambda done, total, label: stop["after"] > 0,
    )
    assert not first.complete
    ran = []
    whole, _ = compared(
        models,
        train,
        test_half,
        settings,
        seeds=1,
        epochs=1,
        on_progress=lambda done, total, label: ran.append(label) or True,
    )
    assert whole.complete
    assert not any(label.startswith("Retraining with nothing") for label in ran)


@pytest.mark.rare
def test_command_line_writes_one_record_an_addition_and_test(models, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    file = tmp_path / "finds.csv"
    arguments = ("--models", "lenet5-digits", "--limit", "80", "--limit-train", "100", "--seeds", "1")
    assert main(["experiment", "finds", *arguments, "--out", str(file)]) == 0
    records = list(csv.DictReader(file.read_text().splitlines()))
    assert [(one["addition"], one["test"]) for one in records] == [(a, t) for a in ADDITIONS for t in TESTS]
    found, ready = compared(
        models, part(load_dataset("digits", "train"), 100), part(load_dataset("digits", "test"), 80), seeds=1, store={}
    )
    last = records[-3]
    assert float(last["mean"]) == pytest.approx(found.mean()[3, -1, 0])
    assert float(last["minus_nothing"]) == pytest.approx(found.difference("finds", "nothing").mean[0])
    assert last["minus_finds"] == ""
    assert float(last["votes_right"]) == pytest.approx(ready.votes(0)[0])


def test_refusals(models, train_half, test_half):
    with pytest.raises(SettingError, match="at least three"):
        prepare_disagreements(models[:2], train_half, test_half)
    with pytest.raises(DataError, match="pictures with classes"):
        prepare_disagreements(models, train_half, replace(test_half, task="regression"))
    with pytest.raises(DataError, match="no disagreements to measure on"):
        prepare_disagreements([models[0]] * 3, train_half, test_half, FEW)


@pytest.mark.parametrize("name", MODELS)
def test_companions_are_of_the_same_task(name):
    found = companions(name)
    assert found[0] == name
    assert len(found) <= 3
    assert {MODELS[one].dataset for one in found} == {MODELS[name].dataset}
    assert not any(MODELS[one].published for one in found[1:])
