"""Units that follow a hypothesis tell swaps that keep it from swaps that break it; others do not."""

import random

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from idc_core.datasets.sql import WINDOWS, parses, parses_of, sentences
from idc_core.errors import DataError, SettingError
from idc_core.evidence.finding import Verdict
from idc_core.inspection import Hypothesis, library
from idc_core.inspection.verification import _rewrite_sql, verify
from tests.inspection.planted import Table, is_letter, noisy_table, texts


def network(letters=17, units=20):
    columns = noisy_table(letters, units, seed=4)
    columns[:, 5] = np.isin(np.arange(letters), (1, 2, 3, 4, 5, 6, 7))
    return Table(columns)


DATA = texts(letters=17)
HYPOTHESIS = is_letter(1, 2, 3, 4, 5, 6, 7)


def test_the_planted_unit_separates_and_random_units_do_not():
    found = verify(network(), "units", [5], DATA, HYPOTHESIS, pairs=100)
    assert found.silhouette == pytest.approx(1)
    assert found.random.max() < 0.5
    assert found.p_value == pytest.approx(0.01)
    said = found.finding("Silhouette")
    assert (said.number, said.p, said.verdict) == (found.silhouette, found.p_value, Verdict.STANDS_OUT)
    assert said.control.value == pytest.approx(found.random.mean())
    assert said.control.low <= said.control.value <= said.control.high
    assert (found.baseline == 0).all()
    assert (found.treatment == -1).all()


def test_other_units_are_no_better_than_random_ones():
    found = verify(network(), "units", [2], DATA, HYPOTHESIS, pairs=100)
    assert found.silhouette < 0.5
    assert found.p_value > 0.02
    assert (found.finding("Silhouette").verdict is Verdict.STANDS_OUT) == found.confirmed


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("wanted", [range(1, 8), range(3, 15), (2, 5, 9, 12)], ids=str)
def test_planted_units_are_confirmed_among_many_and_others_are_not(wanted, seed):
    """Two units that follow the hypothesis, one of them the other way about, among eighteen that follow letters."""
    columns = noisy_table(17, 20, seed=seed)
    columns[:, 5] = np.isin(np.arange(17), wanted)
    columns[:, 11] = 3 - 2 * columns[:, 5]
    arguments = Table(columns), "units", [5, 11], DATA, is_letter(*wanted)
    found = verify(*arguments, pairs=60, sets=40, seed=seed)
    assert found.silhouette == pytest.approx(1)
    assert found.p_value == pytest.approx(1 / 41)
    others = np.setdiff1d(np.arange(20), [5, 11])
    # Of pairs of units without anything planted about one in twenty passes at 0.05.
    chosen = np.random.default_rng(seed).permutation(others)[:10].reshape(5, 2)
    blind = Table(np.delete(columns, [5, 11], 1))
    values = [
        verify(
            blind,
            "units",
            [int(np.searchsorted(others, at)) for at in some],
            *arguments[3:],
            pairs=60,
            sets=40,
            seed=seed,
        ).p_value
        for some in chosen
    ]
    assert sum(value < 0.05 for value in values) <= 1


def test_the_same_seed_gives_the_same():
    first, second = (verify(network(), "units", [5, 7], DATA, HYPOTHESIS, pairs=20, sets=5, seed=3) for _ in range(2))
    assert first.silhouette == second.silhouette
    assert (first.random == second.random).all()
    assert first.baseline.shape == (20, 2)


def test_layers_with_one_value_a_record_work_too():
    found = verify(network(), "logits", [0], DATA, HYPOTHESIS, pairs=20, sets=5)
    assert found.baseline.shape == (20, 1)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"pairs": 5}, SettingError),
        ({"sets": 0}, SettingError),
        ({"units": []}, SettingError),
        ({"units": [99]}, SettingError),
        ({"units": list(range(15))}, SettingError),
        ({"hypothesis": Hypothesis("n", "t", "number", lambda r: r.inputs)}, SettingError),
        ({"hypothesis": Hypothesis("g", "t", "binary", lambda r: r.inputs > 3, recomputable=False)}, SettingError),
        ({"hypothesis": is_letter(1), "tries": 2}, DataError),
        ({"swaps": "grammar"}, SettingError),
    ],
)
def test_mistakes_are_explained(change, error):
    arguments = {"units": [5], "hypothesis": HYPOTHESIS, "pairs": 20, "sets": 2, **change}
    with pytest.raises(error):
        verify(network(), "units", dataset=DATA, **arguments)


@pytest.fixture(scope="module")
def sql():
    return load_dataset("sql", "test", 200)


def test_the_grammar_writes_both_texts_alike_up_to_the_place(sql):
    found = _rewrite_sql(sql, 300, random.Random(1))
    one, other = found.before.inputs, found.after.inputs
    at = np.arange(300)
    assert (one[at, found.places] != other[at, found.places]).all()
    before_place = np.arange(one.shape[1]) < found.places[:, None]
    assert (np.where(before_place, one - other, 0) == 0).all()
    assert len(set(found.places.tolist())) == one.shape[1], "swaps at all places of a record"
    again = _rewrite_sql(sql, 300, random.Random(1))
    assert (again.after.inputs == other).all()
    # The parses are those of the texts: digits, and nothing else, are made by the rule of digits.
    rules = {one.name: one for one in library(sql, ["grammar"])}
    (digits,) = [one for one in library(sql, ["characters"]) if one.name == "is a digit"]
    for side in (found.before, found.after):
        assert (rules["inside digit"](side) == digits(side)).all()
        assert digits(side).any()


def test_parses_of_rewritten_texts_are_those_of_the_data_set(sql):
    made, offsets = sentences("test", 50)
    picked = offsets[:, 1]
    expected, found = parses("test", np.arange(50) * WINDOWS + 1), parses_of(made, picked)
    for part in ("inside", "starts", "ends", "depth"):
        assert (getattr(found, part) == getattr(expected, part)).all()


@pytest.mark.parametrize("rule", ["inside digit", "inside operator"])
def test_grammar_rules_are_verified_on_texts_that_the_grammar_rewrote(sql, rule):
    """A unit that sees all symbols that the rule makes, and no other does, is confirmed; random tables are not."""
    (hypothesis,) = [one for one in library(sql, ["grammar"]) if one.name == rule]
    wanted = {"inside digit": "0123456789", "inside operator": "<>="}[rule]
    letters = len(sql.vocabulary)
    columns = noisy_table(letters, 20, seed=2)
    columns[:, 5] = [symbol in tuple(wanted) for symbol in sql.vocabulary]
    found = verify(Table(columns), "units", [5], sql, hypothesis, pairs=10, sets=40, tries=8)
    assert found.p_value == pytest.approx(1 / 41)
    assert found.silhouette > 0.6
    assert found.random.mean() < 0.3
    letters_of_tables = next(one for one in library(sql, ["grammar"]) if one.name == "inside table")
    with pytest.raises(SettingError, match="no value per symbol"):
        verify(Table(columns), "logits", [0], sql, letters_of_tables, pairs=10, sets=1, tries=2, swaps="grammar")
