"""Which cells two test sets reach, together and alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cells import Codes, encode
from idc_core.coverage.table import CellTable
from idc_core.errors import SettingError


@dataclass(frozen=True)
class Overlap:
    """What two test sets have in common.

    Attributes
    ----------
    first, second : ndarray of bool (cells,)
        For each covered cell of either table, whether the other test set reaches it too.
    """

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
    """Compare the cells that two test sets reach.

    Parameters
    ----------
    first, second : CellTable
        Covered cells of the same neurons with the same clusters.

    Returns
    -------
    Overlap

    Raises
    ------
    SettingError
        If the tables are of different grids.
    """
    if first.sizes != second.sizes:
        raise SettingError(f"Expected tables of the same cells; got cluster counts {first.sizes} and {second.sizes}.")
    codes = encode(first.cells, first.sizes), encode(second.cells, second.sizes)
    return Overlap(among(codes[0], codes[1]), among(codes[1], codes[0]))


def among(codes: Codes, others: Codes) -> NDArray[np.bool_]:
    """Return whether each code is one of the ascending `others`; `np.isin` is quadratic on codes past 64 bits."""
    if not len(others):
        return np.zeros(len(codes), dtype=np.bool_)
    place = np.minimum(np.searchsorted(others, codes), len(others) - 1)
    found: NDArray[np.bool_] = (others[place] == codes).astype(np.bool_)
    return found
