"""Inputs that a person accepted, and what they change: IDC, accuracy, and the chance of a new cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Array, Ints
from idc_core.base.statistics import wilson
from idc_core.coverage.cell_table import CellTable, among
from idc_core.coverage.cells import encode
from idc_core.coverage.discovery import FEWEST
from idc_core.coverage.reach import Reach
from idc_core.evidence.additions import addition
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import Finding, counted_together
from idc_core.evidence.of_tests import accuracy_of_added
from idc_core.filling.result import Filling

Label = int | float
"""Class of an input, or its value in a regression."""


def accepted_inputs(filling: Filling, decided: Mapping[str, Label | None]) -> tuple[NDArray[np.bool_], Array]:
    """Return which inputs were accepted, and the labels of all, (n,), from decisions by the inputs' digests.

    An input that was accepted has its label there, one that was rejected None.
    """
    given = [decided.get(digest) for digest in filling.digests]
    which = np.array([label is not None for label in given], np.bool_)
    labels = np.array(filling.labels)
    labels[which] = [label for label in given if label is not None]
    return which, labels


def best_usable(filling: Filling) -> Ints:
    """Return of each cell the usable input with the highest p-value, (k,); cells without one are left out."""
    usable = np.flatnonzero(filling.usable)
    return usable[np.unique(filling.cell[usable], return_index=True)[1]].astype(np.int64)


@dataclass(frozen=True)
class Chance:
    """A chance, 0..1, and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """What accepted inputs change.

    Attributes
    ----------
    covered : pair of int
        Cells that the tests reach, and that they reach together with the accepted inputs.
    total : int
        Cells there are.
    reachable : int
        Cells that tests, training inputs, valid generated inputs or accepted ones reach.
    accuracy : pair of float or None
        0..1, of the tests, and of both together; None where it is not defined.
    chance : pair of Chance or None
        That the next natural test reaches a cell that the tests do not, and one that neither they nor the accepted
        inputs do; None of too few tests, or where training inputs say nothing of it.
    findings : tuple of Finding
        New cells beside those of as many natural inputs; accuracy on accepted inputs beside that on the tests.
    """

    covered: tuple[int, int]
    total: int
    reachable: int
    accuracy: tuple[float, float] | None
    chance: tuple[Chance, Chance] | None
    findings: tuple[Finding, ...]


def change_by(
    table: CellTable,
    cells: NDArray[np.uint8],
    right: NDArray[np.bool_] | None = None,
    reach: Reach | None = None,
    training: int = 0,
) -> Change:
    """Say what accepted inputs change.

    Parameters
    ----------
    table : CellTable
        The cells that the tests reach, with the misclassified ones.
    cells : ndarray, uint8 (k, m)
        The accepted inputs' cells, at least one.
    right : ndarray of bool, shape (k,), optional
        Whether each of them is classified as its label; without it, accuracy is not defined.
    reach : Reach, optional
        What else reaches cells that tests do not.
    training : int
        Number of training inputs that `reach` counts; 0 where it counts none.

    Returns
    -------
    Change

    Notes
    -----
    Accepted inputs are chosen, and say nothing of how often natural ones reach their cells. So the chance of a new cell
    is that of the tests (Good 1953) less the share of training inputs in the accepted cells. A training input that is
    alone in its cell is left out: were it not there, nothing would have led to the cell. Where a cell was accepted for
    another reason, the chance is a little too high. The interval joins those of both parts (Zou, Huang, Zhang 2009):
    it held in 95 to 98 % of simulated tests, whether all cells were accepted that training inputs reach, those that
    most of them reach, or any.
    """
    count, known = len(cells), encode(table.cells, table.sizes)
    codes = np.unique(encode(cells, table.sizes))
    new = codes[~among(codes, known)]
    reached = known[:0] if reach is None else np.sort(encode(reach.cells, table.sizes))
    covered = table.covered + len(new)
    findings = [
        addition(
            f"New cells from {count:,} accepted input{'s' * (count != 1)}", [len(new)], table.counts, table.total, count
        )
    ]
    accuracy = None
    if right is not None:
        tests, hits = int(table.counts.sum()), int(table.counts.sum() - table.wrong.sum())
        accuracy = hits / tests, (hits + int(right.sum())) / (tests + count)
        claim = f"Accuracy on {count:,} accepted input{'s' * (count != 1)}"
        findings.append(accuracy_of_added(claim, (int(right.sum()), count), (hits, tests)))
    return Change(
        covered=(table.covered, covered),
        total=table.total,
        reachable=covered + int((~among(reached, new)).sum()),
        accuracy=accuracy,
        chance=_chances(table, covered, _repeated(new, table, reach), training),
        findings=tuple(counted_together(findings)),
    )


def _repeated(new: Array, table: CellTable, reach: Reach | None) -> int:
    """Return how many training inputs lie in new cells, but for those that are alone in theirs."""
    if reach is None:
        return 0
    inside = among(encode(reach.cells, table.sizes), new)
    return int(reach.training[inside & (reach.training > 1)].sum())


def _chances(table: CellTable, covered: int, repeated: int, training: int) -> tuple[Chance, Chance] | None:
    """Return the chance of a new cell before and after cells were added that hold so many of the training inputs."""
    if not training or int(table.counts.sum()) < FEWEST:
        return None
    left = Discovery.of_counts(table.counts, table.total)
    before = Chance(left.chance, left.low, left.high)
    if covered == table.total:
        return before, Chance(0.0, 0.0, 0.0)
    share = repeated / training
    low, high = (float(end[0]) for end in wilson(np.array([share]), np.array([training])))
    value = before.value - share
    below = value - math.hypot(before.value - before.low, high - share)
    above = value + math.hypot(before.high - before.value, share - low)
    # What was added takes nothing away where no training input says that it does.
    after = [max(0.0, end) for end in (value, below, above)] if repeated else [before.value, before.low, before.high]
    return before, Chance(*after)
