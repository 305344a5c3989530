"""What blocks give, one after the other, in the order of the inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from idc_core.clustering.sketch import CELLS, Sketch

_Part = TypeVar("_Part")
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(eq=False)
class Parts(Generic[_Part]):
    """What several blocks have given, in order."""

    parts: list[_Part]

    def merge(self, other: Self) -> Self:
        """Take in what the next blocks have given."""
        self.parts += other.parts
        return self


class BlockRows(Parts[NDArray[_Number]]):
    """Rows of several blocks."""

    def joined(self) -> NDArray[_Number]:
        """Return all rows, read-only."""
        rows = np.concatenate(self.parts)
        rows.setflags(write=False)
        return rows


_SKETCHED = 10 * CELLS
"""Rows of float32 from which on sketches of their columns take less: 40 bytes for a cell, 4 for a value."""


@dataclass(eq=False)
class ColumnSketches:
    """Sketches of the columns of the rows (n, m) of several blocks; rows that are few are kept as they are."""

    rows: list[NDArray[np.generic]]
    sketches: list[Sketch] = field(default_factory=list)  # none yet, or m

    def __post_init__(self) -> None:
        if sum(map(len, self.rows)) >= _SKETCHED:
            self._sketch()

    def merge(self, other: ColumnSketches) -> ColumnSketches:
        """Return the rows and sketches of both."""
        return ColumnSketches(self.rows + other.rows, _merged(self.sketches, other.sketches))

    def joined(self) -> list[Sketch]:
        """Return the sketch of each column."""
        self._sketch()
        return self.sketches

    def _sketch(self) -> None:
        if self.rows:
            sketches = [Sketch.of(column) for column in np.concatenate(self.rows).T]
            self.rows, self.sketches = [], _merged(self.sketches, sketches)


def _merged(some: list[Sketch], others: list[Sketch]) -> list[Sketch]:
    if not some or not others:
        return some or others
    return [sketch.merge(other) for sketch, other in zip(some, others, strict=True)]
