"""What is never true, or hardly ever, has no score: reading stops for it too, and says so."""

import numpy as np
import pytest
from scipy.stats import binom

from idc_core.inspection import Hypothesis, inspect
from idc_core.inspection.pairwise import _RAREST, StoppingRule
from tests.inspection.planted import Table, is_letter, letter_class, noisy_table, texts

MEASURES = ("pearson", "spearman", "difference", "iou", "information")
COUNT = 6000
DATA = texts(COUNT, 8, seed=3)
MODEL = Table(noisy_table())


def of_records(name, holds):
    return Hypothesis(name, "test", "binary", lambda records: holds(records.ids))


NEVER, ALWAYS = of_records("never", lambda ids: ids < 0), of_records("always", lambda ids: ids >= 0)
ONCE = of_records("once", lambda ids: ids == 77)
ALL_BUT_ONCE = of_records("all but once", lambda ids: ids != 77)
SOMETIMES = of_records("in one of 50", lambda ids: ids % 50 == 0)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("measure", [*MEASURES, "logistic"])
@pytest.mark.parametrize("hypothesis", [NEVER, ALWAYS, ONCE, ALL_BUT_ONCE], ids=lambda one: one.name)
def test_reading_stops_although_there_is_no_score(measure, hypothesis):
    found = inspect(MODEL, DATA, [is_letter(1, 2), hypothesis], [measure], ["units"], error=0.1)
    assert found.table["records"].max() < COUNT
    lines = found.where(hypothesis=hypothesis.name, group="" if measure != "logistic" else "all units")
    if hypothesis in (NEVER, ONCE) and measure == "pearson":
        assert np.isnan(found.table["score"][lines]).all()
        for column in ("low", "high", "margin", "p_value"):
            assert np.isnan(found.table[column][lines]).all()
    others = found.where(hypothesis=is_letter(1, 2).name)
    assert set(found.table["remark"][others]) == {""}


@pytest.mark.parametrize(
    ("hypothesis", "remark"),
    [
        (NEVER, "never true in the tests read"),
        (ALWAYS, "always true in the tests read"),
        (Hypothesis("number", "test", "number", lambda r: np.full(len(r), 3)), "never changes in the tests read"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
@pytest.mark.parametrize("error", [None, 0.1])
def test_why_there_is_no_score_is_said(hypothesis, remark, error):
    found = inspect(MODEL, DATA, [hypothesis], ["pearson"], ["units"], error=error)
    assert np.isnan(found.table["score"]).all()
    assert set(found.table["remark"]) == {remark}
    assert bool(found.table["records"].max() < COUNT) is (error is not None)
    assert set(found.frame()["remark"]) == {remark}


def test_a_probe_says_that_nothing_was_there_to_be_told():
    found = inspect(MODEL, DATA, [NEVER], ["logistic"], ["units"])
    (line,) = found.where(unit=-1)
    assert np.isnan(found.table["score"][line])
    assert found.table["remark"][line] == "never true in the tests held out"


def test_classes_of_which_there_is_one_only_stop():
    one = letter_class()
    alike = Hypothesis("alike", "test", "classes", lambda r: np.full(len(r), 4), one.classes)
    found = inspect(MODEL, DATA, [alike], ["information"], ["units"], error=0.1)
    assert found.table["records"].max() < COUNT
    assert set(found.table["remark"]) == {"never changes in the tests read"}


def test_what_is_not_that_rare_is_read_until_it_is_sure():
    found = inspect(MODEL, DATA, [NEVER, SOMETIMES], ["pearson"], ["units"], error=0.1)
    lines = found.where(hypothesis=SOMETIMES.name)
    assert np.isfinite(found.table["score"][lines]).all()
    assert (found.table["margin"][lines] <= 0.1).all()
    full = inspect(MODEL, DATA, [SOMETIMES], ["pearson"], ["units"])
    names, scores = found.matrix("pearson", "model", "units")
    apart = scores[names.index(SOMETIMES.name)] - full.matrix("pearson", "model", "units")[1][0]
    assert np.abs(apart).max() <= 0.1


def test_a_probe_is_not_sure_of_few_records_that_it_all_tells():
    """Once in 32 records, always told: the jackknife sees no variation, the rule of three knows better."""
    seldom = Hypothesis("seldom", "test", "binary", lambda r: (r.ids % 32 == 0)[:, None] & (r.inputs == 1))
    columns = noisy_table()
    columns[:, 0] = np.arange(9) == 1
    found = inspect(Table(columns), DATA, [is_letter(1), seldom], ["logistic"], ["units"], error=0.1, passes=20)
    (often,), (once,) = (found.where(hypothesis=one, unit=-1) for one in (is_letter(1).name, "seldom"))
    assert found.table["score"][often] == 1
    assert found.table["records"][often] < found.table["records"][once]
    # 1 - 0.025 ** (1 / n) <= 0.1 from n = 36 on, of two scores at 0.95 together.
    margins = StoppingRule(0.1, 0.95, 2, 10**6).unseen(np.array([0, 35, 36]), 0)
    assert margins[0] > 0.9
    assert margins[1] > 0.1 >= margins[2]


def test_the_bound_on_a_share_is_the_rule_of_three():
    sure = StoppingRule(0.1, 0.95, 1, 10**6)
    never = np.array([0])
    assert not sure.rare(never, int(3 / _RAREST) - 20).any()
    assert sure.rare(never, int(3 / _RAREST)).all()
    assert not StoppingRule(None, 0.95, 1, 10**6).rare(never, 10**5).any()
    # Clopper and Pearson, 1934, by the binomial's own sum: at the bound, so few have probability 0.05.
    for met in (1, 4):
        at = next(read for read in range(100, 3000) if sure.rare(np.array([met]), read)[0])
        assert binom.cdf(met, at, _RAREST) <= 0.05 < binom.cdf(met, at - 1, _RAREST)
