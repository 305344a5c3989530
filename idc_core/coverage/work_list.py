"""Uncovered cells as a tester's work list: what reaches each, misclassified tests beside it, training inputs in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Ints
from idc_core.coverage.cell_table import CellTable, among, one_step_away
from idc_core.coverage.cells import Codes, decode, encode
from idc_core.coverage.reach import CellState, Reach


class RankedBy(StrEnum):
    """What puts an uncovered cell first."""

    REACH = "reach"
    ERRORS = "errors"
    TRAINING = "training"


_STATES = (CellState.TRAINING, CellState.GENERATED, CellState.NOTHING)
"""States of an uncovered cell, the one that is certain to occur first."""


@dataclass(frozen=True, eq=False)
class WorkList:
    """Uncovered cells, in ascending order of their cluster indices.

    Attributes
    ----------
    cells : ndarray, uint8 (u, m)
        Cluster index of every neuron.
    states : tuple of CellState
        What reaches each.
    training : ndarray, int64 (u,)
        Training inputs in each.
    borders : ndarray, int64 (u,)
        Covered cells one step away from each.
    tests, wrong : ndarray, int64 (u,)
        Tests in those, and the misclassified ones of them; all 0 where accuracy is not defined.
    unlisted : int
        Other uncovered cells: nothing reaches them, and no covered one is beside, so there is nothing to rank them by.
    """

    cells: NDArray[np.uint8]
    states: tuple[CellState, ...]
    training: Ints
    borders: Ints
    tests: Ints
    wrong: Ints
    unlisted: int

    def ranked(self, by: RankedBy) -> Ints:
        """Return the positions of all cells, int64 (u,), the first to look at first.

        By reach, cells that training inputs reach come first, then those that valid generated inputs reach, then those
        that nothing reaches yet. By errors, those beside most misclassified tests; by training, those that hold most
        training inputs: where training goes often, a test is missing most. Ties go by errors, training inputs and
        covered cells beside, more first, then by cluster indices.
        """
        state = np.array([_STATES.index(one) for one in self.states], np.int64)
        first = {RankedBy.REACH: state, RankedBy.ERRORS: -self.wrong, RankedBy.TRAINING: -self.training}[by]
        return np.lexsort((-self.borders, -self.training, -self.wrong, first)).astype(np.int64)


def work_list(table: CellTable, reach: Reach | None, tried: NDArray[np.uint8] | None = None) -> WorkList:
    """List the uncovered cells that something reaches, that a covered cell is one step away from, or that were tried.

    A step moves one neuron to the next lower or higher cluster.

    Parameters
    ----------
    table : CellTable
        The cells that tests reach.
    reach : Reach or None
        What reaches others, as `find_reach` returns it for the same table; None where that is not known.
    tried : ndarray, uint8 (t, m), optional
        Further uncovered cells to list: those for which inputs were to be made.

    Returns
    -------
    WorkList
    """
    covered = encode(table.cells, table.sizes)
    codes, rows = one_step_away(table)
    beside, place = np.unique(codes, return_inverse=True)
    empty = ~among(beside, covered)

    def summed(values: Ints) -> Ints:
        return np.bincount(place.reshape(-1), values[rows], len(beside))[empty].astype(np.int64)

    counted = [summed(values) for values in (np.ones_like(table.counts), table.counts, table.wrong)]
    beside = beside[empty]
    reached = beside[:0] if reach is None else encode(reach.cells, table.sizes)
    others = beside[:0] if tried is None else encode(tried, table.sizes)
    listed = np.unique(np.concatenate([beside, reached, others]))
    borders, tests, wrong = (_at(listed, beside, values) for values in counted)
    training = np.zeros(len(listed), np.int64) if reach is None else _at(listed, reached, reach.training)
    is_reached = among(listed, np.unique(reached))
    states = tuple(
        CellState.TRAINING if inputs else CellState.GENERATED if generated else CellState.NOTHING
        for inputs, generated in zip(training.tolist(), is_reached.tolist(), strict=True)
    )
    unlisted = table.total - table.covered - len(listed)
    return WorkList(decode(listed, table.sizes), states, training, borders, tests, wrong, unlisted)


def _at(listed: Codes, codes: Codes, values: Ints) -> Ints:
    """Return the value of every listed cell (u,), 0 where there is none, from those of some of them."""
    found = np.zeros(len(listed), np.int64)
    found[np.searchsorted(listed, codes)] = values
    return found
