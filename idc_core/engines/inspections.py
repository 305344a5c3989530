"""Inspection on an engine: the sums over blocks of records, from which the scores of single units follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from idc_core.engines.engine import MOST_BLOCKS, Block, Engine
from idc_core.engines.source import Opened, Source
from idc_core.errors import SettingError
from idc_core.inspection import library
from idc_core.inspection.measures import PairMeasure
from idc_core.inspection.planning import PILOT, Job, find_measure, plan
from idc_core.inspection.result import names_of
from idc_core.inspection.resume import ExtractionState, Reading, StateSums
from idc_core.inspection.running import inspect_as_planned, state_of

if TYPE_CHECKING:
    from torch import nn

    from idc_core.datasets import Dataset
    from idc_core.inspection.result import Inspection
    from idc_core.progress import Progress

_FEWEST = 4
"""Blocks of records that a worker reads at a time, at least."""


def inspect_on(
    engine: Engine,
    source: Source,
    model: nn.Module,
    dataset: Dataset,
    families: Sequence[str] | None = None,
    measures: Sequence[str] = ("pearson",),
    layers: Sequence[str] | None = None,
    *,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Inspection:
    """Score single units by families of hypotheses on all records, as `inspect` does.

    `model` and `dataset` are what `source` names. Every worker reads the pilot, for the same thresholds. Scores
    and intervals are those of `inspect`; for these a worker sends the sums of every 4,096 rows.

    Raises
    ------
    SettingError
        If a measure is of groups of units: probes read records again and again.
    IdcError
        As `inspect`.
    """
    for name in measures:
        if not isinstance(find_measure(name), PairMeasure):
            raise SettingError(
                f"The measure {name!r} is of groups of units, which no engine runs: leave the engine out."
            )
    asked = tuple(families) if families is not None else None
    work = _Sum(asked, tuple(measures), tuple(layers) if layers is not None else None, seed)
    job, state = work.prepared(model, dataset)
    state.take(engine.run(source, work, _cut(state), on_progress))
    return inspect_as_planned(job, Reading({**job.about, "hypotheses": names_of(job.hypotheses)}, {0: state}))


def _cut(state: ExtractionState) -> list[Block]:
    """Cut the records, where the blocks in which they are read end."""
    ends = [0, *state.stream.ends.tolist()]
    step = max(_FEWEST, -(-len(ends) // MOST_BLOCKS))
    edges = [*ends[:-1:step], ends[-1]]
    return list(pairwise(edges))


@dataclass(frozen=True)
class _Sum:
    """Work: the sums over some of the blocks in which records are read."""

    families: tuple[str, ...] | None
    measures: tuple[str, ...]
    layers: tuple[str, ...] | None
    seed: int
    keeps: str = ""

    def prepared(self, model: nn.Module, dataset: Dataset) -> tuple[Job, ExtractionState]:
        """Return the plan of the inspection, and its state before anything is read."""
        hypotheses = library(dataset, self.families)
        job = plan(model, dataset, hypotheses, self.measures, self.layers, seed=self.seed)
        return job, state_of(job, job.hypotheses, job.measures)

    def __call__(self, opened: Opened, block: Block) -> StateSums:
        """Sum over a block of the records, in the order in which they are read."""
        state = opened.kept.of((self, opened), lambda: self.prepared(opened.model, opened.data)[1])
        first = int(np.searchsorted(state.stream.ends, block[0], "right"))
        last = int(np.searchsorted(state.stream.ends, block[1], "left"))
        return state.sum_blocks(range(first, last + 1), PILOT)
