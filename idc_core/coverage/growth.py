"""How coverage grows with the number of tests: in the given order, in shuffled ones, and in the best one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cells import Codes
from idc_core.errors import SettingError


@dataclass(frozen=True)
class Growth:
    """Covered cells after the first tests of a test set."""

    tests: NDArray[np.int64]  # (p,), numbers of tests at which coverage is reported, ascending, from 0 to all tests
    given: NDArray[np.int64]  # (p,), cells covered by that many tests in the order of the test set
    mean: NDArray[np.float64]  # (p,), cells covered in the shuffled orders on average
    low: NDArray[np.int64]  # at least
    high: NDArray[np.int64]  # at most
    greedy: NDArray[np.int64]  # (p,), cells covered in the order that takes the test with the largest gain first
    half: int  # tests after which the given order has covered half of the cells that all tests cover
    orders: int  # number of shuffled orders
    seed: int


def growth(codes: Codes, points: int = 200, orders: int = 20, seed: int = 0) -> Growth:
    """Count the cells that the first tests cover at `points` numbers of tests, from the cell of every test (n,).

    A curve is the number of first visits up to each point: one pass over the tests per order. In the greedy order of a
    set cover the largest gain here is 1 as long as a covered cell is left, because a test reaches one cell: no order
    covers more at any point.
    """
    if codes.ndim != 1:
        raise SettingError(f"Growth needs one code per test, shape (n,); got shape {codes.shape}.")
    if points < 2 or orders < 1:
        raise SettingError(f"Growth needs points >= 2 and orders >= 1; got points={points}, orders={orders}.")
    count = len(codes)
    cells, cell_of = np.unique(codes, return_inverse=True)
    tests = np.unique(np.linspace(0, count, points).round().astype(np.int64))
    rng = np.random.default_rng(seed)
    visits = [_first_visits(cell_of[rng.permutation(count)], len(cells)) for _ in range(orders)]
    shuffled = np.stack([_covered(visited, tests) for visited in visits])
    given = _first_visits(cell_of, len(cells))
    return Growth(
        tests=tests,
        given=_covered(given, tests),
        mean=shuffled.mean(axis=0),
        low=shuffled.min(axis=0),
        high=shuffled.max(axis=0),
        greedy=np.minimum(tests, len(cells)),
        half=int(given[(len(cells) - 1) // 2]) + 1 if len(cells) else 0,
        orders=orders,
        seed=seed,
    )


def _first_visits(cell_of: NDArray[np.intp], cells: int) -> NDArray[np.int64]:
    """Return the positions in `cell_of` that visit a cell for the first time, ascending."""
    first = np.empty(cells, dtype=np.int64)
    # Assigned from the last test to the first, so that the first visit is what remains.
    first[cell_of[::-1]] = np.arange(len(cell_of) - 1, -1, -1)
    return np.sort(first)


def _covered(visits: NDArray[np.int64], tests: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the cells visited before each number of tests."""
    return np.searchsorted(visits, tests, side="left").astype(np.int64)


def smallest_subset(
    codes: Codes, distances: NDArray[np.floating], preferred: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Choose as few tests as reach every cell the tests reach, one per cell; positions, int64 (cells,), ascending.

    Of the tests of a cell, `preferred` (n,) ones come first, then the closest to its centroids (`distances` (n,), from
    `to_own_cell`), then the first.
    """
    count = len(codes)
    for name, values in (("codes", codes), ("distances", distances), ("preferred", preferred)):
        if values is not None and values.shape != (count,):
            raise SettingError(f"Expected one value per test in {name}, shape ({count},); got {values.shape}.")
    cell_of = np.unique(codes, return_inverse=True)[1].reshape(-1)
    later = np.zeros(count, dtype=np.bool_) if preferred is None else ~preferred
    order = np.lexsort((np.arange(count), distances, later, cell_of))
    first = np.diff(cell_of[order], prepend=-1) > 0
    return np.sort(order[first]).astype(np.int64)
