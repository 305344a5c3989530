"""Whether inspections that stop early stay within their error: their scores compared with those of all records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.progress import Progress, report
from idc_core.datasets import Dataset
from idc_core.inspection import Hypothesis, Inspection, inspect
from idc_core.inspection.probes import GROUP_MEASURES
from idc_core.inspection.result import WHOLE_GROUP

_FIXED = ("pearson",)
"""Measures that take nothing from the first records read: all records give one score, whatever their order."""


@dataclass(frozen=True, eq=False)
class _Stopping:
    """Runs of one measure that stopped at one error: arrays (runs,)."""

    measure: str
    error: float
    """The stated error: with a confidence of 0.95 no score of a run is farther from the one on all records."""
    worst: NDArray[np.float64]
    """The largest distance of a score from the one on all records."""
    scores: NDArray[np.int64]
    within: NDArray[np.int64]
    """Scores within the error."""
    unscored: NDArray[np.int64]
    """Scores on all records that the run does not give: what they need is in fewer than 1 in 100 records."""
    median: NDArray[np.int64]
    """Records read for the score in the middle."""
    most: NDArray[np.int64]
    """Records read for the last score."""

    @property
    def kept(self) -> int:
        """Runs of which every score is within the error."""
        return int((self.within == self.scores).sum())


@dataclass(eq=False)
class _RunErrors:
    rows: list[tuple[float, int, int, int, int, int]] = field(default_factory=list)

    def add(self, whole: Inspection, early: Inspection, error: float) -> None:
        first, second = _scores(whole), _scores(early)
        apart = np.array([abs(second[pair] - score) for pair, score in first.items() if np.isfinite(score)])
        known = apart[np.isfinite(apart)]
        read = early.table["records"]
        self.rows.append(
            (
                float(known.max(initial=0)),
                len(known),
                int((known <= error).sum()),
                len(apart) - len(known),
                int(np.median(read)),
                int(read.max()),
            )
        )


def stopping(
    model: nn.Module,
    layer: str,
    dataset: Dataset,
    hypotheses: Sequence[Hypothesis],
    measure: str,
    errors: Sequence[float] = (0.1, 0.05),
    seeds: Sequence[int] = tuple(range(20)),
    on_progress: Progress | None = None,
) -> list[_Stopping]:
    """Inspect in several orders, stopping early at several errors, and compare with what all records say.

    Every seed is an order of the records. Measures other than `_FIXED` take thresholds, ranks and held-out records from
    the order: their scores on all records are computed for each. The scores of probes are those of the whole group.
    """
    rows = [_RunErrors() for _ in errors]
    whole = None
    for done, seed in enumerate(seeds):
        report(on_progress, done, len(seeds), f"orders of records, {measure}")
        if whole is None or measure not in _FIXED:
            whole = inspect({"model": model}, dataset, hypotheses, [measure], [layer], seed=seed)
        for some, error in zip(rows, errors, strict=True):
            early = inspect({"model": model}, dataset, hypotheses, [measure], [layer], seed=seed, error=error)
            some.add(whole, early, error)
    columns = [list(zip(*some.rows, strict=True)) for some in rows]
    return [
        _Stopping(measure, error, np.array(worst), *(np.array(rest, np.int64) for rest in counts))
        for error, (worst, *counts) in zip(errors, columns, strict=True)
    ]


def _scores(inspection: Inspection) -> dict[tuple[str, int], float]:
    """Return the measure's own scores, without the weights of probes."""
    table = inspection.table
    probes = np.isin(table["measure"], list(GROUP_MEASURES))
    own = np.flatnonzero(~probes | (table["unit"] == WHOLE_GROUP))
    return {(str(table["hypothesis"][at]), int(table["unit"][at])): float(table["score"][at]) for at in own}
