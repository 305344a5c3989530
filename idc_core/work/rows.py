"""What blocks give, one after the other, in the order of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

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
