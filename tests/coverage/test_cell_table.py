"""Tables of covered cells, their overlap, and cells that further inputs add, against counting by hand and sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idc_core.coverage.cell_table import (
    bordering,
    gained,
    gaps,
    members,
    nearest,
    overlap,
    state_counts,
    tabulate,
    typical,
)
from idc_core.errors import SettingError

SIZES = (2, 3, 2)


@st.composite
def setups(draw):
    """Assignments, classes and whether each test is right."""
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    assignments = np.stack([rng.integers(0, size, n) for size in SIZES], axis=1).astype(np.uint8)
    return assignments, rng.integers(0, 4, n), rng.random(n) < 0.7


@given(setups())
def test_every_cell_holds_its_tests(setup):
    assignments, targets, correct = setup
    table = tabulate(assignments, SIZES, targets, correct, classes=4)
    held = {tuple(cell): row for row, cell in enumerate(table.cells.tolist())}
    assert set(held) == {tuple(cell) for cell in assignments.tolist()}
    assert (table.covered, table.total) == (len(held), 12)
    for cell, row in held.items():
        inside = [i for i, one in enumerate(assignments.tolist()) if tuple(one) == cell]
        assert members(assignments, cell).tolist() == inside
        assert table.counts[row] == len(inside)
        assert table.wrong[row] == sum(not correct[i] for i in inside)
        assert table.only_errors[row] == all(not correct[i] for i in inside)
        assert table.by_class[row].tolist() == [sum(targets[i] == c for i in inside) for c in range(4)]


def test_without_right_answers_nothing_is_wrong():
    table = tabulate(np.array([[0], [1], [1]], np.uint8), (2,))
    assert table.wrong.tolist() == [0, 0]
    assert table.by_class.shape == (2, 0)


@given(setups())
def test_nearest_cells_are_the_nearest(setup):
    table = tabulate(setup[0], SIZES)
    for cell in itertools.product(*map(range, SIZES)):
        rows, steps = nearest(table, cell, count=4)
        away = {
            row: sum(abs(a - b) for a, b in zip(one, cell, strict=True))
            for row, one in enumerate(table.cells.tolist())
            if tuple(one) != cell
        }
        assert steps.tolist() == sorted(away.values())[:4]
        assert [away[row] for row in rows.tolist()] == steps.tolist()


def test_of_equally_near_cells_the_fuller_one_comes_first():
    table = tabulate(np.array([[0], [2], [2]], np.uint8), (3,))
    rows, steps = nearest(table, (1,))
    assert table.cells[rows].tolist() == [[2], [0]]
    assert steps.tolist() == [1, 1]


@given(setups())
def test_the_first_gap_is_the_thinnest_state(setup):
    table = tabulate(setup[0], SIZES)
    gap = gaps(table)[0]
    cells = {tuple(cell) for cell in table.cells.tolist()}
    shares = []
    for position, size in enumerate(SIZES):
        for cluster in range(size):
            every = [cell for cell in itertools.product(*map(range, SIZES)) if cell[position] == cluster]
            shares.append((sum(cell in cells for cell in every) / len(every), position, cluster, len(every)))
    share, position, cluster, total = min(shares, key=lambda one: one[0])
    assert (gap.position, gap.cluster, gap.total) == (position, cluster, total)
    assert gap.covered / gap.total == pytest.approx(share)
    assert sorted(shares)[-1][0] == pytest.approx(gaps(table)[-1].covered / gaps(table)[-1].total)
    assert len(gaps(table)) == sum(SIZES)


@given(setups())
def test_bordering_cells_are_empty_and_one_step_from_a_covered_one(setup):
    table = tabulate(setup[0], SIZES)
    covered = {tuple(cell) for cell in table.cells.tolist()}
    wanted = {}
    for cell in itertools.product(*map(range, SIZES)):
        around = sum(sum(abs(a - b) for a, b in zip(cell, one, strict=True)) == 1 for one in covered)
        if around and cell not in covered:
            wanted[cell] = around
    cells, borders = bordering(table)
    assert dict(zip(map(tuple, cells.tolist()), borders.tolist(), strict=True)) == wanted
    assert borders.tolist() == sorted(borders.tolist(), reverse=True)


def test_cells_border_on_each_other_past_64_bits():
    table = tabulate(np.zeros((1, 70), np.uint8), (2,) * 70)
    cells, borders = bordering(table)
    assert (cells.sum(axis=1) == 1).all()
    assert borders.tolist() == [1] * 70


@given(setups())
def test_state_counts_count_tests(setup):
    for neuron, counts in enumerate(state_counts(setup[0], SIZES)):
        assert counts.tolist() == [sum(setup[0][:, neuron] == c) for c in range(SIZES[neuron])]


def test_typical_inputs_lie_closest_to_the_centroid():
    values = np.array([0.0, 5.0, 1.25, 0.5, 6.0])
    clusters = np.array([0, 1, 0, 0, 1], np.uint8)
    assert typical(values, clusters, 0, 1.0, 2).tolist() == [2, 3]
    assert typical(values, clusters, 1, 5.2, 9).tolist() == [1, 4]


def test_shapes_that_disagree_are_refused():
    assignments = np.zeros((3, 2), np.uint8)
    with pytest.raises(SettingError, match=r"shape \(n, 3\); got \(3, 2\)"):
        tabulate(assignments, (2, 2, 2))
    with pytest.raises(SettingError, match=r"in targets, shape \(3,\); got \(2,\)"):
        tabulate(assignments, (2, 2), targets=np.zeros(2, int), classes=1)


GRID = (3, 2, 4)


def tuples(sizes):
    """Return a strategy for the cells of some inputs."""
    return st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), max_size=30)


def indices(cells, sizes):
    return np.array(cells, np.uint8).reshape(-1, len(sizes))


@given(tuples(GRID), tuples(GRID))
def test_gained_cells_are_those_of_no_test(known, further):
    found = gained(indices(known, GRID), indices(further, GRID), GRID)
    expected = sorted(set(further) - set(known))
    assert [tuple(cell) for cell in found.cells.tolist()] == expected
    assert found.counts.tolist() == [further.count(cell) for cell in expected]
    assert found.row.tolist() == [expected.index(cell) if cell in expected else -1 for cell in further]
    assert len(found) == len(expected)


def test_gained_cells_past_64_bits():
    sizes = [200] * 9
    known = np.zeros((1, 9), np.uint8)
    further = np.stack([known[0], np.full(9, 199, np.uint8), np.full(9, 199, np.uint8)])
    found = gained(known, further, sizes)
    assert found.cells.tolist() == [[199] * 9]
    assert found.counts.tolist() == [2]
    assert found.row.tolist() == [-1, 0, 0]


def table(cells, sizes):
    return tabulate(indices(cells, sizes), sizes)


@given(tuples((2, 3, 4)), tuples((2, 3, 4)))
def test_cells_are_shared_or_not(first, second):
    sizes = (2, 3, 4)
    one, other = table(first, sizes), table(second, sizes)
    found = overlap(one, other)
    assert found.first.tolist() == [tuple(cell) in set(second) for cell in one.cells.tolist()]
    assert found.second.tolist() == [tuple(cell) in set(first) for cell in other.cells.tolist()]
    both, only_first, only_second = set(first) & set(second), set(first) - set(second), set(second) - set(first)
    assert (found.both, found.only_first, found.only_second) == (len(both), len(only_first), len(only_second))


def test_grids_past_64_bits_are_compared_too():
    sizes = (256,) * 9
    found = overlap(table([[1] * 9, [2] * 9], sizes), table([[2] * 9, [3] * 9], sizes))
    assert (found.first.tolist(), found.second.tolist()) == ([False, True], [True, False])


def test_different_grids_are_refused():
    with pytest.raises(SettingError, match=r"\(2, 2\) and \(2, 3\)"):
        overlap(table([[0, 0]], (2, 2)), table([[0, 0]], (2, 3)))
