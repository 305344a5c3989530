"""Validity: conformal p-values by their definition and by simulation, and what is said of a detector."""

import numpy as np
import pytest
from scipy import stats

from idc_core.errors import SettingError
from idc_core.evidence.finding import Verdict
from idc_core.evidence.validity import REJECTED, Accepted, Validity, conformal_p

GOOD = Validity(
    "of a test", Accepted("natural inputs", 95, 100), (Accepted("noise", 1, 100), Accepted("mixed", 3, 100))
)


def test_p_is_the_share_at_least_as_strange():
    random = np.random.default_rng(0)
    calibration, given = random.integers(0, 30, 80).astype(float), random.integers(-3, 35, 50).astype(float)
    slow = [(1 + sum(other >= one for other in calibration)) / 81 for one in given]
    np.testing.assert_allclose(conformal_p(calibration, given), slow)
    assert conformal_p(calibration, np.zeros(0)).shape == (0,)


def test_natural_inputs_are_refused_as_often_as_said():
    """Whatever is measured, ties included: a share of at most 0.05."""
    random = np.random.default_rng(1)
    for draw in (random.standard_normal, random.standard_cauchy, lambda size: random.poisson(3, size).astype(float)):
        refused = [np.mean(conformal_p(draw(99), draw(200)) <= REJECTED) for _ in range(1_000)]
        assert np.mean(refused) <= REJECTED + 3 * np.std(refused) / np.sqrt(1_000)


def test_too_few_natural_inputs_are_refused():
    with pytest.raises(SettingError, match="at least 19"):
        conformal_p(np.zeros(18), np.zeros(1))


def test_a_detector_is_not_told_without_known_bad_inputs():
    with pytest.raises(SettingError, match="known-bad"):
        Validity("of a test", Accepted("natural inputs", 95, 100), ())


def test_shares_and_intervals():
    assert GOOD.bad == Accepted("known-bad inputs", 4, 200)
    share, of = 0.02, 200
    middle, half = share + 1.96**2 / (2 * of), 1.96 * np.sqrt(share * (1 - share) / of + 1.96**2 / (4 * of**2))
    np.testing.assert_allclose(
        GOOD.bad.interval, [(middle + sign * half) / (1 + 1.96**2 / of) for sign in (-1, 1)], rtol=1e-3
    )
    assert Accepted("nothing", 0, 0).interval == (0.0, 1.0)


def test_the_finding_carries_what_is_accepted_of_bad_inputs():
    found = GOOD.finding(60, 100)
    assert found.verdict is Verdict.STANDS_OUT
    assert (found.number, found.control.value) == (0.6, 0.02)
    assert found.low < 0.58 < found.high
    assert found.p == pytest.approx(stats.fisher_exact([[60, 40], [4, 196]])[1])
    assert "2.0 % (0.78 % to 5.0 %) of known-bad inputs" in found.sentence
    assert GOOD.finding(2, 100).verdict is Verdict.AS_EXPECTED
    assert GOOD.finding(0, 0).verdict is Verdict.TOO_FEW


def test_difference_holds_the_truth():
    random = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        made, bad = int(random.binomial(150, 0.4)), int(random.binomial(120, 0.1))
        found = Validity("", GOOD.natural, (Accepted("noise", bad, 120),)).finding(made, 150)
        held += found.low <= 0.3 <= found.high
    assert 0.92 <= held / 400 <= 0.98
