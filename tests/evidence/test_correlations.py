"""Correlations over suites of one pool: as scipy has them, intervals that hold, and seldom a false one among many."""

import numpy as np
import pytest
from scipy import stats

from idc_core.coverage.agreement import equal_suites
from idc_core.errors import SettingError
from idc_core.evidence.correlations import _ORDERS, rank_correlations
from idc_core.evidence.finding import LEVEL, Verdict


def pool(rho, tests, random, others=1):
    """Return scores of suites by a number of each test, and by others of which the first is correlated with it."""
    values = random.normal(size=(1 + others, tests))
    values[1] = rho * values[0] + np.sqrt(1 - rho**2) * values[1]
    return lambda suites: values[0, suites].sum(1), lambda suites: values[1:][:, suites].sum(2)


def found_in(rho, tests, random, others=1):
    first, rest = pool(rho, tests, random, others)
    suites = equal_suites(tests, seed=int(random.integers(1 << 30)))
    return rank_correlations(first, rest(suites), suites, tests)


def test_correlations_are_those_of_scipy_and_chance_is_that_of_random_orders():
    first, rest = pool(0.5, 40, np.random.default_rng(0), 3)
    suites = equal_suites(40)
    others = np.round(rest(suites))  # equal values
    found = rank_correlations(first, others, suites, 40, seed=7)
    assert found.rho == pytest.approx([stats.spearmanr(first(suites), row).statistic for row in others])
    random, most, deviations = np.random.default_rng(7), [], []
    for _ in range(_ORDERS):
        moved = first(random.permutation(40)[suites])
        drawn = [stats.spearmanr(moved, row).statistic for row in others]
        most.append(np.abs(drawn).max())
        deviations.append(np.arctanh(drawn))
    for rho, p in zip(found.rho, found.p, strict=True):
        assert p == (1 + sum(one >= abs(rho) - 1e-12 for one in most)) / (_ORDERS + 1)
    half = 1.959964 * np.std(deviations, axis=0)
    assert np.arctanh(found.high) - np.arctanh(found.rho) == pytest.approx(half)
    assert np.arctanh(found.rho) - np.arctanh(found.low) == pytest.approx(half)
    assert (found.suites, found.tests) == (100, 40)


def test_the_printed_range_decides():
    random, verdicts = np.random.default_rng(1), set()
    for rho in np.linspace(0, 0.9, 30):
        found = found_in(rho, 30, random, 4)
        said = found.finding("abcd", "{}")
        out = abs(said.number) > said.control.high
        assert out == (said.verdict is Verdict.STANDS_OUT) == (np.nanmin(found.p) <= LEVEL)
        verdicts.add(out)
    assert verdicts == {True, False}


def test_a_constant_score_is_not_compared():
    first, rest = pool(0.9, 60, np.random.default_rng(1), 2)
    suites = equal_suites(60)
    others = rest(suites)
    others[1] = 4
    found = rank_correlations(first, others, suites, 60)
    assert np.isnan([found.rho[1], found.low[1], found.high[1], found.p[1]]).all()
    said = found.finding(["KMNC", "NC"], "{} correlates most with IDC")
    assert said.verdict is Verdict.STANDS_OUT
    assert said.sentence.startswith("KMNC correlates most with IDC: 0.")
    assert said.control.what == "by chance"
    assert rank_correlations(lambda some: np.ones(len(some)), others, suites, 60).finding(["a", "b"], "{}") is None


def test_the_same_score_correlates_fully():
    first, _ = pool(0, 60, np.random.default_rng(2))
    suites = equal_suites(60)
    found = rank_correlations(first, first(suites)[None], suites, 60)
    assert (found.rho[0], found.low[0], found.high[0]) == pytest.approx((1, 1, 1))
    assert found.p[0] == found.least_p == 1 / (_ORDERS + 1)


def test_of_a_handful_of_tests_nothing_can_be_told():
    for tests in (3, 6):
        first, _ = pool(0, tests, np.random.default_rng(3))
        suites = equal_suites(tests)
        said = rank_correlations(first, first(suites)[None], suites, tests).finding(["KMNC"], "{}")
        assert said.verdict is (Verdict.TOO_FEW if tests == 3 else Verdict.STANDS_OUT)


def test_scores_that_are_none_are_refused():
    first, rest = pool(0, 9, np.random.default_rng(4))
    for suites, others in (
        (equal_suites(9, 2), rest(equal_suites(9, 2))),
        (equal_suites(9), np.full((1, 100), np.nan)),
    ):
        with pytest.raises(SettingError, match="3 suites or more"):
            rank_correlations(first, others, suites, 9)


@pytest.mark.parametrize("tests", [12, 20])
def test_unrelated_criteria_of_few_tests_seldom_stand_out(tests):
    random, false = np.random.default_rng(2), 0
    for _ in range(60):
        said = found_in(0, tests, random, 10).finding([str(i) for i in range(10)], "{}")
        false += said.verdict is Verdict.STANDS_OUT
    assert false <= stats.binom.ppf(0.99, 60, LEVEL)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_intervals_hold_the_true_correlation(rho):
    random, held = np.random.default_rng(3), 0
    true = 6 / np.pi * np.arcsin(rho / 2)  # of suites that share no test
    for _ in range(200):
        found = found_in(rho, 60, random)
        held += found.low[0] <= true <= found.high[0]
    assert held / 200 > 0.91
