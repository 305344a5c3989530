"""A summary of values on a line in narrow cells, which grows value by value and merges with others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idc_core.base.arrays import Floats, Ints
from idc_core.base.growing import row_blocks
from idc_core.clustering.kmeans import check_kind, check_range
from idc_core.clustering.points import Points

CELLS = 1 << 17
"""Cells of a sketch at most."""

_BLOCK = 1 << 20
_DIGITS = 52  # of float64: cells are never so narrow that their numbers are inexact


@dataclass(frozen=True, eq=False)
class Sketch:
    """Values on a line, counted in cells of equal width; of each cell that holds any, number, sum and extremes.

    Cell i > 0 holds the values in ((i - 1) 2^e, i 2^e], cell -i their negatives, cell 0 the zeros alone. The exponent
    e is the smallest for which at most `CELLS` cells hold values (and for which the number of a cell has 53 bits).

    Notes
    -----
    *Merging is associative and commutative.* Two cells of exponent e make one of e + 1, so the cells of any exponent
    follow from those of a smaller one. More values never leave fewer cells occupied. The exponent of a sketch is
    therefore a function of the set of values alone, and so are cells, counts and extremes, in whatever order values
    and sketches were joined. Sums are those of float64: of float32 values they are exact in all cells but -1, 0 and 1,
    up to 2^28 values per cell, and elsewhere right to rounding.

    *Cells are narrow.* Values of range R lie in at most R / 2^e + 3 cells of exponent e. As those of e - 1 were more
    than `CELLS`, 2^e < 2 R / (`CELLS` - 3): below 1.6e-5 of the range. Single values far out take one cell each, so
    where most values lie closer together, cells are narrower still; and repeated values take one cell of width 0.
    """

    exponent: int
    cell: Ints  # (c,), numbers of the cells that hold values, ascending
    count: Ints  # (c,)
    sum: Floats  # (c,)
    low: Floats  # (c,), smallest value
    high: Floats  # (c,), largest value

    @classmethod
    def of(cls, values: ArrayLike) -> Sketch:
        """Summarise values (n,), in any order, a block at a time; SettingError where one is no finite number."""
        sketch = cls.empty()
        for _, rows in row_blocks(check_kind(values)):
            for start in range(0, len(rows), _BLOCK):
                sketch = sketch.merge(cls._of_block(rows[start : start + _BLOCK], sketch.exponent))
        return sketch

    @classmethod
    def empty(cls) -> Sketch:
        """Return the sketch of no values."""
        none = np.zeros(0)
        return cls(-2_000, np.zeros(0, np.int64), np.zeros(0, np.int64), none, none, none)

    @classmethod
    def _of_block(cls, block: NDArray[np.generic], least: int) -> Sketch:
        """Summarise a few values, in cells of at least an exponent."""
        value = np.sort(block).astype(np.float64)
        check_range(block, float(value[0]), float(value[-1]))
        largest = max(abs(float(value[0])), abs(float(value[-1])))
        exponent = max(least, math.frexp(largest)[1] - _DIGITS if largest else least)
        # At least 1: what rounds to 0 beside far larger values is still no zero.
        number = np.maximum(np.ceil(np.ldexp(np.abs(value), -exponent)), 1)
        cell = (np.sign(value) * number).astype(np.int64)
        return cls(exponent, cell, np.ones(len(value), np.int64), value, value, value)._settled()

    def merge(self, other: Sketch) -> Sketch:
        """Return the sketch of both sketches' values."""
        if not len(self.cell) or not len(other.cell):
            return self if len(self.cell) else other
        exponent = max(self.exponent, other.exponent)
        parts = [(sketch, _coarser(sketch.cell, exponent - sketch.exponent)) for sketch in (self, other)]
        cell = np.concatenate([cells for _, cells in parts])
        order = np.argsort(cell, kind="stable")
        columns = [
            np.concatenate([getattr(sketch, name) for sketch, _ in parts])[order]
            for name in ("count", "sum", "low", "high")
        ]
        return Sketch(exponent, cell[order], *columns)._settled()

    def without_zeros(self) -> Sketch:
        """Return the sketch of the values that are not zero."""
        kept = self.cell != 0
        columns = (getattr(self, name)[kept] for name in ("cell", "count", "sum", "low", "high"))
        return Sketch(self.exponent, *columns)

    def points(self) -> Points:
        """Return one point per cell: the mean of its values, as often as there are values."""
        # Rounding must not take a mean out of its cell, nor out of the order of cells.
        mean = np.clip(self.sum / self.count, self.low, self.high)
        return Points.weighted(mean, self.count.astype(np.float64))

    @property
    def n_values(self) -> int:
        """How many values there are."""
        return int(self.count.sum())

    @property
    def width(self) -> Floats:
        """How far apart the values of each cell are at most, (c,)."""
        return self.high - self.low

    def _settled(self) -> Sketch:
        """Make cells wider until they are few enough, and join what lies in one cell; cells are ascending."""
        exponent, cell = self.exponent, self.cell
        while np.count_nonzero(np.diff(cell)) >= CELLS:
            exponent, cell = exponent + 1, _coarser(cell, 1)
        starts = np.flatnonzero(np.concatenate(([True], np.diff(cell) != 0)))
        return Sketch(
            exponent,
            cell[starts],
            np.add.reduceat(self.count, starts),
            np.add.reduceat(self.sum, starts),
            np.minimum.reduceat(self.low, starts),
            np.maximum.reduceat(self.high, starts),
        )


def _coarser(cell: Ints, steps: int) -> Ints:
    """Return the numbers of the cells that are 2^steps times as wide."""
    steps = min(steps, 62)
    positive: Ints = -((-cell) >> steps)
    return np.where(cell > 0, positive, cell >> steps)
