"""IDC on an engine: which neurons are important, and their activations, in two rounds over the training inputs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from idc_core.clustering.methods import CLUSTERINGS
from idc_core.coverage.idc import IDC
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.engines.engine import Block, Engine
from idc_core.engines.rows import ColumnSketches, Rows
from idc_core.engines.sizes import find_blocks
from idc_core.engines.source import Opened, Source
from idc_core.growing import ShelvedRows
from idc_core.importance.important_neurons import most_important
from idc_core.importance.training_pass import RankedLayer, RelevanceSums, SketchedLayer, sum_relevance
from idc_core.progress import Progress

Gathered = TypeVar("Gathered", Rows, ColumnSketches)


def fit_idc(
    engine: Engine, criterion: IDC, source: Source, batch_size: int | None = None, on_progress: Progress | None = None
) -> None:
    """Fit IDC as its `fit` does; of very many inputs sketches come here, not the important neurons' activations."""
    found = _first_round(engine, criterion, source, batch_size, on_progress)
    # How many inputs are classified correctly, and so clustered, is known only once they are here.
    settings = criterion.idc
    sketched = CLUSTERINGS[settings.clustering].sketches(found.blocks[-1][1]) and not settings.original
    criterion.cluster(found.sketched() if sketched else found.ranked(), on_progress=on_progress)


def fit_and_rank(
    engine: Engine, criterion: IDC, source: Source, batch_size: int | None = None, on_progress: Progress | None = None
) -> RankedLayer:
    """Fit IDC as its `fit` does, and return the important neurons with their activations."""
    ranked = _first_round(engine, criterion, source, batch_size, on_progress).ranked()
    criterion.cluster(ranked, on_progress=on_progress)
    return ranked


def _first_round(
    engine: Engine, criterion: IDC, source: Source, batch_size: int | None, on_progress: Progress | None
) -> _FirstRound:
    """Sum relevance, which says which neurons are important; the workers keep what all neurons were."""
    settings, layer, keeps = criterion.idc, criterion.layer, uuid.uuid4().hex
    cutting = find_blocks(engine, source, (layer,), settings.relevance, batch_size)
    work = _Relevance(layer, criterion.least, settings, cutting.batch_size, keeps)
    sums = engine.run(source, work, cutting.blocks, on_progress)
    important = most_important(sums.importance[layer], criterion.m_of(len(sums.importance[layer])))
    return _FirstRound(engine, source, cutting.blocks, work, sums, important, on_progress)


@dataclass(frozen=True, eq=False)
class _FirstRound:
    """What the first round has found, and what the workers can still be asked for, once."""

    engine: Engine
    source: Source
    blocks: list[Block]
    work: _Relevance
    sums: RelevanceSums
    important: NDArray[np.int64]
    on_progress: Progress | None

    def ranked(self) -> RankedLayer:
        """Return the important neurons with their activations."""
        layer = self.work.layer
        rows = self._second_round(Rows).joined()
        return RankedLayer(layer, self.sums.importance[layer], self.important, rows, self.sums.dense[layer])

    def sketched(self) -> SketchedLayer:
        """Return the important neurons with sketches of their activations."""
        layer = self.work.layer
        sketches = self._second_round(ColumnSketches).joined()
        return SketchedLayer(layer, self.sums.importance[layer], self.important, sketches, self.sums.dense[layer])

    def _second_round(self, gather: Callable[[list[NDArray[Any]]], Gathered]) -> Gathered:
        work = _Important(self.work, self.important, gather)
        return self.engine.run(self.source, work, self.blocks, self.on_progress)


@dataclass(frozen=True)
class _Relevance:
    """Work: relevance summed over a block; the block's activations stay with the worker."""

    layer: str
    least: int  # neurons that the layer must have
    settings: IdcSettings
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
            self.settings.relevance,
            priority=self.settings.priority,
            truth=opened.data.targets[rows] if self.settings.original else None,
            m=self.least,
            batch_size=self.batch_size,
            keep=partial(shelf.put, block),
        )

    def shelf(self, opened: Opened) -> ShelvedRows:
        """Return where a worker puts the activations of all its blocks."""
        return opened.kept.of(self.keeps, ShelvedRows)


@dataclass(frozen=True)
class _Important(Generic[Gathered]):
    """Work of the second round: a block's activations of the important neurons, as the first round has seen them."""

    first: _Relevance
    important: NDArray[np.int64]
    gather: Callable[[list[NDArray[Any]]], Gathered]  # `Rows`, or what else takes rows in parts

    @property
    def keeps(self) -> str:
        """The word of both rounds."""
        return self.first.keeps

    def __call__(self, opened: Opened, block: Block) -> Gathered:
        """Return what the worker kept; one that took over from another runs the block again."""
        shelf = self.first.shelf(opened)
        if block not in shelf:
            self.first(opened, block)
        return self.gather([part[:, self.important] for part in shelf.take(block)])
