"""IDC on an engine: which neurons are important, and their activations, in two rounds over the training inputs."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.idc import IDC
from idc_core.engines.engine import Block, Engine
from idc_core.engines.rows import Rows
from idc_core.engines.sizes import find_blocks
from idc_core.engines.source import Opened, Source
from idc_core.growing import ShelvedRows
from idc_core.importance.important_neurons import most_important
from idc_core.importance.training_pass import RankedLayer, RelevanceSums, sum_relevance
from idc_core.lrp.rules import RelevanceSettings
from idc_core.progress import Progress


def fit_idc(
    engine: Engine, criterion: IDC, source: Source, batch_size: int | None = None, on_progress: Progress | None = None
) -> RankedLayer:
    """Fit IDC as its `fit` does, and return the important neurons with their activations.

    Relevance says which neurons are important; then the workers are asked for what these were.
    """
    settings, layer, keeps = criterion.settings, criterion.layer, uuid.uuid4().hex
    cutting = find_blocks(engine, source, (layer,), settings, batch_size)
    first = _Relevance(
        layer, criterion.m, settings, criterion.priority.name, criterion.original, cutting.batch_size, keeps
    )
    sums = engine.run(source, first, cutting.blocks, on_progress)
    important = most_important(sums.importance[layer], criterion.m)
    rows = engine.run(source, _Important(first, important, keeps), cutting.blocks, on_progress)
    ranked = RankedLayer(layer, sums.importance[layer], important, rows.joined(), sums.dense[layer])
    criterion.cluster(ranked, on_progress=on_progress)
    return ranked


@dataclass(frozen=True)
class _Relevance:
    """Work: relevance summed over a block; the block's activations stay with the worker."""

    layer: str
    m: int
    settings: RelevanceSettings
    priority: str
    original: bool
    batch_size: int
    keeps: str

    def __call__(self, opened: Opened, block: Block) -> RelevanceSums:
        """Return the sums."""
        rows, shelf = slice(*block), self.shelf(opened)
        for _ in shelf.take(block):
            pass  # an earlier answer did not arrive
        return sum_relevance(
            opened.model,
            opened.data.inputs[rows],
            self.layer,
            self.settings,
            priority=self.priority,
            truth=opened.data.targets[rows] if self.original else None,
            m=self.m,
            batch_size=self.batch_size,
            keep=partial(shelf.put, block),
        )

    def shelf(self, opened: Opened) -> ShelvedRows:
        """Return where a worker puts the activations of all its blocks."""
        found: ShelvedRows = opened.kept.setdefault(self.keeps, ShelvedRows())
        return found


@dataclass(frozen=True)
class _Important:
    """Work of the second round: a block's activations of the important neurons, as the first round has seen them."""

    first: _Relevance
    important: NDArray[np.int64]
    keeps: str

    def __call__(self, opened: Opened, block: Block) -> Rows:
        """Return what the worker kept; one that took over from another runs the block again."""
        shelf = self.first.shelf(opened)
        if block not in shelf:
            self.first(opened, block)
        return Rows([part[:, self.important] for part in shelf.take(block)])
