"""A number among random draws: its rank, what one draw tells, and how often nothing stands out falsely."""

import numpy as np
import pytest

from idc_core.errors import SettingError
from idc_core.evidence.draws import against_draws
from idc_core.evidence.finding import LEVEL, Verdict

WHAT = "of as many random ones"


def test_the_rank_among_the_draws_is_the_probability():
    found = against_draws("trial", "The first 6 move", 5.0, np.arange(1.0, 100.0), WHAT)
    assert found.p == 2 * 6 / 100, "five draws are as low or lower, and it is one of 100 itself"
    assert found.control.value == 50
    assert (found.low, found.high) == (5 - found.control.high, 5 - found.control.low)
    assert against_draws("trial", "x", 0.0, np.arange(1.0, 40.0), WHAT).verdict is Verdict.STANDS_OUT


def test_one_end_alone_needs_half_of_the_draws():
    draws = np.arange(1.0, 40.0)
    low = against_draws("trial", "x", 0.0, draws, WHAT, ends="low", looks=2)
    assert (low.p, low.least_p, low.verdict) == (1 / 40, 1 / 40, Verdict.STANDS_OUT)
    high = against_draws("trial", "x", 40.0, draws, WHAT, ends="low", looks=2)
    assert (high.p, high.verdict) == (1, Verdict.AS_EXPECTED)
    assert against_draws("trial", "x", 40.0, draws, WHAT, ends="high").p == 1 / 40
    assert against_draws("trial", "x", 0.0, draws, WHAT, looks=2).verdict is Verdict.TOO_FEW


def test_few_draws_tell_nothing():
    one = against_draws("trial", "The first 6 move", 9.0, np.array([1.0]), WHAT)
    assert one.sentence == "The first 6 move: 9, and 1 of as many random ones, too few to tell."
    assert against_draws("trial", "x", 0.0, np.arange(1.0, 39.0), WHAT).verdict is Verdict.TOO_FEW


@pytest.mark.parametrize("draws", [[], [np.nan], [[1.0]]])
def test_draws_are_numbers(draws):
    with pytest.raises(SettingError, match="every draw"):
        against_draws("trial", "x", 1.0, np.array(draws), WHAT)


def test_a_random_choice_seldom_stands_out():
    values = np.random.default_rng(0).normal(size=(1000, 40))
    false = [against_draws("x", "x", row[0], row[1:], WHAT).verdict is Verdict.STANDS_OUT for row in values]
    assert np.mean(false) <= LEVEL + 0.014  # 1,000 draws are within this of their share, 95 times of 100
