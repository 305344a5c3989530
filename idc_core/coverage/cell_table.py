"""What each covered cell holds, and which covered cells lie next to an uncovered one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError


@dataclass(frozen=True)
class CellTable:
    """The covered cells of a test set, one row a cell, in ascending order of their cluster indices.

    Attributes
    ----------
    sizes : tuple of int
        Clusters of each of the m neurons.
    cells : ndarray of uint8 (c, m)
        Cluster index of every neuron, 0 the lowest centroid.
    counts : ndarray of int64 (c,)
        Tests in the cell.
    wrong : ndarray of int64 (c,)
        Misclassified tests in the cell; all 0 where there is no right answer to compare with.
    by_class : ndarray of int64 (c, classes)
        Tests of each true class in the cell; no columns for regression.
    """

    sizes: tuple[int, ...]
    cells: NDArray[np.uint8]
    counts: NDArray[np.int64]
    wrong: NDArray[np.int64]
    by_class: NDArray[np.int64]

    @property
    def total(self) -> int:
        """Number of cells there are, covered or not."""
        return math.prod(self.sizes)

    @property
    def covered(self) -> int:
        """Number of cells that hold a test."""
        return len(self.cells)

    @property
    def only_errors(self) -> NDArray[np.bool_]:
        """Whether every test of the cell is misclassified, (c,)."""
        only: NDArray[np.bool_] = self.wrong == self.counts
        return only


def tabulate(
    assignments: NDArray[np.uint8],
    sizes: Sequence[int],
    targets: NDArray[np.int64] | None = None,
    correct: NDArray[np.bool_] | None = None,
    classes: int = 0,
) -> CellTable:
    """Collect the tests of each covered cell.

    Parameters
    ----------
    assignments : ndarray of uint8 (n, m)
        Cluster index of every test and neuron.
    sizes : sequence of int
        Clusters of each of the m neurons.
    targets : ndarray of int64 (n,), optional
        True class of every test; without it `by_class` has no columns.
    correct : ndarray of bool (n,), optional
        Whether a test is classified correctly; without it nothing counts as wrong.
    classes : int
        Number of classes that `targets` can name.

    Returns
    -------
    CellTable

    Raises
    ------
    SettingError
        If the shapes do not agree.
    """
    count = len(assignments)
    if assignments.ndim != 2 or assignments.shape[1] != len(sizes):
        raise SettingError(f"Expected assignments of shape (n, {len(sizes)}); got {assignments.shape}.")
    for name, values in (("targets", targets), ("correct", correct)):
        if values is not None and values.shape != (count,):
            raise SettingError(f"Expected one value a test in {name}, shape ({count},); got {values.shape}.")
    cells, row = np.unique(assignments, axis=0, return_inverse=True)
    row = row.reshape(-1)
    by_class = np.zeros((len(cells), classes if targets is not None else 0), dtype=np.int64)
    if targets is not None:
        np.add.at(by_class, (row, targets), 1)
    wrong = np.zeros(count, dtype=np.int64) if correct is None else (~correct).astype(np.int64)
    return CellTable(
        sizes=tuple(int(size) for size in sizes),
        cells=cells,
        counts=np.bincount(row, minlength=len(cells)).astype(np.int64),
        wrong=np.bincount(row, weights=wrong, minlength=len(cells)).astype(np.int64),
        by_class=by_class,
    )


def state_counts(assignments: NDArray[np.uint8], sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Count the tests in every cluster of every neuron.

    Parameters
    ----------
    assignments : ndarray of uint8 (n, m)
        Cluster index of every test and neuron.
    sizes : sequence of int
        Clusters of each of the m neurons.

    Returns
    -------
    list of ndarray of int64 (k_i,)
        One array a neuron.
    """
    return [
        np.bincount(column, minlength=size).astype(np.int64) for column, size in zip(assignments.T, sizes, strict=True)
    ]


def members(assignments: NDArray[np.uint8], cell: Sequence[int]) -> NDArray[np.int64]:
    """Find the tests that fall into a cell.

    Parameters
    ----------
    assignments : ndarray of uint8 (n, m)
        Cluster index of every test and neuron.
    cell : sequence of int
        Cluster index of each of the m neurons.

    Returns
    -------
    ndarray of int64 (k,)
        Their positions, ascending.
    """
    return np.flatnonzero((assignments == np.asarray(cell, dtype=np.uint8)).all(axis=1)).astype(np.int64)


def nearest(table: CellTable, cell: Sequence[int], count: int = 5) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the covered cells closest to a cell, itself left out.

    Parameters
    ----------
    table : CellTable
        The covered cells.
    cell : sequence of int
        Cluster index of each of the m neurons.
    count : int
        How many cells to return at most.

    Returns
    -------
    rows : ndarray of int64 (k,)
        Rows of `table`, nearest first; cells equally near in the order of the number of tests in them.
    steps : ndarray of int64 (k,)
        Distance: clusters to move, summed over the neurons.
    """
    steps = np.abs(table.cells.astype(np.int64) - np.asarray(cell, dtype=np.int64)).sum(axis=1)
    order = np.lexsort((-table.counts, steps))
    order = order[steps[order] > 0][:count].astype(np.int64)
    return order, steps[order]


@dataclass(frozen=True)
class Gap:
    """The state of one neuron in which the fewest cells are covered."""

    position: int
    """Rank of the neuron among the important ones, 0 the most important."""
    cluster: int
    """Index of its cluster."""
    covered: int
    """Covered cells with the neuron in that cluster."""
    total: int
    """Cells with the neuron in that cluster."""


def widest_gap(table: CellTable) -> Gap | None:
    """Find where coverage is thinnest, looking at one neuron at a time.

    Parameters
    ----------
    table : CellTable
        The covered cells.

    Returns
    -------
    Gap or None
        The neuron and cluster with the smallest share of covered cells (the more important neuron first where
        shares are equal), or None where every cell is covered.
    """
    if table.covered == table.total:
        return None
    gaps = [
        Gap(position, cluster, int(np.count_nonzero(table.cells[:, position] == cluster)), table.total // size)
        for position, size in enumerate(table.sizes)
        for cluster in range(size)
    ]
    return min(gaps, key=lambda gap: gap.covered / gap.total)


def typical(
    values: NDArray[np.floating], assignments: NDArray[np.uint8], cluster: int, centroid: float, count: int
) -> NDArray[np.int64]:
    """Find inputs that stand for a cluster: those whose activation lies closest to its centroid.

    Parameters
    ----------
    values : ndarray of float (n,)
        Activations of one neuron.
    assignments : ndarray of uint8 (n,)
        Cluster of each activation.
    cluster : int
        Which cluster.
    centroid : float
        Its centroid, in the unit of `values`.
    count : int
        How many inputs at most.

    Returns
    -------
    ndarray of int64 (k,)
        Positions in `values`, closest first, ties in ascending order.
    """
    inside = np.flatnonzero(assignments == cluster)
    order = np.argsort(np.abs(values[inside] - centroid), kind="stable")
    return inside[order[:count]].astype(np.int64)
