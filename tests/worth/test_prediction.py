"""Predicted faults: the relation beside a slow one, its interval by simulation, and mutation scores beside sets."""

import math
from functools import partial

import numpy as np
import pytest

from idc_core.cli import main
from idc_core.datasets import load_dataset
from idc_core.errors import DataError, SettingError
from idc_core.models import load_model
from idc_core.worth import fault_suites, telling
from idc_core.worth.fault_suites import SuiteSettings, mutation_score, suites_of_network
from idc_core.worth.mutants import mutants_after_training
from idc_core.worth.prediction import learn_relation, left_out
from idc_core.worth.published import SUITES, kept_relation, published
from idc_core.worth.yardstick import Yardstick


def network(seed, shift=0.0, noise=0.03, suites=60):
    """Suites whose faults rise with the mutation score, by a curve that is a little another for each network."""
    random = np.random.default_rng(seed)
    score = random.uniform(0, 1, suites)
    found = np.clip(score**2 + shift + random.normal(0, noise, suites), 0, 1)
    return {
        "network": str(seed),
        "label": str(seed),
        "data": "none",
        "tests": 100,
        "faults": 9,
        "mutants": 7,
        "suites": {
            "kind": ["random", "idc", "deepgini"] * (suites // 3),
            "size": random.uniform(0, 1, suites).tolist(),
            "idc": random.uniform(0, 1, suites).tolist(),
            "mutants": score.tolist(),
            "found": found.tolist(),
        },
    }


def networks(count, seed=0, spread=0.05):
    shifts = np.random.default_rng(seed).normal(0, spread, count)
    return {f"n{number}": network(1000 * seed + number, shift) for number, shift in enumerate(shifts)}


def _both(record):
    return record["suites"]["mutants"], record["suites"]["found"]


def slowly_risen(points):
    """The rising curve closest to points (score, found): means of runs, pooled while one is above the next."""
    blocks = []
    for score, found in sorted(points):
        blocks.append([found, 1, score, score])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, count, _, last = blocks.pop()
            before = blocks[-1]
            before[0] = (before[0] * before[1] + mean * count) / (before[1] + count)
            before[1] += count
            before[3] = last
    return blocks


def test_the_curve_is_the_closest_one_that_rises():
    records = networks(5)
    points = [pair for one in records.values() for pair in zip(*_both(one), strict=True)]
    relation = learn_relation(records)
    for mean, _, first, last in slowly_risen(points):
        assert relation.predict(first).share == pytest.approx(mean)
        assert relation.predict(last).share == pytest.approx(mean)
    assert relation.predict(-1).share == relation.found[0]
    assert relation.predict(2).share == relation.found[-1]


def test_the_margin_is_what_networks_that_were_left_out_are_off_by():
    records = networks(6)
    off = []
    for name, record in records.items():
        curve = slowly_risen(
            pair for other, one in records.items() if other != name for pair in zip(*_both(one), strict=True)
        )
        scores = [end for block in curve for end in block[2:]]
        heights = [block[0] for block in curve for _ in range(2)]
        apart = sorted(
            abs(found - np.interp(score, scores, heights)) for score, found in zip(*_both(record), strict=True)
        )
        off.append(apart[math.ceil(0.9 * (len(apart) - 1))])
    relation = learn_relation(records)
    assert relation.margin == pytest.approx(sorted(off)[math.ceil(0.8 * 7) - 1], abs=1e-9)
    one = relation.predict(0.5)
    assert (one.low, one.high) == (max(0, one.share - relation.margin), min(1, one.share + relation.margin))
    with pytest.raises(DataError, match="at least 4 networks, and there are 3"):
        learn_relation(networks(3))


def test_intervals_hold_nine_of_ten_suites_in_eight_of_ten_further_networks():
    held = []
    for seed in range(1, 11):
        held += [row.held >= 0.9 for row in left_out(networks(9, seed))]
    assert 0.72 <= np.mean(held) <= 0.93


def test_what_is_noise_predicts_worse_than_what_is_the_truth():
    records = networks(8, spread=0.0)
    by_truth, by_noise = (left_out(records, score) for score in ("mutants", "size"))
    assert max(row.error for row in by_truth) < 0.05 < 0.2 < min(row.error for row in by_noise)
    only = left_out(records, "mutants", kind="idc")
    assert [row.margin for row in only] == [row.margin for row in by_truth]
    assert [row.error for row in only] != [row.error for row in by_truth]
    sentence = telling.predicted(records)
    assert "8 networks each left out" in sentence
    assert len(telling.prediction_table(records)) == 2 + 3 * 4


@pytest.fixture
def few_mutants(monkeypatch):
    """A dozen mutants in place of sixty."""
    monkeypatch.setattr(fault_suites, "mutants_after_training", partial(mutants_after_training, count=12))


def test_a_mutation_score_is_that_of_sets(few_mutants):
    model = load_model("lenet1-digits")
    train, tests = load_dataset("digits", "train", 150), load_dataset("digits", "test", 60)
    kills = fault_suites._Kills(model, train, tests, None)
    inputs = [load_dataset("digits", split, count) for split, count in (("test", 60), ("train", 150))]
    both = fault_suites.joined_inputs(*inputs)
    assert both.inputs[:60].tolist() == tests.inputs.tolist()
    killed = mutants_after_training(model, both, count=12).yardstick().found
    by_train = {target for row in killed[60:] for target in np.flatnonzero(row).tolist()}
    for suite in (np.arange(60), np.array([3]), np.arange(0, 60, 7)):
        mine = {target for row in killed[suite] for target in np.flatnonzero(row).tolist()}
        assert kills.score(suite) == len(mine) / len(mine | by_train)
    assert mutation_score(model, train, tests) == kills.score(np.arange(60))


def test_more_tests_than_are_known_are_refused():
    model, tests = load_model("lenet1-digits"), load_dataset("digits", "test")
    many = tests.only(np.zeros(2501, np.int64))
    with pytest.raises(SettingError, match="at most 2,500 tests, and these are 2,501"):
        mutation_score(model, load_dataset("digits", "train", 10), many)


@pytest.fixture
def few_faults(tmp_path, monkeypatch):
    """Planted faults on digits, whose network makes too few mistakes; results in a folder of their own."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path))

    def planted(studied):
        return Yardstick("distinct faults", np.arange(len(studied.pool))[:, None] % 40 == np.arange(6))

    monkeypatch.setattr(fault_suites, "faults_of", planted)


def test_suites_are_of_all_kinds_and_sizes(few_faults, few_mutants, monkeypatch):
    settings = SuiteSettings(tests=120, train=100, sizes=4, draws=2)
    record = suites_of_network("lenet1-digits", settings)
    suites = record["suites"]
    assert suites["kind"] == ["random", "random", "idc", "deepgini"] * 4
    assert (record["tests"], record["faults"]) == (120, 6)
    assert suites["size"][0] == pytest.approx(2 / 120, abs=1e-4)
    assert suites["size"][-1] == 0.5
    for name in ("idc", "mutants", "found"):
        assert 0 <= min(suites[name]) <= max(suites[name]) <= 1
    # The longer suites of one ranking go on from the shorter but for ties: IDC never falls.
    by_idc = [value for value, kind in zip(suites["idc"], suites["kind"], strict=True) if kind == "idc"]
    assert by_idc == sorted(by_idc)
    monkeypatch.setattr(fault_suites, "_suites", None)  # finished
    assert suites_of_network("lenet1-digits", settings) == record


def test_too_few_faults_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    assert main(["experiment", "faults", "--models", "lenet1-digits", "--engine", "local"]) == 2
    assert "leave them out of faults" in capsys.readouterr().err
    with pytest.raises(DataError, match="distinct faults, too few"):
        suites_of_network("lenet1-digits", SuiteSettings(tests=60, train=60))


def test_the_experiment_tells_how_well_each_network_was_predicted(tmp_path, monkeypatch, capsys):
    records = networks(6)

    def found(name, **_):
        if name not in records:
            raise DataError("too few")
        return records[name]

    monkeypatch.setattr(fault_suites, "suites_of_network", found)
    from idc_core.cli.experiments import EXPERIMENTS
    from idc_core.cli.experiments.faults import _run

    assert EXPERIMENTS["faults"].together is _run

    class Arguments:
        engine = address = None
        retrain = fresh = publish = False

    rows = _run(Arguments(), (*records, "other"), lambda *_: None)
    assert len(rows) == 3 * 6 + 1
    assert rows[-1] == {"network": "other", "why": "too few"}
    (first,) = [row for row in rows if row["network"] == "0" and row.get("score") == "mutants"] or [rows[0]]
    assert first["error"] == left_out(records)[0].error


def test_the_kept_relation_rises_and_its_networks_were_left_out():
    suites = published(SUITES)
    relation = kept_relation()
    assert relation.networks == len(suites)
    assert np.all(np.diff(relation.found) >= 0)
    assert 0 < relation.margin < 1
    assert [row.network for row in left_out(suites)] == list(suites)
    # What is said of a network is not learned on itself.
    (own,) = [row for row in left_out(suites) if row.network == "lenet5-mnist"]
    other = kept_relation("lenet5-mnist")
    assert (other.networks, other.margin) == (len(suites) - 1, own.margin)
