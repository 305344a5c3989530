"""The laws that Importance-Driven Coverage keeps, whatever the inputs, their order and their parts."""

import copy

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import nn

from idc_core import IDC
from tests.lrp.networks import numbers, settle

NETWORK = settle(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)))
FITTED = IDC(NETWORK, "2", m=3).fit(numbers(120, 6, seed=5))
POOL = numbers(80, 6, seed=8)
rows = st.lists(st.integers(0, len(POOL) - 1), min_size=1, max_size=40)


def covering(*parts):
    """Return a copy of the fitted criterion that has seen these rows of the pool, part by part."""
    criterion = copy.deepcopy(FITTED)
    for part in parts:
        criterion.update(POOL[part])
    return criterion


def cells(criterion):
    return dict(zip(criterion.counts.codes.tolist(), criterion.counts.counts.tolist(), strict=True))


class TestLaws:
    @given(rows, rows)
    def test_coverage_grows_and_stays_in_range(self, first, second):
        criterion = covering(first)
        before = criterion.covered
        assert 0 < criterion.score <= 1
        criterion.update(POOL[second])
        assert before <= criterion.covered <= min(criterion.total, len(first) + len(second))
        assert 0 < criterion.score <= 1

    @given(rows, st.randoms(use_true_random=False))
    def test_order_does_not_matter(self, chosen, random):
        shuffled = random.sample(chosen, len(chosen))
        assert cells(covering(shuffled)) == cells(covering(chosen))

    @given(rows, st.integers(0, 40))
    def test_cutting_does_not_matter(self, chosen, cut):
        parts = [part for part in (chosen[:cut], chosen[cut:]) if part]
        assert cells(covering(*parts)) == cells(covering(chosen))

    @given(rows, rows, rows)
    @hypothesis_settings(max_examples=40)
    def test_merging_parts_is_the_whole(self, a, b, c):
        whole = cells(covering(a + b + c))
        assert cells(covering(a).merge(covering(b)).merge(covering(c))) == whole
        assert cells(covering(c).merge(covering(b).merge(covering(a)))) == whole

    @given(rows)
    def test_seeing_inputs_again_covers_nothing_new(self, chosen):
        assert covering(chosen, chosen).covered == covering(chosen).covered
