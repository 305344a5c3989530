"""Which cells two test sets share, against sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idc_core.coverage.cell_table import overlap, tabulate
from idc_core.errors import SettingError


def table(cells, sizes):
    return tabulate(np.array(cells, np.uint8).reshape(-1, len(sizes)), sizes)


CELLS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 3)), max_size=20)


@given(CELLS, CELLS)
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
