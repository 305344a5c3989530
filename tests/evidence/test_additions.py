"""What an addition adds stands beside what as many natural inputs would, and nothing stands out where it is natural."""

import numpy as np
import pytest

from idc_core.errors import SettingError
from idc_core.evidence.additions import addition
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import LEVEL, Verdict

TESTS = 540


def cells(total, power, seed=0):
    """Return how often each cell is reached: a few often, most seldom."""
    random = np.random.default_rng(seed)
    often = random.permutation(1 / np.arange(1, total + 1) ** power) * random.gamma(1, 1, total)
    return often / often.sum()


def drawn(often, inputs, random):
    """Return the numbers of tests in the reached cells, and how many cells further inputs add."""
    tests, more = random.multinomial(TESTS, often), random.multinomial(inputs, often)
    return tests[tests > 0], int(((more > 0) & (tests == 0)).sum())


HELD = np.array([1] * 27 + [2] * 12 + [10] * 40)


def test_the_control_is_what_the_tests_predict():
    found = addition("x", [3], HELD, 10_000, 64)
    expected, low, high = Discovery.of_counts(HELD, 10_000).new(64)
    assert (found.control.value, found.control.low, found.control.high) == (round(expected, 2), low, high)
    assert found.p == Discovery.of_counts(HELD, 10_000).p_of(64, 3)
    assert addition("x", [0], HELD, len(HELD), 64).control.value == 0, "no cell is left"
    assert addition("x", [0], np.array([3, 3]), 50, 2).control.high > 0, "no cell that one test reaches"


@pytest.mark.parametrize("wrong", [([], 5, 1), ([0, 2], 5, 1), ([1, 2], 1, 1), ([1, 2], 5, 0)])
def test_what_cannot_be_counted_is_refused(wrong):
    counts, total, inputs = wrong
    with pytest.raises(SettingError, match="Expected numbers of tests"):
        addition("x", [1], np.array(counts, np.int64), total, inputs)


def test_an_excess_stands_out_and_says_both_numbers():
    found = addition("New cells from 64 FGSM inputs", [14], HELD, 192, 64)
    assert found.verdict is Verdict.STANDS_OUT
    assert found.sentence.startswith("New cells from 64 FGSM inputs: 14, and ")
    range_ = f"({found.control.low} to {found.control.high})"
    assert found.sentence.endswith(f"{range_} in as many natural inputs.")
    assert addition("x", [3], HELD, 192, 64).verdict is Verdict.AS_EXPECTED
    assert addition("x", [2, 3, 4, 3], HELD, 192, 64).number == 3
    assert addition("x", [2, 3], HELD, 192, 64).p > 0.05


def test_more_inputs_than_tests_are_too_many_to_tell():
    assert addition("x", [50], np.array([1, 2, 3, 4]), 100, 11).verdict is Verdict.TOO_FEW
    assert addition("x", [1], np.array([1]), 100, 1).verdict is Verdict.TOO_FEW, "of one test"


def test_a_test_set_that_reaches_all_cells_tells_nothing():
    found = addition("x", [0], np.array([5, 5]), 2, 4)
    assert found.verdict is not Verdict.STANDS_OUT
    assert (found.control.low, found.control.value, found.control.high) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [64, TESTS // 2, TESTS])
@pytest.mark.parametrize(("total", "power"), [(192, 1.5), (192, 2.5), (64, 1.2), (2000, 1.2)])
def test_a_natural_addition_seldom_stands_out(total, power, inputs):
    random, often = np.random.default_rng(1), cells(total, power)
    false = 0
    for _ in range(1000):
        counts, added = drawn(often, inputs, random)
        false += addition("x", [added], counts, total, inputs).verdict is Verdict.STANDS_OUT
    # 1,000 draws are within 1.4 points of their share, 95 times of 100.
    assert false / 1000 <= LEVEL + 0.014


@pytest.mark.slow
def test_an_addition_that_looks_everywhere_stands_out():
    random, often = np.random.default_rng(2), cells(192, 1.5)
    found = 0
    for _ in range(300):
        tests, more = random.multinomial(TESTS, often), random.multinomial(TESTS, np.full(192, 1 / 192))
        added = int(((more > 0) & (tests == 0)).sum())
        finding = addition("x", [added], tests[tests > 0], 192, TESTS)
        found += finding.verdict is Verdict.STANDS_OUT
    assert found / 300 > 0.95
