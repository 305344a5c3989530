"""What reaches a cell: tests, else training inputs, else inputs that were generated for it, else nothing yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable, among
from idc_core.coverage.cells import Codes, decode, encode


class CellState(StrEnum):
    """What a cell is reached by, the first that holds."""

    COVERED = "covered"
    TRAINING = "reached by training inputs only"
    GENERATED = "reached by a valid generated input"
    NOTHING = "reached by nothing yet"


@dataclass(frozen=True, eq=False)
class Reach:
    """The cells that no test reaches and something else does, each once."""

    cells: NDArray[np.uint8]  # (r, m), cluster index of every neuron
    training: NDArray[np.int64]  # (r,), training inputs in each; 0 where only generated inputs reach it

    @property
    def states(self) -> list[CellState]:
        """The state of each cell."""
        return [CellState.TRAINING if inputs else CellState.GENERATED for inputs in self.training.tolist()]


def find_reach(
    table: CellTable, training: Sequence[Sequence[int]], inputs: Sequence[int], generated: Codes | None = None
) -> Reach:
    """Return what reaches the cells that tests do not.

    Parameters
    ----------
    table : CellTable
        The cells that tests reach.
    training : sequence of cells
        Cells that training inputs reach and no test.
    inputs : sequence of int
        Training inputs in each of those.
    generated : ndarray (n,), optional
        Codes of cells that valid generated inputs reach, as `encode` returns them; those reached otherwise too count as
        reached so.
    """
    cells = np.array(training, dtype=np.uint8).reshape(len(training), len(table.sizes))
    counts = np.array(inputs, dtype=np.int64)
    if generated is not None and len(generated):
        known = np.unique(np.concatenate([encode(table.cells, table.sizes), encode(cells, table.sizes)]))
        others = np.unique(generated)
        others = others[~among(others, known)]
        cells = np.concatenate([cells, decode(others, table.sizes)])
        counts = np.concatenate([counts, np.zeros(len(others), np.int64)])
    return Reach(cells, counts)
