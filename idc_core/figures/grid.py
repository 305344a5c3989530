"""Where each cell of the grid of combinations is drawn, and which ones where there are too many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.table import CellTable
from idc_core.errors import SettingError

MOST_CELLS = 4096
"""Cells drawn at most; a browser still answers a click at once."""


@dataclass(frozen=True)
class Grid:
    """A two-dimensional drawing of the cells.

    Attributes
    ----------
    row_cells : ndarray of uint8 (r, a)
        Cluster indices of the first a neurons in every row.
    column_cells : ndarray of uint8 (c, m - a)
        Cluster indices of the other neurons in every column.
    table_row : ndarray of int64 (r, c)
        Row of the table of covered cells that each cell is, -1 where it is not covered.
    row_labels, column_labels : tuple of str
        Cluster indices as text, such as ``2-1-0``.
    row_title, column_title : str
        Which neurons the indices belong to.
    folded : bool
        Whether rows or columns were left out.
    """

    row_cells: NDArray[np.uint8]
    column_cells: NDArray[np.uint8]
    table_row: NDArray[np.int64]
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    row_title: str
    column_title: str
    folded: bool

    def cell(self, position: int) -> tuple[int, ...]:
        """Return the cluster indices of the cell at a position, counted row by row."""
        row, column = divmod(position, len(self.column_cells))
        return (*map(int, self.row_cells[row]), *map(int, self.column_cells[column]))

    def place(self, cell: Sequence[int]) -> tuple[str, str] | None:
        """Return the row and column label of a cell, or None where it is not drawn."""
        split = self.row_cells.shape[1]
        row, column = label(cell[:split]), label(cell[split:])
        return (row, column) if row in self.row_labels and column in self.column_labels else None


def label(cell: Sequence[int] | NDArray[np.uint8]) -> str:
    """Write cluster indices as text, such as ``2-1-0``; a dot where there are none."""
    return "-".join(str(int(index)) for index in cell) or "\u00b7"


def lay_out(table: CellTable, neurons: Sequence[str], split: int, most: int = MOST_CELLS) -> Grid:
    """Lay the cells out with the first neurons as rows and the others as columns.

    Parameters
    ----------
    table : CellTable
        The covered cells.
    neurons : sequence of str
        Names of the m neurons.
    split : int
        How many neurons make the rows, 0..m.
    most : int
        Cells to draw at most. Where there are more, only rows and columns with a covered cell are drawn,
        the ones with the most tests first.

    Returns
    -------
    Grid

    Raises
    ------
    SettingError
        If `split` is outside 0..m.
    """
    m = len(table.sizes)
    if not 0 <= split <= m:
        raise SettingError(f"Between 0 and {m} neurons can make the rows; got {split}.")
    folded = table.total > most
    if folded:
        side = math.isqrt(most)
        row_cells = _busiest(table.cells[:, :split], table.counts, side)
        column_cells = _busiest(table.cells[:, split:], table.counts, side)
    else:
        row_cells = _combinations(table.sizes[:split])
        column_cells = _combinations(table.sizes[split:])
    places = {tuple(map(int, cell)): row for row, cell in enumerate(table.cells)}
    columns = [tuple(map(int, cell)) for cell in column_cells]
    table_row = np.array(
        [[places.get((*map(int, cell), *column), -1) for column in columns] for cell in row_cells],
        dtype=np.int64,
    ).reshape(len(row_cells), len(columns))
    return Grid(
        row_cells=row_cells,
        column_cells=column_cells,
        table_row=table_row,
        row_labels=tuple(label(cell) for cell in row_cells),
        column_labels=tuple(label(cell) for cell in column_cells),
        row_title=_title(neurons[:split]),
        column_title=_title(neurons[split:]),
        folded=folded,
    )


def _combinations(sizes: Sequence[int]) -> NDArray[np.uint8]:
    """Return all combinations of cluster indices, the first neuron slowest."""
    axes = np.indices(tuple(sizes), dtype=np.uint8)
    return axes.reshape(len(sizes), -1).T if sizes else np.zeros((1, 0), dtype=np.uint8)


def _busiest(cells: NDArray[np.uint8], counts: NDArray[np.int64], most: int) -> NDArray[np.uint8]:
    """Return the distinct rows of `cells` that hold the most tests, most first."""
    distinct, row = np.unique(cells, axis=0, return_inverse=True)
    tests = np.bincount(row.reshape(-1), weights=counts, minlength=len(distinct))
    return distinct[np.argsort(-tests, kind="stable")[:most]]


def _title(neurons: Sequence[str]) -> str:
    """Name an axis after its neurons."""
    if not neurons:
        return ""
    return f"cluster of neuron{'s' if len(neurons) > 1 else ''} {', '.join(neurons)}"
