"""Which cells two test sets reach, together and alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable
from idc_core.coverage.cells import Codes, decode, encode
from idc_core.errors import SettingError


@dataclass(frozen=True)
class Overlap:
    """What two test sets have in common.

    Attributes
    ----------
    first, second : ndarray of bool (cells,)
        For each covered cell of either table, whether the other test set reaches it too.
    """

    first: NDArray[np.bool_]
    second: NDArray[np.bool_]

    @property
    def both(self) -> int:
        """Cells that both reach."""
        return int(self.first.sum())

    @property
    def only_first(self) -> int:
        """Cells that only the first test set reaches."""
        return int((~self.first).sum())

    @property
    def only_second(self) -> int:
        """Cells that only the second test set reaches."""
        return int((~self.second).sum())


def overlap(first: CellTable, second: CellTable) -> Overlap:
    """Compare the cells that two test sets reach.

    Parameters
    ----------
    first, second : CellTable
        Covered cells of the same neurons with the same clusters.

    Returns
    -------
    Overlap

    Raises
    ------
    SettingError
        If the tables are of different grids.
    """
    if first.sizes != second.sizes:
        raise SettingError(f"Expected tables of the same cells; got cluster counts {first.sizes} and {second.sizes}.")
    codes = encode(first.cells, first.sizes), encode(second.cells, second.sizes)
    return Overlap(among(codes[0], codes[1]), among(codes[1], codes[0]))


def among(codes: Codes, others: Codes) -> NDArray[np.bool_]:
    """Return whether each code is one of the ascending `others`; `np.isin` is quadratic on codes past 64 bits."""
    if not len(others):
        return np.zeros(len(codes), dtype=np.bool_)
    place = np.minimum(np.searchsorted(others, codes), len(others) - 1)
    found: NDArray[np.bool_] = (others[place] == codes).astype(np.bool_)
    return found


@dataclass(frozen=True, eq=False)
class Gained:
    """Newly covered cells.

    Attributes
    ----------
    cells : ndarray of uint8 (g, m)
        In ascending order of their cluster indices.
    counts : ndarray of int64 (g,)
        Further inputs in each of them.
    row : ndarray of int64 (n,)
        For each further input its cell's place in `cells`; -1 where the test set reaches the cell already.
    """

    cells: NDArray[np.uint8]
    counts: NDArray[np.int64]
    row: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.cells)


def gained(known: NDArray[np.uint8], further: NDArray[np.uint8], sizes: Sequence[int]) -> Gained:
    """Find the cells that further inputs add.

    Parameters
    ----------
    known : ndarray of uint8 (t, m)
        Cluster of every test and neuron.
    further : ndarray of uint8 (n, m)
        The same of the further inputs.
    sizes : sequence of m int
        Number of clusters of each neuron.

    Returns
    -------
    Gained

    Raises
    ------
    SettingError
        As `idc_core.coverage.cells.encode`.
    """
    codes = encode(further, sizes)
    new = np.flatnonzero(~among(codes, np.unique(encode(known, sizes))))
    cells, inverse, counts = np.unique(codes[new], return_inverse=True, return_counts=True)
    row = np.full(len(codes), -1, np.int64)
    row[new] = inverse
    return Gained(decode(cells, sizes), counts.astype(np.int64), row)
