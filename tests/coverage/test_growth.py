"""Coverage against the number of tests, against a count that follows the definition word for word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idc_core.coverage.growth import growth
from idc_core.errors import SettingError


def first_tests(codes, number: int) -> int:
    """Different cells among the first tests, straight from the definition."""
    return len(set(codes[:number]))


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(2, 80))
def test_given_order_counts_the_cells_of_the_first_tests(codes, points):
    grown = growth(np.array(codes, dtype=np.int64), points=points, orders=2)
    assert grown.given.tolist() == [first_tests(codes, number) for number in grown.tests]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(0, 5))
def test_shuffled_orders_agree_with_the_definition(codes, seed):
    grown = growth(np.array(codes), orders=4, seed=seed)
    rng = np.random.default_rng(seed)
    curves = []
    for _ in range(4):
        order = np.array(codes)[rng.permutation(len(codes))].tolist()
        curves.append([first_tests(order, number) for number in grown.tests])
    assert grown.low.tolist() == np.min(curves, axis=0).tolist()
    assert grown.high.tolist() == np.max(curves, axis=0).tolist()
    assert grown.mean == pytest.approx(np.mean(curves, axis=0))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=100))
def test_curves_rise_from_nothing_to_every_covered_cell(codes):
    grown = growth(np.array(codes), orders=3)
    for curve in (grown.given, grown.mean, grown.low, grown.high):
        assert curve[0] == 0
        assert curve[-1] == len(set(codes))
        assert (np.diff(curve) >= 0).all()
    assert (grown.low <= grown.mean).all()
    assert (grown.mean <= grown.high).all()
    assert grown.tests[0] == 0
    assert grown.tests[-1] == len(codes)


def greedy_cover(codes):
    """Cells covered after each test of a greedy set cover: again and again the test that adds the most cells."""
    left, seen, curve = [{code} for code in codes], set(), [0]
    while left:
        best = max(range(len(left)), key=lambda i: len(left[i] - seen))
        seen |= left.pop(best)
        curve.append(len(seen))
    return curve


@given(st.lists(st.integers(0, 9), max_size=40))
def test_greedy_order_is_that_of_a_greedy_set_cover(codes):
    grown = growth(np.array(codes, dtype=np.int64), orders=1)
    curve = greedy_cover(codes)
    assert grown.greedy.tolist() == [curve[number] for number in grown.tests]
    assert (grown.greedy >= grown.high).all()


@given(st.lists(st.integers(0, 9), max_size=300))
def test_half_of_the_cells_is_told_exactly(codes):
    half = growth(np.array(codes, dtype=np.int64), points=3, orders=1).half
    reached = [2 * first_tests(codes, number) >= len(set(codes)) for number in range(len(codes) + 1)]
    assert half == reached.index(True)


def test_codes_past_64_bits_are_counted_like_any_other():
    codes = np.array([2**70, 5, 2**70, 2**70 + 1], dtype=object)
    assert growth(codes, points=5).given.tolist() == [0, 1, 2, 2, 3]


def test_a_seed_gives_the_same_orders():
    codes = np.arange(50) % 17
    assert growth(codes, seed=3).mean.tolist() == growth(codes, seed=3).mean.tolist()
    assert growth(codes, seed=3).mean.tolist() != growth(codes, seed=4).mean.tolist()


@pytest.mark.parametrize(
    ("codes", "options", "words"),
    [
        (np.zeros((3, 2), int), {}, r"shape \(n,\); got shape \(3, 2\)"),
        (np.zeros(3, int), {"points": 1}, "points=1"),
        (np.zeros(3, int), {"orders": 0}, "orders=0"),
    ],
)
def test_impossible_requests_are_refused(codes, options, words):
    with pytest.raises(SettingError, match=words):
        growth(codes, **options)
