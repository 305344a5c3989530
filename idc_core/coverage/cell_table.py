"""Tables of covered cells: their tests, their neighbours, and their overlap with those of other inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cells import Codes, decode, encode
from idc_core.errors import SettingError


@dataclass(frozen=True)
class CellTable:
    """The covered cells of a test set, one row per cell, in ascending order of their cluster indices."""

    sizes: tuple[int, ...]  # clusters of each of the m neurons
    cells: NDArray[np.uint8]  # (c, m), cluster index of every neuron, 0 the lowest centroid
    counts: NDArray[np.int64]  # (c,), tests in the cell
    wrong: NDArray[np.int64]  # (c,), misclassified tests in the cell; all 0 where accuracy is not defined
    by_class: NDArray[np.int64]  # (c, classes), tests of each true class in the cell; no columns for regression

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
    """Collect the tests of each covered cell from the cluster of every test and neuron (n, m).

    With `targets` (n,), true classes, they are counted by class; without `correct` (n,) nothing counts as wrong.
    """
    count = len(assignments)
    if assignments.ndim != 2 or assignments.shape[1] != len(sizes):
        raise SettingError(f"Expected assignments of shape (n, {len(sizes)}); got {assignments.shape}.")
    for name, values in (("targets", targets), ("correct", correct)):
        if values is not None and values.shape != (count,):
            raise SettingError(f"Expected one value per test in {name}, shape ({count},); got {values.shape}.")
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
    """Count the tests in every cluster of every neuron: one int64 (k_i,) per neuron."""
    return [
        np.bincount(column, minlength=size).astype(np.int64) for column, size in zip(assignments.T, sizes, strict=True)
    ]


def members(assignments: NDArray[np.uint8], cell: Sequence[int]) -> NDArray[np.int64]:
    """Return the positions of the tests that fall into a cell, int64 (k,), ascending."""
    return np.flatnonzero((assignments == np.asarray(cell, dtype=np.uint8)).all(axis=1)).astype(np.int64)


def nearest(table: CellTable, cell: Sequence[int], count: int = 5) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows (k,) of at most `count` covered cells closest to a cell, itself left out, and their distances.

    A distance is the clusters to move, summed over the neurons; of equally near cells that with more tests comes first.
    """
    steps = np.abs(table.cells.astype(np.int64) - np.asarray(cell, dtype=np.int64)).sum(axis=1)
    order = np.lexsort((-table.counts, steps))
    order = order[steps[order] > 0][:count].astype(np.int64)
    return order, steps[order]


@dataclass(frozen=True)
class Gap:
    """The cluster of one neuron in which the smallest share of cells is covered."""

    position: int
    """Rank of the neuron among the important ones, 0 the most important."""
    cluster: int
    """Index of its cluster."""
    covered: int
    """Covered cells with the neuron in that cluster."""
    total: int
    """Cells with the neuron in that cluster."""


def gaps(table: CellTable) -> list[Gap]:
    """Return every cluster of every neuron with its cells, the smallest share of covered cells first."""
    entries = [
        Gap(position, cluster, int(np.count_nonzero(table.cells[:, position] == cluster)), table.total // size)
        for position, size in enumerate(table.sizes)
        for cluster in range(size)
    ]
    return sorted(entries, key=lambda gap: gap.covered / gap.total)


def bordering(table: CellTable) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the uncovered cells (e, m) one step from a covered one, and how many covered cells (e,) each borders on.

    A step moves one neuron to the next lower or higher cluster. Cells that border on most come first.
    """
    codes, borders = np.unique(one_step_away(table)[0], return_counts=True)
    empty = ~among(codes, encode(table.cells, table.sizes))
    order = np.argsort(-borders[empty], kind="stable")
    return decode(codes[empty][order], table.sizes), borders[empty][order].astype(np.int64)


def one_step_away(table: CellTable) -> tuple[Codes, NDArray[np.int64]]:
    """Return the cells one step from each covered one (s,), as codes, and that one's row in the table (s,)."""
    around, rows = [], []
    for rank, size in enumerate(table.sizes):
        for step in (-1, 1):
            moved = table.cells.astype(np.int64)
            moved[:, rank] += step
            inside = np.flatnonzero((moved[:, rank] >= 0) & (moved[:, rank] < size))
            around.append(moved[inside].astype(np.uint8))
            rows.append(inside.astype(np.int64))
    return encode(np.concatenate(around), table.sizes), np.concatenate(rows)


def typical(
    values: NDArray[np.floating], assignments: NDArray[np.uint8], cluster: int, centroid: float, count: int
) -> NDArray[np.int64]:
    """Return the inputs of a cluster whose activation lies closest to its centroid, int64 (k,), closest first."""
    inside = np.flatnonzero(assignments == cluster)
    order = np.argsort(np.abs(values[inside] - centroid), kind="stable")
    return inside[order[:count]].astype(np.int64)


@dataclass(frozen=True)
class Overlap:
    """Covered cells of two test sets: for each cell of either table, whether the other test set reaches it too."""

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
    """Compare the cells that two test sets reach; both tables must be of the same neurons and clusters."""
    if first.sizes != second.sizes:
        raise SettingError(f"Expected tables of the same cells; got cluster counts {first.sizes} and {second.sizes}.")
    codes = encode(first.cells, first.sizes), encode(second.cells, second.sizes)
    return Overlap(among(codes[0], codes[1]), among(codes[1], codes[0]))


def among(codes: Codes, others: Codes) -> NDArray[np.bool_]:
    """Return whether each code is one of the ascending `others`; `np.isin` is quadratic on codes past 64 bits."""
    if not len(others):
        return np.zeros(len(codes), dtype=np.bool_)
    place = np.minimum(np.searchsorted(others, codes), len(others) - 1)
    present: NDArray[np.bool_] = (others[place] == codes).astype(np.bool_)
    return present


@dataclass(frozen=True, eq=False)
class Gained:
    """Newly covered cells."""

    cells: NDArray[np.uint8]  # (g, m), in ascending order of their cluster indices
    counts: NDArray[np.int64]  # (g,), further inputs in each of them
    row: NDArray[np.int64]
    """(n,), for each further input its cell's place in `cells`; -1 where the test set reaches the cell already."""

    def __len__(self) -> int:
        return len(self.cells)


def gained(known: NDArray[np.uint8], further: NDArray[np.uint8], sizes: Sequence[int]) -> Gained:
    """Return the cells that further inputs add, from the clusters of known (t, m) and of further inputs (n, m)."""
    codes = encode(further, sizes)
    new = np.flatnonzero(~among(codes, np.unique(encode(known, sizes))))
    cells, inverse, counts = np.unique(codes[new], return_inverse=True, return_counts=True)
    row = np.full(len(codes), -1, np.int64)
    row[new] = inverse
    return Gained(decode(cells, sizes), counts.astype(np.int64), row)
