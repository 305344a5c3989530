"""The trained network on SQL: what its units are known to do, and what only all of them tell together."""

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from idc_core.experiments.stopping import stopping
from idc_core.inspection import discoveries, inspect, library, shuffled
from idc_core.inspection.verification import verify
from idc_core.models import load_model

NAMES = ("is a lower-case letter", "inside where clause", "is a digit")


@pytest.fixture(scope="module")
def model():
    return load_model("charlstm-sql")


@pytest.fixture(scope="module")
def data():
    return load_dataset("sql", "test", 400)


@pytest.fixture(scope="module")
def found(model, data):
    hypotheses = [one for one in library(data, ["characters", "grammar"]) if one.name in NAMES]
    return inspect(model, data, hypotheses, ["pearson", "logistic", "chance"])


def test_a_unit_tells_lower_case_letters(found):
    first = found.where(measure="pearson")[0]
    assert found.table["hypothesis"][first] == "is a lower-case letter"
    assert abs(found.table["score"][first]) > 0.6


@pytest.mark.parametrize(("name", "at_least"), [(NAMES[0], 0.98), (NAMES[1], 0.75), (NAMES[2], 0.95)])
def test_all_units_together_tell_more_than_chance(found, name, at_least):
    (probe,) = found.where(measure="logistic", hypothesis=name, unit=-1)
    (chance,) = found.where(measure="chance", hypothesis=name, unit=-1)
    assert found.table["score"][probe] > at_least
    assert found.table["score"][probe] > found.table["score"][chance] + 0.3


def test_swapped_symbols_confirm_the_lower_case_units(model, data, found):
    units = [int(found.table["unit"][line]) for line in found.where(measure="pearson", hypothesis=NAMES[0])[:5]]
    (hypothesis,) = [one for one in library(data, ["characters"]) if one.name == NAMES[0]]
    verified = verify(model, "lstm", units, data, hypothesis, pairs=100, sets=19)
    assert verified.silhouette > verified.random.mean()


@pytest.mark.rare
def test_nothing_passes_on_rules_dealt_out_to_other_records(model):
    """Rare rules and rarely active units: what they do together by chance is no discovery."""
    data = load_dataset("sql", "train", 400)
    hypotheses = [shuffled(one, at) for at, one in enumerate(library(data, ["grammar"])[::4])]
    found = inspect(model, data, hypotheses, ["pearson", "difference", "iou", "information"], ["lstm"])
    assert (found.table["p_value"] >= 0).sum() > 5000
    assert not discoveries(found, 0.05).any()


@pytest.mark.rare
def test_runs_that_stop_early_keep_their_word(model):
    """A small edition of docs/results/inspection.md: every score of every run within the error."""
    data = load_dataset("sql", "train", 1024)
    hypotheses = library(data, ["grammar", "words"])[::8]
    (found,) = stopping(model, "lstm", data, hypotheses, "pearson", errors=(0.15,), seeds=range(4))
    assert found.scores[0] == 512 * len(hypotheses)
    assert found.kept == 4
    assert found.most.max() < 1024
    assert found.unscored.max() == 0


@pytest.mark.slow
def test_a_probe_of_all_records_is_the_same_however_often_it_was_asked_before(model, data):
    """Of rare rules a little more training changes the score."""
    hypotheses = library(data, ["grammar"])[2::12]
    asked, at_once = (
        inspect(model, data, hypotheses, ["logistic"], ["lstm"], error=error).matrix("logistic", "charlstm-sql", "lstm")
        for error in (1e-9, None)
    )
    assert (asked[0], len(asked[0])) == (at_once[0], len(hypotheses))
    assert np.array_equal(asked[1], at_once[1])
