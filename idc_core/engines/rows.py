"""Rows that blocks give: one after the other, in the order of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(eq=False)
class Rows:
    """Rows of several blocks, in order."""

    parts: list[NDArray[Any]]

    def merge(self, other: Rows) -> Self:
        """Take in the rows of the next block."""
        self.parts += other.parts
        return self

    def joined(self) -> NDArray[Any]:
        """Return all rows, read-only."""
        rows = np.concatenate(self.parts)
        rows.setflags(write=False)
        return rows
