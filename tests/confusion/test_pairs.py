"""What lies behind a pair, the order of the classes, and folding: against plain definitions."""

import numpy as np
import pytest

from idc_core.confusion import Evidence
from idc_core.confusion.class_pair import between, confused, confused_in, layer_relevance, shared_cells
from idc_core.confusion.distance import cluster_order, fold, neighbours

NAMES = tuple("abcd")


@pytest.fixture
def single():
    random = np.random.default_rng(0)
    true, predicted = random.integers(0, 4, (2, 60))
    return Evidence(NAMES, predicted, true, values=random.random((60, 3)))


def test_confused_inputs(single):
    pairs = list(zip(single.true.tolist(), single.predicted.tolist(), strict=True))
    assert confused(single, 1, 3).tolist() == [i for i, pair in enumerate(pairs) if pair in ((1, 3), (3, 1))]
    several = confused_in(single, np.array([[1, 3], [0, 2]]))
    assert several.tolist() == sorted([*confused(single, 1, 3), *confused(single, 0, 2)])
    assert confused_in(single, np.zeros((0, 2), np.int64)).shape == (0,)
    assert not len(confused(Evidence(NAMES, single.predicted, values=single.values), 1, 3))


def test_confused_inputs_with_several_labels():
    random = np.random.default_rng(1)
    true, predicted = random.random((2, 80, 4)) < 0.4
    evidence = Evidence(NAMES, predicted, true, values=random.random((80, 2)))
    wanted = [
        i for i in range(80) if any(true[i, a] and not true[i, b] and predicted[i, b] for a, b in ((0, 2), (2, 0)))
    ]
    assert confused(evidence, 0, 2).tolist() == wanted


def test_torn_inputs_come_closest_first():
    scores = np.random.default_rng(2).random((50, 4)).astype(np.float32)
    wanted = [i for i in range(50) if set(np.argsort(scores[i])[-2:].tolist()) == {1, 3}]
    wanted.sort(key=lambda i: abs(scores[i, 1] - scores[i, 3]))
    assert between(scores, 3, 1).tolist() == wanted
    assert between(scores[:, :1], 0, 1).shape == (0,)


def test_relevance_of_a_class():
    values = np.random.default_rng(3).random((10, 4)).astype(np.float32)
    np.testing.assert_allclose(layer_relevance(values, np.array([2, 5])), values[[2, 5]].astype(float).mean(0))
    assert np.isnan(layer_relevance(values, np.zeros(0, np.int64))).all()


def test_cells_of_both():
    first, second = (np.random.default_rng(4).integers(0, 2, (n, 3)) for n in (30, 20))
    cells, counts = shared_cells(first, second)
    tallies = [{tuple(cell): 0 for cell in part.tolist()} for part in (first, second)]
    for tally, part in zip(tallies, (first, second), strict=True):
        for cell in part.tolist():
            tally[tuple(cell)] += 1
    both = set(tallies[0]) & set(tallies[1])
    assert {tuple(cell) for cell in cells.tolist()} == both
    for cell, count in zip(cells.tolist(), counts.tolist(), strict=True):
        assert count == [tally[tuple(cell)] for tally in tallies]
    assert counts.min(1).tolist() == sorted(counts.min(1), reverse=True)
    assert shared_cells(first, second[:0])[0].shape == (0, 3)


def blocks():
    """Two groups of three close classes, and one class without predictions."""
    place = np.array([0, 10, 1, 11, 0.5, 10.4])
    found = np.full((7, 7), np.nan)
    found[:6, :6] = np.abs(place[:, None] - place[None])
    return found


def test_close_classes_are_neighbours():
    order = cluster_order(blocks()).tolist()
    assert sorted(order) == list(range(6))
    assert {frozenset(order[:3]), frozenset(order[3:])} == {frozenset({0, 2, 4}), frozenset({1, 3, 5})}
    assert abs(order.index(0) - order.index(4)) == 1
    assert cluster_order(blocks()[:2, :2]).tolist() == [0, 1]


def test_folded_tables_keep_the_closest_pair():
    distance = blocks()
    order = cluster_order(distance)
    folded, groups = fold(distance, order, 2)
    assert [len(group) for group in groups] == [3, 3]
    for i, one in enumerate(groups):
        for j, other in enumerate(groups):
            assert folded[i, j] == min(distance[a, b] for a in one for b in other if a != b)
    whole, groups = fold(distance, order, 50)
    assert [group.tolist() for group in groups] == [[one] for one in order]
    assert np.isnan(np.diag(whole)).all()
    np.testing.assert_array_equal(whole[~np.eye(6, dtype=bool)], distance[np.ix_(order, order)][~np.eye(6, dtype=bool)])


def test_neighbours_of_a_pair():
    assert neighbours(blocks(), 0, 2, 3).tolist() in ([0, 2, 4], [2, 0, 4])
    assert set(neighbours(blocks(), 0, 1, 99).tolist()) == set(range(6))
