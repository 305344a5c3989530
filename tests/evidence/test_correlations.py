"""Correlations over suites: as scipy has them, with intervals that hold, and seldom a false one among many."""

import itertools

import numpy as np
import pytest
from scipy import stats

from idc_core.base.statistics import holm, spearman
from idc_core.errors import SettingError
from idc_core.evidence.correlations import _resampled, _student, needed, rank_correlations
from idc_core.evidence.finding import LEVEL, Verdict


def related(rho, suites, random, others=1):
    """Return scores of suites, and others of which the first is correlated with them."""
    first = random.normal(size=suites)
    more = random.normal(size=(others, suites))
    more[0] = rho * first + np.sqrt(1 - rho**2) * more[0]
    return first, more


def test_correlations_are_those_of_scipy():
    first, others = related(0.5, 40, np.random.default_rng(0), 3)
    others[1] = np.round(others[1])  # equal values
    found = rank_correlations(first, others)
    for place, row in enumerate(others):
        expected = stats.spearmanr(first, row)
        assert found.rho[place] == pytest.approx(expected.statistic)
        assert found.p[place] == pytest.approx(expected.pvalue, abs=0.02)
    assert (found.low <= found.rho).all()
    assert (found.rho <= found.high).all()
    np.testing.assert_allclose(found.corrected_p, holm(found.p))


def test_a_constant_score_is_not_compared():
    first, others = related(0.9, 30, np.random.default_rng(1), 2)
    others[1] = 4
    found = rank_correlations(first, others)
    assert np.isnan([found.rho[1], found.low[1], found.p[1], found.corrected_p[1]]).all()
    said = found.finding(["KMNC", "NC"], "{} correlates most with IDC")
    assert said.looks == 1
    assert said.verdict is Verdict.STANDS_OUT
    assert said.sentence.startswith("KMNC correlates most with IDC: 0.")
    assert rank_correlations(np.ones(9), others[:, :9]).finding(["a", "b"], "{}") is None


def test_needed_is_that_of_all_orders():
    ranks = np.arange(7) - 3
    exact = np.sort([abs(ranks[list(order)] @ ranks) / (ranks @ ranks) for order in itertools.permutations(range(7))])
    least = min(value for value in np.unique(exact.round(12)) if (exact >= value - 1e-9).mean() <= LEVEL)
    assert needed(7) == pytest.approx(least)
    assert needed(7) == pytest.approx(0.786, abs=0.001)
    assert needed(4) is None, "of 24 orders, no two are rare enough"
    assert needed(100, 11) > needed(100) > needed(1000)


def test_resampled_correlations_are_those_of_the_suites_that_were_drawn():
    first, others = related(0.6, 12, np.random.default_rng(4), 2)
    scores = np.round(np.stack([first, *others]), 1)
    found = _resampled(scores, np.random.default_rng(5))
    often = np.random.default_rng(5).multinomial(12, np.full(12, 1 / 12), len(found))
    for row in range(20):
        drawn = np.repeat(scores, often[row], axis=1)
        np.testing.assert_allclose(found[row], spearman(drawn)[0, 1:])


def test_students_quantiles_are_those_of_scipy():
    for freedom in (28, 98, 1000):
        for beyond in (0.025, 0.0025, 0.001):
            assert _student(beyond, freedom) == pytest.approx(stats.t.isf(beyond, freedom), abs=0.005)


def test_too_few_suites_are_refused():
    with pytest.raises(SettingError, match="3 suites or more"):
        rank_correlations(np.ones(2), np.ones((1, 2)))


@pytest.mark.slow
def test_unrelated_criteria_seldom_stand_out():
    random, false = np.random.default_rng(2), 0
    for _ in range(200):
        first, others = related(0, 40, random, 11)
        finding = rank_correlations(first, np.round(others)).finding([str(i) for i in range(11)], "{}")
        false += finding.verdict is Verdict.STANDS_OUT
    assert false / 200 <= LEVEL + 0.03  # 200 draws are within this of their share, 95 times of 100


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_intervals_hold_the_true_correlation(rho):
    random = np.random.default_rng(3)
    true, held = 6 / np.pi * np.arcsin(rho / 2), 0
    for _ in range(200):
        first, others = related(rho, 100, random)
        found = rank_correlations(first, others)
        held += found.low[0] <= true <= found.high[0]
    assert held / 200 > 0.91
