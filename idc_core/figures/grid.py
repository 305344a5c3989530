"""Where the cells are drawn: neurons on rows and columns, neurons held fixed, and neurons folded into tiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable
from idc_core.errors import SettingError

MOST_CELLS = 4096
"""Tiles drawn at most; a browser still answers a click at once."""

MOST_ON_AXIS = 128
"""Rows, or columns, drawn at most: each needs a few pixels."""

_ANY = "x"
"""Stands for a neuron that may be in any of its clusters."""


@dataclass(frozen=True)
class Axes:
    """Which neurons make the rows and which the columns, by their rank among the important ones, 0 the first."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def shape(self, sizes: Sequence[int]) -> tuple[int, int]:
        """Return the numbers of rows and columns that they make."""
        return math.prod(sizes[i] for i in self.rows), math.prod(sizes[i] for i in self.columns)

    def fits(self, sizes: Sequence[int], most: int = MOST_CELLS) -> bool:
        """Whether they make no more tiles than that, and no more rows and columns than can be drawn."""
        rows, columns = self.shape(sizes)
        return max(rows, columns) <= MOST_ON_AXIS and rows * columns <= most


def default_axes(
    sizes: Sequence[int],
    fixed: Mapping[int, int] | None = None,
    most: int = MOST_CELLS,
    within: tuple[int, int] = (MOST_ON_AXIS, MOST_ON_AXIS),
) -> Axes:
    """Put as many neurons as can be drawn on rows and columns, as few on either as can be, the most important first.

    There are no more rows than columns; `within` is how many of them there may be.
    """
    free = [i for i in range(len(sizes)) if i not in (fixed or {})]
    for count in range(len(free), 0, -1):
        splits = [Axes(tuple(free[:at]), tuple(free[at:count])) for at in range(count + 1)]
        axes = min(splits, key=lambda candidate: (max(candidate.shape(sizes)), candidate.shape(sizes)))
        rows, columns = axes.shape(sizes)
        if rows > columns:  # a screen is wider than high
            axes, rows, columns = Axes(axes.columns, axes.rows), columns, rows
        if axes.fits(sizes, most) and rows <= within[0] and columns <= within[1]:
            return axes
    return Axes((), ())


def fit_axes(sizes: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> Axes:
    """Leave neurons out, the last of the longer axis first, until their tiles can be drawn."""
    axes = Axes(tuple(rows), tuple(i for i in columns if i not in rows))
    while not axes.fits(sizes):
        long, wide = axes.shape(sizes)
        axes = Axes(axes.rows[:-1], axes.columns) if long > wide else Axes(axes.rows, axes.columns[:-1])
    return axes


@dataclass(frozen=True, eq=False)
class Grid:
    """A two-dimensional drawing of the cells, or of the cells in which some neurons are held fixed.

    A tile is one row and one column. It stands for all cells that have the fixed clusters, its row's and its column's:
    for one cell where no neuron is left, else for every combination of the neurons left.
    """

    sizes: tuple[int, ...]  # clusters of each of the m neurons
    fixed: Mapping[int, int]  # neurons held in one cluster
    axes: Axes  # neurons on rows and columns
    row_cells: NDArray[np.uint8]  # (r, a), cluster indices of the neurons on the rows
    column_cells: NDArray[np.uint8]  # (c, b), of those on the columns
    tile: NDArray[np.int64]
    """(covered cells,), tile of each covered cell, counted row by row; -1 for a cell that is not drawn."""
    neurons: tuple[str, ...]  # names of the m neurons
    cluster_names: tuple[tuple[str, ...], ...]  # a person's names of their clusters, empty for those without
    row_labels: tuple[str, ...]  # cluster indices as text, such as ``2-1-0``
    column_labels: tuple[str, ...]
    row_title: str  # which neurons the indices belong to
    column_title: str

    @property
    def tiles(self) -> int:
        """Number of tiles drawn."""
        return len(self.row_cells) * len(self.column_cells)

    @property
    def folded(self) -> tuple[int, ...]:
        """Neurons that are neither fixed nor on an axis: every tile holds all their combinations."""
        drawn = {*self.fixed, *self.axes.rows, *self.axes.columns}
        return tuple(i for i in range(len(self.sizes)) if i not in drawn)

    @property
    def cells_per_tile(self) -> int:
        """Number of cells that a tile stands for."""
        return math.prod(self.sizes[i] for i in self.folded)

    @property
    def total(self) -> int:
        """Number of cells that all tiles stand for."""
        return self.tiles * self.cells_per_tile

    def sums(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up what the covered cells (covered cells, ...) of each tile hold, int64 (tiles, ...)."""
        return self.sums_of(self.tile, values)

    def sums_of(self, tile: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up what cells (cells, ...) of each tile hold, int64 (tiles, ...), from the tile (cells,) of each."""
        inside = tile >= 0
        sums = np.zeros((self.tiles, *values.shape[1:]), dtype=np.int64)
        np.add.at(sums, tile[inside], values[inside])
        return sums

    def tiles_of(self, cells: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the tile of each cell (n, m), int64 (n,); -1 for one that is not drawn."""
        return _tiles(cells, self.sizes, self.axes, self.fixed)

    def clusters(self, tile: int) -> dict[int, int]:
        """Return what is the same in all cells of a tile: the cluster of each neuron, by its rank."""
        row, column = divmod(tile, len(self.column_cells))
        numbers = dict(self.fixed)
        numbers.update(zip(self.axes.rows, map(int, self.row_cells[row]), strict=True))
        numbers.update(zip(self.axes.columns, map(int, self.column_cells[column]), strict=True))
        return dict(sorted(numbers.items()))

    def named(self, tile: int) -> list[str]:
        """Return a person's names of the clusters that all cells of a tile share."""
        named = (self.cluster_names[rank][cluster] for rank, cluster in self.clusters(tile).items())
        return [name for name in named if name]

    @property
    def names(self) -> list[str]:
        """What is the same in all cells of each tile, such as ``2-x-0``."""
        parts: list[Iterable[str]] = [
            itertools.repeat(str(self.fixed.get(i, _ANY)), self.tiles) for i in range(len(self.sizes))
        ]
        for axis, cells in (
            (self.axes.rows, np.repeat(self.row_cells, len(self.column_cells), axis=0)),
            (self.axes.columns, np.tile(self.column_cells, (len(self.row_cells), 1))),
        ):
            for rank, clusters in zip(axis, cells.T, strict=True):
                parts[rank] = map(str, clusters.tolist())
        return ["-".join(tile) for tile in zip(*parts, strict=True)]

    def place(self, cell: Sequence[int]) -> tuple[str, str] | None:
        """Return the row and column label of the tile that holds a cell, or None where it is not drawn."""
        if any(cell[i] != cluster for i, cluster in self.fixed.items()):
            return None
        return label([cell[i] for i in self.axes.rows]), label([cell[i] for i in self.axes.columns])


def label(cell: Sequence[int] | NDArray[np.uint8]) -> str:
    """Write cluster indices as text, such as ``2-1-0``; a dot where there are none."""
    return "-".join(str(int(index)) for index in cell) or "\u00b7"


def lay_out(
    table: CellTable,
    neurons: Sequence[str],
    axes: Axes | None = None,
    fixed: Mapping[int, int] | None = None,
    cluster_names: Sequence[Sequence[str]] = (),
) -> Grid:
    """Lay the cells out in rows and columns; `fixed` holds the neurons kept in one cluster, by their rank.

    `cluster_names` are a person's names of the clusters of each neuron, empty for those without one.
    """
    fixed = dict(sorted((fixed or {}).items()))
    if axes is None:
        axes = default_axes(table.sizes, fixed)
    _check(table.sizes, axes, fixed)
    row_cells, column_cells = (_combinations([table.sizes[i] for i in axis]) for axis in (axes.rows, axes.columns))
    return Grid(
        sizes=table.sizes,
        fixed=fixed,
        axes=axes,
        row_cells=row_cells,
        column_cells=column_cells,
        tile=_tiles(table.cells, table.sizes, axes, fixed),
        neurons=tuple(neurons),
        cluster_names=tuple(map(tuple, cluster_names)) or tuple(("",) * size for size in table.sizes),
        row_labels=tuple(label(cell) for cell in row_cells),
        column_labels=tuple(label(cell) for cell in column_cells),
        row_title=_title([neurons[i] for i in axes.rows]),
        column_title=_title([neurons[i] for i in axes.columns]),
    )


def _check(sizes: Sequence[int], axes: Axes, fixed: Mapping[int, int]) -> None:
    m = len(sizes)
    used = [*axes.rows, *axes.columns, *fixed]
    if len(set(used)) != len(used) or not all(0 <= i < m for i in used):
        raise SettingError(
            f"Expected different neurons of rank 0 to {m - 1} on rows, on columns and held fixed; got "
            f"{list(axes.rows)}, {list(axes.columns)} and {list(fixed)}."
        )
    for position, cluster in fixed.items():
        if not 0 <= cluster < sizes[position]:
            raise SettingError(
                f"Expected a cluster from 0 to {sizes[position] - 1} for the neuron of rank {position}; got {cluster}."
            )
    if not axes.fits(sizes):
        raise SettingError(
            f"Expected at most {MOST_CELLS} tiles, with at most {MOST_ON_AXIS} rows and columns; leave neurons "
            "out with fit_axes."
        )


def _tiles(cells: NDArray[np.uint8], sizes: Sequence[int], axes: Axes, fixed: Mapping[int, int]) -> NDArray[np.int64]:
    """Tile of each cell (n, m), counted row by row; -1 where it does not have the fixed clusters."""
    inside = np.ones(len(cells), dtype=np.bool_)
    for position, cluster in fixed.items():
        inside &= cells[:, position] == cluster
    columns = math.prod(sizes[i] for i in axes.columns)
    tile = _codes(cells, sizes, axes.rows) * columns + _codes(cells, sizes, axes.columns)
    return np.where(inside, tile, -1)


def _codes(cells: NDArray[np.uint8], sizes: Sequence[int], axis: Sequence[int]) -> NDArray[np.int64]:
    """Row (or column) of every cell: its clusters on that axis as a mixed-radix number."""
    codes = np.zeros(len(cells), dtype=np.int64)
    for position in axis:
        codes = codes * sizes[position] + cells[:, position]
    return codes


def _combinations(sizes: Sequence[int]) -> NDArray[np.uint8]:
    """Return all combinations of cluster indices, the first neuron slowest."""
    axes = np.indices(tuple(sizes), dtype=np.uint8)
    return axes.reshape(len(sizes), -1).T if sizes else np.zeros((1, 0), dtype=np.uint8)


def _title(neurons: Sequence[str]) -> str:
    """Name an axis after its neurons."""
    if not neurons:
        return ""
    return f"cluster of neuron{'s' if len(neurons) > 1 else ''} {', '.join(neurons)}"
