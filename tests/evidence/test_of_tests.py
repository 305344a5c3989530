"""Findings about tests are what slow, obvious counts say, and their intervals hold where the truth is known."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from idc_core.evidence import of_tests
from idc_core.evidence.finding import Verdict
from idc_core.evidence.of_tests import (
    accuracy_of_added,
    confused_pair,
    errors_alone,
    low_recall,
    training_alone,
    uneven_group,
)


def nowhere(*_):
    return ()


def hypergeometric(k, total, marked, drawn):
    """Probability that k of the drawn are marked."""
    return Fraction(comb(marked, k) * comb(total - marked, drawn - k), comb(total, drawn))


def two_sided(tests, count, training, learnt):
    """Fisher's exact test, twice the smaller tail, summed one by one."""
    total, marked = count + learnt, tests + training
    support = range(max(0, marked - learnt), min(marked, count) + 1)
    below = sum(hypergeometric(k, total, marked, count) for k in support if k <= tests)
    above = sum(hypergeometric(k, total, marked, count) for k in support if k >= tests)
    return min(1.0, float(2 * min(below, above)))


@pytest.mark.parametrize("tests", [[0, 9, 11], [7, 6, 7], [0, 20, 0]])
def test_the_most_uneven_group_is_that_of_fishers_test(tests):
    training = np.array([20, 15, 25])
    names = ["Tests of class a", "Tests of class b", "Tests of class c"]
    found = uneven_group("share", names, np.array(tests), training, (20, 60), lambda group: (("class", str(group)),))
    p = [two_sided(k, 20, learnt, 60) for k, learnt in zip(tests, training.tolist(), strict=True)]
    group = int(np.argmin(p))
    assert (found.claim, found.number, found.looks) == (names[group], tests[group], 3)
    assert found.where == (("class", str(group)),)
    assert found.p == pytest.approx(p[group])
    assert found.control.value == pytest.approx(training[group] / 3)
    own = tests[group] + training[group]
    assert found.least_p == pytest.approx(min(two_sided(k, 20, own - k, 60) for k in (max(0, own - 60), min(own, 20))))


def test_groups_that_hold_nothing_are_no_looks():
    none = np.zeros(2, np.int64)
    assert uneven_group("share", "ab", none, none, (5, 5), nowhere) is None
    assert uneven_group("share", "ab", none, np.array([2, 3]), (0, 5), nowhere) is None
    assert uneven_group("share", "ab", np.array([0, 1]), np.array([0, 2]), (4, 9), nowhere).looks == 1


def test_a_low_recall_is_that_of_fishers_test():
    tests, correct = np.array([10, 0, 12, 8]), np.array([9, 0, 6, 8])
    found = low_recall("abcd", tests, correct, nowhere)
    p = sum(hypergeometric(k, 30, 23, 12) for k in range(5, 7))
    assert (found.claim, found.number, found.looks) == ("Recall of class c", 0.5, 3)
    assert found.p == pytest.approx(float(p))
    assert found.least_p == pytest.approx(float(hypergeometric(5, 30, 23, 12)))
    assert found.control.value == pytest.approx(17 / 18)
    assert found.low < 0.5 - 17 / 18 < found.high < 0
    assert low_recall("ab", np.array([3, 0]), np.array([1, 0]), nowhere) is None


@pytest.mark.parametrize("right", [0, 3, 8])
def test_the_accuracy_on_added_inputs_is_that_of_fishers_test(right):
    found = accuracy_of_added("Accuracy on 8 accepted inputs", (right, 8), (50, 60))
    assert found.p == pytest.approx(two_sided(right, 8, 50, 60))
    assert found.least_p == pytest.approx(
        min(two_sided(k, 8, 50 + right - k, 60) for k in (0, 8) if 50 + right - k <= 60)
    )
    assert found.number == right / 8
    assert found.control.value == pytest.approx(50 / 60)
    assert found.low < right / 8 - 50 / 60 < found.high


def test_a_confused_pair_is_that_of_the_binomial_test():
    true = np.repeat([0, 1, 2], [10, 20, 30])
    predicted = true.copy()
    predicted[[0, 1, 2, 12, 40]] = [1, 1, 1, 0, 0]
    found = confused_pair("abc", true, predicted, lambda one, other: (("pair", f"{one}-{other}"),))
    share = Fraction(10, 2 * 60)
    p = sum(comb(5, k) * share**k * (1 - share) ** (5 - k) for k in range(3, 6))
    assert (found.claim, found.number, found.looks) == ("Tests of class a classified as b", 3, 6)
    assert found.where == (("pair", "0-1"),)
    assert found.p == pytest.approx(float(p))
    assert found.least_p == pytest.approx(float(share**5))
    assert found.control.value == pytest.approx(float(5 * share))
    assert confused_pair("abc", true, true, nowhere) is None
    assert confused_pair("ab", true % 2, 1 - true % 2, nowhere) is None


def test_cells_of_errors_are_those_of_marks_dealt_out_anew():
    tests = np.array([1] * 12 + [2] * 6 + [3] * 3 + [40])
    wrong = np.where(np.arange(len(tests)) < 4, 1, 0)
    wrong[-1] = 3
    found = errors_alone(tests, wrong, (("cell", "0-1"),))
    cell, rng = np.repeat(np.arange(len(tests)), tests), np.random.default_rng(5)
    dealt = []
    for _ in range(4000):
        marked = rng.permutation(len(cell))[: wrong.sum()]
        dealt.append(int((np.bincount(cell[marked], minlength=len(tests)) == tests).sum()))
    assert (found.number, found.looks, found.where) == (4, 1, (("cell", "0-1"),))
    assert found.control.value == pytest.approx(np.mean(dealt), abs=0.05)
    assert (found.control.low, found.control.high) == tuple(np.quantile(dealt, (0.025, 0.975), method="nearest"))
    assert found.p == pytest.approx(2 * np.mean(np.array(dealt) >= 4), abs=0.02)
    assert errors_alone(tests, tests, ()) is None
    assert errors_alone(tests, tests * 0, ()) is None


def test_too_few_errors_tell_nothing():
    found = errors_alone(np.array([1, 1, 1, 9]), np.array([1, 0, 0, 0]), ())
    assert found.verdict is Verdict.TOO_FEW
    assert found.p == pytest.approx(0.5, abs=0.04)


def test_untested_cells_are_those_of_inputs_dealt_out_anew():
    rng = np.random.default_rng(1)
    cells = rng.choice(60, 300, p=rng.dirichlet(np.full(60, 0.4)))
    tests, training = (np.bincount(part, minlength=60) for part in np.split(cells, [100]))
    there = tests + training > 0
    found = training_alone(tests[there], training[there], ())
    dealt = []
    for _ in range(3000):
        first, second = np.split(rng.permutation(cells), [100])
        dealt.append(len(set(second.tolist()) - set(first.tolist())))
    assert found.number == (tests[there] == 0).sum()
    assert found.control.value == pytest.approx(np.mean(dealt), abs=0.15)
    tails = np.mean(np.array(dealt) >= found.number), np.mean(np.array(dealt) <= found.number)
    assert found.p == pytest.approx(min(1, 2 * min(tails)), abs=0.1)
    assert training_alone(tests, tests * 0, ()) is None


def test_of_many_cells_fewer_draws_are_made(monkeypatch):
    monkeypatch.setattr(of_tests, "_MOST_NUMBERS", 100_000)
    expected, draws = of_tests._all_marked(np.full(160, 2), 40)
    assert len(draws) == 621
    assert draws.mean() == pytest.approx(expected, abs=0.2)
    nothing, none = of_tests._all_marked(np.array([300, 400]), 100)
    assert (nothing, none.any()) == (0.0, False)


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.1, 0.1), (0.02, 0.05), (0.5, 0.4)])
def test_the_interval_of_a_difference_holds(shares):
    rng = np.random.default_rng(2)
    held = 0
    for first, second in zip(rng.binomial(540, shares[0], 1000), rng.binomial(1257, shares[1], 1000), strict=True):
        low, high = of_tests._difference(int(first), 540, int(second), 1257)
        held += low <= shares[0] - shares[1] <= high
    assert 930 <= held <= 970


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
def test_the_range_of_a_control_holds_the_next_tests(share):
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        tests, training = rng.binomial(540, share), rng.binomial(1257, share)
        control = uneven_group("x", ["x"], np.array([tests]), np.array([training]), (540, 1257), nowhere).control
        held += control.low <= tests <= control.high
    assert held >= 0.93 * 400


@pytest.mark.slow
def test_as_often_as_it_says_something_is_told_where_nothing_is_there():
    rng = np.random.default_rng(4)
    told = np.zeros(3, int)
    for _ in range(300):
        true = rng.integers(0, 10, 540)
        predicted = np.where(rng.random(540) < 0.05, (true + rng.integers(1, 10, 540)) % 10, true)
        tests, right = np.bincount(true, minlength=10), np.bincount(true[true == predicted], minlength=10)
        learnt = np.bincount(rng.integers(0, 10, 1257), minlength=10)
        findings = (
            uneven_group("share", "0123456789", tests, learnt, (540, 1257), nowhere),
            low_recall("0123456789", tests, right, nowhere),
            confused_pair("0123456789", true, predicted, nowhere),
        )
        told += [one.verdict is Verdict.STANDS_OUT for one in findings]
    assert (told <= 0.05 * 300 + 6).all()
