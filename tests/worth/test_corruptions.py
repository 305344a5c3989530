"""What corrupted tests cover, beside sets of targets, and what is told of it over networks."""

import json
import math

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from idc_core.errors import DataError
from idc_core.filling import fit_judge
from idc_core.models import load_model
from idc_core.perturbation import CORRUPTIONS, corrupt
from idc_core.worth import corruptions, telling
from idc_core.worth.corruptions import CorruptionSettings, corrupted_gains
from idc_core.worth.documents import result_document
from idc_core.worth.measuring import usual_criterion
from idc_core.worth.pooling import added
from idc_core.worth.published import joined, published

KINDS = ("fog", "jpeg-compression")
SETTINGS = CorruptionSettings(inputs=40, severities=(1, 5))


@pytest.fixture(scope="module")
def inputs():
    return load_model("lenet1-digits"), load_dataset("digits", "train", 300), load_dataset("digits", "test", 240)


def targets_of(profiles):
    return [set(profiles.targets[a:b].tolist()) for a, b in zip(profiles.starts, profiles.starts[1:], strict=False)]


@pytest.mark.parametrize("name", ["nbc", "mdsc"])
def test_gains_are_those_of_sets(inputs, name, monkeypatch):
    monkeypatch.setattr(corruptions, "CORRUPTIONS", {kind: CORRUPTIONS[kind] for kind in KINDS})
    model, train, pool = inputs
    found = corrupted_gains(model, train, pool, [name, "nlc"], SETTINGS)
    assert list(found["gains"]) == [name]  # NLC has no targets
    order = np.random.default_rng(0).permutation(240)
    base, more = pool.only(order[:120]), pool.only(order[120:160])
    judge = fit_judge(model, model.card.default_layer, train, base, seed=0)
    criterion = usual_criterion(model, name).fit(train)
    known = set().union(*targets_of(criterion.profile(base)))
    slow, refused = {}, {}
    for kind, severity in [("", 0), *((kind, severity) for kind in KINDS for severity in (1, 5))]:
        made = corrupt(more.inputs, kind, severity, numbers=more.ids) if kind else np.array(more.inputs)
        p, targets = judge.p(made), targets_of(criterion.profile(made))
        new = set().union(*targets) - known
        valid = set().union(*[one for one, value in zip(targets, p, strict=True) if value > 0.05])
        slow[kind, severity] = [len(new), len(new - valid)]
        refused[kind, severity] = float((p <= 0.05).mean())
    gains = found["gains"][name]
    assert gains["0"] == slow["", 0]
    for severity in (1, 5):
        assert gains[str(severity)] == np.mean([slow[kind, severity] for kind in KINDS], 0).tolist()
        assert found["refused"][str(severity)] == pytest.approx(np.mean([refused[kind, severity] for kind in KINDS]))
    for kind in KINDS:
        assert gains[kind] == np.mean([slow[kind, severity] for severity in (1, 5)], 0).tolist()
    assert (found["inputs"], found["tests"]) == (40, 120)


def test_what_nothing_can_be_said_of_is_refused(inputs):
    model, train, pool = inputs
    with pytest.raises(DataError, match="at least 100 tests"):
        corrupted_gains(model, train, pool.only(np.arange(150)), ["nbc"], SETTINGS)
    words, texts = load_model("textcnn-20newsgroups"), np.zeros((240, 100), np.int64)
    part = type(pool)(**{**vars(pool), "inputs": texts})
    with pytest.raises(DataError, match="pictures"):
        corrupted_gains(words, part, part, ["nbc"], SETTINGS)


def record(random, lift):
    """A record in which corrupted tests cover `lift` times as much by one criterion, and as much as others by IDC."""
    natural = int(random.integers(20, 40))
    gains = {
        name: {"0": [natural, 1.0]} | {level: [natural * times, natural * times / 2] for level in ("1", "3", "5")}
        for name, times in (("idc", 1.0), ("nbc", lift))
    }
    about = {"refused": {"0": 0.05, "1": 0.3, "3": 0.6, "5": 0.9}, "bad": 0.0, "inputs": 200, "tests": 1000}
    return {"corruptions": {**about, "detector": "pixels", "gains": gains}}


def test_rows_are_over_networks_and_the_largest_is_first():
    random = np.random.default_rng(0)
    records = {str(number): record(random, 4.0) for number in range(10)}
    first, second = added(records)
    assert (first.criterion, second.criterion) == ("nbc", "idc")
    assert first.times["5"].is_certain
    assert not second.times["5"].is_certain
    assert math.exp(first.times["5"].value) == pytest.approx(4, rel=0.05)
    assert (first.invalid["0"], first.invalid["5"]) == (pytest.approx(1 / 30, rel=0.4), 0.5)
    sentence = telling.corrupted(records, [first, second])
    assert "over 10 networks" in sentence
    assert "refuses 90.0 % of the corrupted tests, and 5.0 %" in sentence
    assert telling.corruption_table([first])[-1].startswith("| **NBC** | 10 | 3.9")
    assert added({}) == []


def test_gains_of_another_criterion_join_the_kept_ones():
    kept = json.loads(json.dumps(next(iter(published().values()))))
    other = json.loads(json.dumps(kept))
    other["corruptions"]["gains"] = {"mine": other["corruptions"]["gains"]["idc"]}
    whole = joined(kept, other)["corruptions"]["gains"]
    assert set(whole) == {*kept["corruptions"]["gains"], "mine"}
    del kept["corruptions"]
    assert joined(kept, other)["corruptions"] == other["corruptions"]
    assert "Corrupted tests" not in result_document({kept["network"]: kept})
