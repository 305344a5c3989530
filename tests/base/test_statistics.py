"""Corrections for the number of comparisons, against one step after the other, and by simulation."""

import numpy as np
import pytest

from idc_core.base.statistics import holm, holm_levels


def slow_holm(p):
    """Correct one p-value after the other, smallest first."""
    corrected, most = dict.fromkeys(range(len(p)), np.nan), 0.0
    tested = sorted((value, place) for place, value in enumerate(p) if value == value)
    for step, (value, place) in enumerate(tested):
        most = max(most, min(1.0, value * (len(tested) - step)))
        corrected[place] = most
    return list(corrected.values())


@pytest.mark.parametrize("p", [[0.01, 0.04, 0.03, 0.2], [0.5], [], [0.2, np.nan, 0.01], [np.nan], [0.02, 0.02, 0.9]])
def test_holm_is_the_stepwise_procedure(p):
    np.testing.assert_allclose(holm(np.array(p, np.float64)), slow_holm(p))


def test_levels_tell_the_same_verdicts():
    random = np.random.default_rng(0)
    for _ in range(200):
        p = random.uniform(0, 0.1, random.integers(1, 9))
        p[random.random(len(p)) < 0.1] = np.nan
        levels = holm_levels(p)
        np.testing.assert_array_equal(p <= levels, holm(p) <= 0.05)
        np.testing.assert_array_equal(np.isnan(levels), np.isnan(p))


def test_false_findings_are_rare_among_many():
    p = np.random.default_rng(1).uniform(size=(1000, 6))
    assert np.mean([(holm(row) <= 0.05).any() for row in p]) <= 0.064  # 1,000 draws at 5 %
    assert (p <= 0.05).any(1).mean() > 0.2
