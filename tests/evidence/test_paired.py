"""Differences of pairs: scipy's tests one column at a time, error rates in simulations, planted and absent effects."""

import numpy as np
import pytest
from scipy import stats

from idc_core.base.statistics import holm
from idc_core.errors import SettingError
from idc_core.evidence.paired import PairedDifferences


def drawn(seed, pairs, means, spread=1.0):
    random = np.random.default_rng(seed)
    return random.normal(means, spread, (pairs, len(means)))


def obviously(values, margin):
    """What `PairedDifferences` says of each column by itself, with one call of scipy for everything."""
    told = []
    for column in values.T:
        test = stats.ttest_1samp(column, 0)
        low, high = test.confidence_interval(0.90)
        above = stats.ttest_1samp(column, -margin, alternative="greater").pvalue
        below = stats.ttest_1samp(column, margin, alternative="less").pvalue
        told.append((column.mean(), test.pvalue, max(abs(low), abs(high)), max(above, below)))
    return np.array(told).T


@pytest.mark.parametrize("pairs", [3, 5, 12])
def test_every_number_is_what_scipy_says_column_by_column(pairs):
    values = drawn(1, pairs, [0, 0.3, 1, 5])
    found = PairedDifferences(values, 1.5)
    mean, p, within, p_equivalent = obviously(values, 1.5)
    assert found.mean == pytest.approx(mean)
    assert found.p == pytest.approx(holm(p))
    assert found.within == pytest.approx(within)
    assert found.p_equivalent == pytest.approx(holm(p_equivalent))
    plain = values.mean(0) / values.std(0, ddof=1)
    assert found.effect == pytest.approx(plain * (1 - 3 / (4 * pairs - 5)))


def test_one_column_has_the_plain_interval():
    values = drawn(2, 6, [1])
    found = PairedDifferences(values, 1.0)
    low, high = stats.ttest_1samp(values[:, 0], 0).confidence_interval(0.95)
    assert (found.mean - found.half, found.mean + found.half) == (pytest.approx([low]), pytest.approx([high]))


def test_the_interval_and_the_corrected_p_value_tell_the_same():
    for seed in range(200):
        found = PairedDifferences(drawn(seed, 5, [0, 0, 1, 2]), 1.0)
        assert (np.abs(found.mean) > found.half).tolist() == (found.p < 0.05).tolist()


def test_false_findings_and_false_equivalences_keep_to_five_percent():
    values = [drawn(seed, 5, [0, 0, 0, 0]) for seed in range(1000)]
    wrong = np.mean([(PairedDifferences(one, 1.0).p < 0.05).any() for one in values])
    # Differences at the margin itself are not equivalent: to say that they are is the error here.
    at_margin = np.mean([(PairedDifferences(one + 1.0, 1.0).p_equivalent < 0.05).any() for one in values])
    assert wrong < 0.065
    assert at_margin < 0.065


def test_what_is_planted_is_found_and_what_is_absent_is_called_none():
    found = PairedDifferences(drawn(3, 8, [2.0, -2.0, 0.2, -0.2], 0.1), 0.5)
    assert [found.verdict(column) for column in range(4)] == ["more", "less", "little more", "little less"]
    same = drawn(3, 4, [0.0], 0.1)
    assert PairedDifferences(np.concatenate([same, -same]), 0.5).verdict(0) == "none"
    assert PairedDifferences(drawn(4, 3, [0.1], 5.0), 0.5).verdict(0) == "open"


def test_pairs_that_all_differ_alike_are_no_proof_beyond_rounding():
    found = PairedDifferences(np.full((2, 1), 0.01), 0.05)
    assert found.p[0] > 0.05
    assert PairedDifferences(np.zeros((5, 1)), 0.05).verdict(0) == "none"
    assert np.isinf(PairedDifferences(np.full((5, 1), 0.01), 0.05).effect[0])


def test_one_pair_says_nothing():
    found = PairedDifferences(np.array([[3.0]]), 1.0)
    assert (found.mean[0], found.verdict(0)) == (3.0, "open")
    assert np.isnan([found.half[0], found.p[0], found.effect[0], found.within[0], found.p_equivalent[0]]).all()


@pytest.mark.parametrize("values", [np.zeros(3), np.array([[np.nan], [1.0]])])
def test_values_that_are_no_finite_matrix_are_refused(values):
    with pytest.raises(SettingError, match="finite differences"):
        PairedDifferences(values, 1.0)


@pytest.mark.parametrize("margin", [0, -1, np.nan])
def test_a_margin_is_above_zero(margin):
    with pytest.raises(SettingError, match="margin of equivalence"):
        PairedDifferences(np.zeros((2, 1)), margin)
