"""Rows of a layer's units, a record's side by side, and their moments, which several ask for."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

PIECES = 4
"""Groups that a block of records is cut into: more, smaller groups tell the error more sharply."""


@dataclass(eq=False)
class UnitRows:
    """What a layer's units did at some rows.

    Attributes
    ----------
    values : Tensor, float32 (rows, units)
    about : Tensor, float32 (units,)
        What moments are counted from, so that single precision is exact enough.
    """

    values: Tensor
    about: Tensor

    def __len__(self) -> int:
        return len(self.values)

    def moved(self) -> Tensor:
        """Return the values less what moments are counted from: float32 (rows, units)."""
        return self.values - self.about

    @cached_property
    def moments(self) -> NDArray[np.float64]:
        """Sums of the moved values and of their squares: float64 (2, units)."""
        moved = self.moved()
        return np.stack([one.double().numpy() for one in (moved.sum(0), moved.square_().sum(0))])


def pieces(records: int, rows: int, places: int) -> list[tuple[slice, int]]:
    """Cut a block between records: the rows of each piece, and its records. Uneven records stay in one piece."""
    if rows != records * places:
        return [(slice(0, rows), records)]
    ends = [records * at // PIECES for at in range(PIECES + 1)]
    return [
        (slice(first * places, end * places), end - first) for first, end in itertools.pairwise(ends) if end > first
    ]
