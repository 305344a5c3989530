"""IDC by blocks: which neurons are important, and their activations, in two rounds over the training inputs."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.clustering.methods import CLUSTERINGS
from idc_core.coverage.idc import IDC
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.growing import ShelvedRows
from idc_core.importance.important_neurons import most_important
from idc_core.importance.training_pass import RankedLayer, RelevanceSums, SketchedLayer, sum_relevance
from idc_core.progress import Progress
from idc_core.work.executor import Block, Executor, Work
from idc_core.work.rows import ColumnSketches, Rows
from idc_core.work.sizes import find_blocks
from idc_core.work.source import Opened, Source


def fit_idc(
    executor: Executor,
    criterion: IDC,
    source: Source,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    *,
    rows: bool = False,
) -> RankedLayer | SketchedLayer:
    """Fit IDC as its `fit` does, and return the important neurons with what was clustered.

    The first round sums relevance, which says which neurons are important; the workers keep what all neurons were. Of
    very many inputs sketches come here in the second, not activations, unless these `rows` are asked for.
    """
    settings, layer = criterion.idc, criterion.layer
    cutting = find_blocks(executor, source, (layer,), settings.relevance, batch_size)
    first = _Relevance(layer, criterion.least, settings, cutting.batch_size, uuid.uuid4().hex)
    sums = executor.run(source, first, cutting.blocks, on_progress)
    importance = sums.importance[layer]
    important = most_important(importance, criterion.m_of(len(importance)))
    # How many inputs are classified correctly, and so clustered, is known only once they are here.
    sketched = CLUSTERINGS[settings.clustering].sketches(cutting.count) and not (settings.original or rows)
    second = _Important(first, important, ColumnSketches if sketched else Rows, first.keeps)
    values = executor.run(source, second, cutting.blocks, on_progress).joined()
    kind: Any = SketchedLayer if sketched else RankedLayer
    ranked: RankedLayer | SketchedLayer = kind(layer, importance, important, values, sums.dense[layer])
    criterion.cluster(ranked, on_progress=on_progress)
    return ranked


@dataclass(frozen=True)
class _Relevance(Work[RelevanceSums]):
    """Work: relevance summed over a block; the block's activations stay with the worker."""

    layer: str
    least: int  # neurons that the layer must have
    settings: IdcSettings
    batch_size: int | None
    keeps: str

    def __call__(self, opened: Opened, block: Block) -> RelevanceSums:
        """Return the sums."""
        shelf = self.shelf(opened)
        for _ in shelf.take(block):
            pass  # an earlier answer did not arrive
        return sum_relevance(
            opened.model,
            opened.inputs(block),
            [self.layer],
            self.settings.relevance,
            lambda _, rows: shelf.put(block, rows),
            priority=self.settings.priority,
            truth=opened.data.targets[slice(*block)] if self.settings.original else None,
            least=self.least,
            batch_size=self.batch_size,
            on_progress=opened.on_progress,
        )

    def shelf(self, opened: Opened) -> ShelvedRows:
        """Return where a worker puts the activations of all its blocks."""
        return opened.kept.of(self.keeps, ShelvedRows)


@dataclass(frozen=True)
class _Important(Work[Rows | ColumnSketches]):
    """Work of the second round: a block's activations of the important neurons, as the first round has seen them."""

    first: _Relevance
    important: NDArray[np.int64]
    gather: type[Rows | ColumnSketches]
    keeps: str = ""

    def __call__(self, opened: Opened, block: Block) -> Rows | ColumnSketches:
        """Return what the worker kept; one that took over from another runs the block again."""
        shelf = self.first.shelf(opened)
        if block not in shelf:
            self.first(opened, block)
        return self.gather([part[:, self.important] for part in shelf.take(block)])
