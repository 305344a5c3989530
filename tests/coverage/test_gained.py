"""Cells that further inputs add, against sets of tuples."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from idc_core.coverage.cell_table import gained

SIZES = (3, 2, 4)
cells = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), max_size=30)


def array(several):
    return np.array(several, np.uint8).reshape(-1, len(SIZES))


@given(cells, cells)
def test_gained_cells_are_those_of_no_test(known, further):
    found = gained(array(known), array(further), SIZES)
    expected = sorted(set(further) - set(known))
    assert [tuple(cell) for cell in found.cells.tolist()] == expected
    assert found.counts.tolist() == [further.count(cell) for cell in expected]
    assert found.row.tolist() == [expected.index(cell) if cell in expected else -1 for cell in further]
    assert len(found) == len(expected)


def test_more_cells_than_64_bits():
    sizes = [200] * 9
    known = np.zeros((1, 9), np.uint8)
    further = np.stack([known[0], np.full(9, 199, np.uint8), np.full(9, 199, np.uint8)])
    found = gained(known, further, sizes)
    assert found.cells.tolist() == [[199] * 9]
    assert found.counts.tolist() == [2]
    assert found.row.tolist() == [-1, 0, 0]
