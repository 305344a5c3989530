"""The smallest set of tests with the same coverage: no smaller one exists, and IDC measures the same on it."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from idc_core.coverage.closest_inputs import spread, to_own_cell
from idc_core.coverage.growth import smallest_subset
from idc_core.coverage.idc import IDC
from idc_core.errors import SettingError


@given(st.lists(st.integers(0, 4), max_size=8))
def test_no_smaller_set_covers_as_much(cells):
    codes = np.array(cells, dtype=np.int64)
    subset = smallest_subset(codes, np.zeros(len(codes))).tolist()
    assert {cells[i] for i in subset} == set(cells)
    smaller = itertools.combinations(range(len(cells)), len(subset) - 1) if subset else ()
    assert not any({cells[i] for i in chosen} == set(cells) for chosen in smaller)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=30))
def test_each_cell_is_represented_by_its_closest_preferred_test(tests):
    codes, distances, preferred = (np.array([test[i] for test in tests]) for i in range(3))
    for wanted in (None, preferred.astype(bool)):
        best = {}
        for i, (code, distance, liked) in enumerate(tests):
            rank = (wanted is not None and not liked, distance, i)
            best[code] = min(best.get(code, rank), rank)
        assert smallest_subset(codes, distances, wanted).tolist() == sorted(rank[2] for rank in best.values())


def test_codes_past_64_bits_are_told_apart():
    codes = np.array([2**70, 2**70 + 1, 2**70], dtype=object)
    assert smallest_subset(codes, np.array([2.0, 0.0, 1.0])).tolist() == [1, 2]


def test_idc_measured_on_the_subset_is_the_same():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)).eval()
    train, test = torch.randn(200, 6), torch.randn(90, 6)
    with torch.no_grad():
        trained, tested = model[:2](train).numpy(), model[:2](test).numpy()
    criterion = IDC(model, "1", m=5).fit(train)
    activations = tested[:, criterion.important]
    assignments = criterion.count(activations)
    unit = spread(trained[:, criterion.important])
    codes = np.unique(assignments, axis=0, return_inverse=True)[1].reshape(-1)
    subset = smallest_subset(codes, to_own_cell(activations, criterion.centroids, assignments, unit))
    again = IDC(model, "1", m=5).fit(train).update(test[subset])
    assert len(subset) == again.covered == criterion.covered < len(test)
    assert again.counts.codes.tolist() == criterion.counts.codes.tolist()
    fewer = IDC(model, "1", m=5).fit(train).update(test[subset[1:]])
    assert fewer.covered == criterion.covered - 1


def test_shapes_that_disagree_are_refused():
    with pytest.raises(SettingError, match=r"in distances, shape \(3,\); got \(2,\)"):
        smallest_subset(np.zeros(3, int), np.zeros(2))
    with pytest.raises(SettingError, match=r"in preferred, shape \(3,\); got \(2,\)"):
        smallest_subset(np.zeros(3, int), np.zeros(3), np.zeros(2, bool))
