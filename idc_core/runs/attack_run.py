"""What is kept of a whole attack: its pictures are kept by blocks, its figures here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class AttackRun:
    """An attack on n tests, all finished.

    Attributes
    ----------
    positions : ndarray, int64 (n,)
        Positions of the attacked tests.
    success : ndarray, bool (n,)
    l2, linf : ndarray, float64 (n,)
        Sizes of the changes.
    added : int
        Cells that the attacked inputs reach and the tests do not.
    """

    positions: NDArray[np.int64]
    success: NDArray[np.bool_]
    l2: NDArray[np.float64]
    linf: NDArray[np.float64]
    added: int
