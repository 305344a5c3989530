"""Inspection: in one piece, or by sums over blocks of records, from which the scores of single units follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from idc_core.base.ranges import InspectOptions
from idc_core.errors import SettingError
from idc_core.inspection import library
from idc_core.inspection.measures import PairMeasure
from idc_core.inspection.planning import Job, find_measure, plan
from idc_core.inspection.result import names_of
from idc_core.inspection.resume import ExtractionState, Reading, StateSums
from idc_core.inspection.running import inspect_as_planned, state_of
from idc_core.work.executor import MOST_BLOCKS, Block, Executor, Work
from idc_core.work.local import Here
from idc_core.work.source import Opened, Source

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.inspection.result import Inspection

_FEWEST = 4
"""Blocks of records that a worker reads at a time, at least."""


def inspect_units(
    executor: Executor,
    source: Source,
    families: Sequence[str] | None = None,
    measures: Sequence[str] = ("pearson",),
    layers: Sequence[str] | None = None,
    *,
    only: str | None = None,
    on_progress: Progress | None = None,
    **options: Any,
) -> Inspection:
    """Score units by families of hypotheses, or `only` one by its name, on a source's records, as `inspect` does.

    By blocks, every worker reads the pilot, for the same thresholds, and sends the sums of every 4,096 rows, from which
    intervals follow.

    Raises
    ------
    SettingError
        By blocks, if records are to be read in order, or again and again: for `error`, or a measure of groups of units.
    IdcError
        As `inspect`.
    """
    opened = Here().open(source)
    work = _Sum(_tuple(families), tuple(measures), _tuple(layers), only, InspectOptions(**options))
    if isinstance(executor, Here):
        return inspect_as_planned(work.planned(opened, on_progress))
    for name in measures:
        if not isinstance(find_measure(name), PairMeasure):
            raise SettingError(
                f"The measure {name!r} is of groups of units, which no engine runs: leave the engine out."
            )
    if work.options.error is not None:
        raise SettingError("error reads records in order, in one process: leave it out, or the engine.")
    job, state = work.begun(opened)
    state.take(executor.run(source, work, _cut(state), on_progress))
    return inspect_as_planned(job, Reading({**job.about, "hypotheses": names_of(job.hypotheses)}, {0: state}))


def _tuple(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _cut(state: ExtractionState) -> list[Block]:
    """Cut the records, where the blocks in which they are read end."""
    ends = [0, *state.stream.ends.tolist()]
    step = max(_FEWEST, -(-len(ends) // MOST_BLOCKS))
    edges = [*ends[:-1:step], ends[-1]]
    return list(pairwise(edges))


@dataclass(frozen=True)
class _Sum(Work[StateSums]):
    """Work: the sums over some of the blocks in which records are read."""

    families: tuple[str, ...] | None
    measures: tuple[str, ...]
    layers: tuple[str, ...] | None
    only: str | None
    options: InspectOptions

    def planned(self, opened: Opened, on_progress: Progress | None = None) -> Job:
        """Return the plan of the inspection."""
        known = library(opened.data, self.families)
        hypotheses = [hypothesis for hypothesis in known if self.only in (None, hypothesis.name)]
        return plan(
            opened.model,
            opened.data,
            hypotheses,
            self.measures,
            self.layers,
            on_progress=on_progress,
            **vars(self.options),
        )

    def begun(self, opened: Opened) -> tuple[Job, ExtractionState]:
        """Return the plan, and its state before anything is read."""
        job = self.planned(opened)
        return job, state_of(job, job.hypotheses, job.measures)

    def __call__(self, opened: Opened, block: Block) -> StateSums:
        """Sum over a block of the records, in the order in which they are read."""
        state = opened.kept.of((self, opened), lambda: self.begun(opened)[1])
        first = int(np.searchsorted(state.stream.ends, block[0], "right"))
        last = int(np.searchsorted(state.stream.ends, block[1], "left"))
        return state.sum_blocks(range(first, last + 1), self.options.pilot)
