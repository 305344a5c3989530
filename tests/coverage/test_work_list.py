"""The work list of uncovered cells, against counting cell by cell."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from idc_core.coverage.cell_table import tabulate
from idc_core.coverage.cells import encode
from idc_core.coverage.reach import CellState, find_reach
from idc_core.coverage.work_list import RankedBy, work_list

SIZES = (2, 3, 2, 2)
EVERY = list(itertools.product(*map(range, SIZES)))


@st.composite
def setups(draw):
    """Clusters of tests and training inputs, whether each test is right, and cells that generated inputs reach."""
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    tests, training, generated = draw(st.integers(1, 12)), draw(st.integers(0, 12)), draw(st.integers(0, 5))
    clusters = [
        np.stack([random.integers(0, size, count) for size in SIZES], axis=1).astype(np.uint8)
        for count in (tests, training, generated)
    ]
    return *clusters, random.random(tests) < 0.6


def slow(tests, training, generated, correct):
    """Every uncovered cell with something to rank it by: state, and training inputs, covered cells, tests, errors."""
    tests, training, generated = (list(map(tuple, some.tolist())) for some in (tests, training, generated))
    rows = {}
    for cell in EVERY:
        if cell in tests:
            continue
        near = [one for one in EVERY if sum(abs(a - b) for a, b in zip(one, cell, strict=True)) == 1]
        beside = [place for place, one in enumerate(tests) if one in near]
        inputs = training.count(cell)
        state = CellState.TRAINING if inputs else CellState.NOTHING
        if not inputs and cell in generated:
            state = CellState.GENERATED
        if beside or state is not CellState.NOTHING:
            covered, wrong = len({tests[place] for place in beside}), sum(not correct[place] for place in beside)
            rows[cell] = state, inputs, covered, len(beside), wrong
    return rows


def listed(tests, training, generated, correct):
    table = tabulate(tests, SIZES, correct=correct)
    found = tabulate(training, SIZES)
    left = [row for row, cell in enumerate(found.cells.tolist()) if cell not in table.cells.tolist()]
    reach = find_reach(table, found.cells[left].tolist(), found.counts[left].tolist(), encode(generated, SIZES))
    return work_list(table, reach)


@given(setups())
def test_every_cell_has_what_counting_finds(setup):
    found, expected = listed(*setup), slow(*setup)
    numbers = zip(found.states, found.training, found.borders, found.tests, found.wrong, strict=True)
    rows = {tuple(cell): row for cell, row in zip(found.cells.tolist(), numbers, strict=True)}
    assert rows == expected
    assert found.cells.tolist() == sorted(found.cells.tolist())
    assert found.unlisted == len(EVERY) - len({tuple(cell) for cell in setup[0].tolist()}) - len(expected)


@given(setups())
def test_cells_are_ranked_by_what_was_asked_for(setup):
    found, rows = listed(*setup), slow(*setup)
    order = [CellState.TRAINING, CellState.GENERATED, CellState.NOTHING]
    first = {
        RankedBy.REACH: lambda row: order.index(row[0]),
        RankedBy.ERRORS: lambda row: -row[4],
        RankedBy.TRAINING: lambda row: -row[1],
    }
    for by, key in first.items():
        expected = sorted(
            rows, key=lambda cell: (key(rows[cell]), -rows[cell][4], -rows[cell][1], -rows[cell][2], cell)
        )
        assert [tuple(cell) for cell in found.cells[found.ranked(by)].tolist()] == expected


def test_without_reach_only_cells_beside_covered_ones_are_listed():
    table = tabulate(np.array([[0, 0, 0, 0]], np.uint8), SIZES)
    found = work_list(table, None)
    assert len(found.cells) == 4
    assert set(found.states) == {CellState.NOTHING}
    assert found.unlisted == 24 - 1 - 4


def test_cells_that_were_tried_are_listed_too():
    table = tabulate(np.array([[0, 0, 0, 0]], np.uint8), SIZES)
    found = work_list(table, None, np.array([[1, 2, 1, 1], [0, 0, 0, 1]], np.uint8))
    assert len(found.cells) == 5
    assert found.cells[-1].tolist() == [1, 2, 1, 1]
    assert (found.borders[-1], found.tests[-1], found.states[-1]) == (0, 0, CellState.NOTHING)
    assert found.unlisted == 24 - 1 - 5


def test_cells_past_64_bits_are_listed():
    table = tabulate(np.zeros((2, 70), np.uint8), (2,) * 70, correct=np.array([True, False]))
    cell = np.ones((1, 70), np.uint8)
    found = work_list(table, find_reach(table, cell.tolist(), [3]))
    assert found.wrong.tolist() == [1] * 70 + [0]
    assert found.training.tolist() == [0] * 70 + [3]
    assert found.cells[found.ranked(RankedBy.REACH)[0]].tolist() == [1] * 70
    assert found.unlisted == 2**70 - 72
