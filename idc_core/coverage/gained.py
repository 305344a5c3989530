"""Cells that further inputs reach and a test set does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cells import decode, encode
from idc_core.coverage.overlap import among


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
