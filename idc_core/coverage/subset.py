"""The smallest set of tests that covers what all tests cover."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError


def smallest_subset(
    codes: NDArray[Any], distances: NDArray[np.floating], preferred: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Choose as few tests as possible that reach every cell the tests reach.

    Parameters
    ----------
    codes : ndarray (n,)
        Cell of every test; any values that can be compared.
    distances : ndarray of float (n,)
        How far each test lies from the middle of its cell, from `idc_core.coverage.neighbours.to_own_cell`.
    preferred : ndarray of bool (n,), optional
        Tests that represent their cell before all others, however far they lie from its middle.

    Returns
    -------
    ndarray of int64 (cells,)
        Positions of the chosen tests, ascending.

    Raises
    ------
    SettingError
        If the shapes do not agree.

    Notes
    -----
    A test reaches exactly one cell, so no set with fewer tests than there are covered cells can cover them
    all, and one test a cell does: the choice is a minimum set cover, not an approximation of one. Of the
    tests of a cell the closest to its centroids is taken, the first of several equally close ones.
    """
    count = len(codes)
    for name, values in (("codes", codes), ("distances", distances), ("preferred", preferred)):
        if values is not None and values.shape != (count,):
            raise SettingError(f"Expected one value a test in {name}, shape ({count},); got {values.shape}.")
    cell_of = np.unique(codes, return_inverse=True)[1].reshape(-1)
    later = np.zeros(count, dtype=np.bool_) if preferred is None else ~preferred
    order = np.lexsort((np.arange(count), distances, later, cell_of))
    first = np.diff(cell_of[order], prepend=-1) > 0
    return np.sort(order[first]).astype(np.int64)
