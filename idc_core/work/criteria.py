"""Coverage criteria: learning from training inputs, IDC in two rounds, and what tests cover."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.growing import ShelvedRows
from idc_core.base.progress import Progress
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.clustering.sketch import CELLS, Sketch
from idc_core.coverage.idc import IDC
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.coverage.registry import Criterion, all_or_nothing
from idc_core.coverage.streamed import Learned, StreamedCriterion, adopt_all, learn_all, update_all
from idc_core.importance.important_neurons import most_important
from idc_core.importance.training_pass import RankedLayer, RelevanceSums, SketchedLayer, sum_relevance
from idc_core.work.executor import Block, Executor, Work
from idc_core.work.rows import BlockRows
from idc_core.work.sizes import find_blocks
from idc_core.work.source import Opened, Source

_Kind = TypeVar("_Kind", bound=Criterion)


def fit_criteria(
    executor: Executor,
    criteria: Sequence[Criterion],
    source: Source,
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> None:
    """Fit criteria as `fit_all` does, on the inputs that a source names; each IDC makes a pass of its own."""
    with all_or_nothing(*criteria):
        streamed = [criterion for criterion in criteria if isinstance(criterion, StreamedCriterion)]
        if streamed:
            cutting = find_blocks(executor, source, _layers(streamed), None, batch_size)
            learns = any(criterion.learns for criterion in streamed)
            blocks = cutting.blocks if learns else cutting.blocks[:1]
            work = _Learn([without(criterion, "model") for criterion in streamed], cutting.batch_size)
            adopt_all(streamed, executor.run(source, work, blocks, on_progress))
        for criterion in criteria:
            if isinstance(criterion, IDC):
                fit_idc(executor, criterion, source, batch_size or criterion.batch_size, on_progress)


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
    second = _Important(first, important, _ColumnSketches if sketched else BlockRows, first.keeps)
    values = executor.run(source, second, cutting.blocks, on_progress).joined()
    kind: Callable[..., RankedLayer | SketchedLayer] = SketchedLayer if sketched else RankedLayer
    ranked = kind(layer, importance, important, values, sums.dense[layer])
    criterion.cluster(ranked, on_progress=on_progress)
    return ranked


def update_criteria(
    executor: Executor,
    criteria: Sequence[Criterion],
    source: Source,
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> None:
    """Account for the inputs that a source names by criteria that are fitted, as `update_all` does.

    Criteria whose score depends on the order of the tests see all of them in one block, which one worker runs.
    """
    cutting = find_blocks(executor, source, _layers(criteria), None, batch_size)
    parted = [one for one in criteria if len(cutting.blocks) > 1 and not one.card.order_matters]
    whole = [one for one in criteria if one not in parted]

    def seen(begun: Sequence[Criterion], blocks: Sequence[Block]) -> list[Criterion]:
        work = _Update([without(one, "model") for one in begun], cutting.batch_size)
        return executor.run(source, work, blocks, on_progress).criteria if begun else []

    more = seen([one.fresh() for one in parted], cutting.blocks)
    later = seen(whole, [(0, cutting.count)])
    with all_or_nothing(*criteria):
        for criterion, other in zip(parted, more, strict=True):
            criterion.merge(other)
        for criterion, other in zip(whole, later, strict=True):
            # All but what a copy that has seen more does not tell.
            told = vars(other).keys() - {*criterion.unmerged, "batch_size"}
            vars(criterion).update({name: vars(other)[name] for name in told})


def _layers(criteria: Sequence[Any]) -> tuple[str, ...]:
    named = (
        layer
        for criterion in criteria
        for layer in ((criterion.layer,) if isinstance(criterion, IDC) else criterion.layers)
    )
    return tuple(dict.fromkeys(named))


def without(criterion: _Kind, *names: str) -> _Kind:
    """Return a copy of a criterion without some attributes, which whoever gets it has or does not need."""
    other = copy.copy(criterion)
    for name in names:
        if hasattr(other, name):
            setattr(other, name, None)
    return other


def with_model(criterion: Any, model: nn.Module) -> Any:
    """Return a copy of a criterion with a network."""
    other = copy.copy(criterion)
    other.model = model
    return other


@dataclass(frozen=True)
class _Learn(Work[Learned]):
    """Work: what streamed criteria learn from a block."""

    criteria: list[StreamedCriterion]
    batch_size: int | None

    def __call__(self, opened: Opened, block: Block) -> Learned:
        """Learn from a block of the training inputs."""
        criteria = [with_model(criterion, opened.model) for criterion in self.criteria]
        return learn_all(criteria, opened.inputs(block), batch_size=self.batch_size, on_progress=opened.on_progress)


@dataclass(eq=False)
class _Seen:
    """Criteria that have seen some of the tests."""

    criteria: list[Criterion]

    def merge(self, other: _Seen) -> Self:
        """Take in what the next tests cover."""
        for mine, theirs in zip(self.criteria, other.criteria, strict=True):
            mine.merge(theirs)
        return self


@dataclass(frozen=True)
class _Update(Work[_Seen]):
    """Work: what a block of tests covers."""

    criteria: list[Criterion]
    batch_size: int | None

    def __call__(self, opened: Opened, block: Block) -> _Seen:
        """Account for a block of the tests."""
        criteria = [with_model(criterion, opened.model) for criterion in self.criteria]
        for criterion in criteria:
            if isinstance(criterion, IDC):
                criterion.batch_size = self.batch_size
        update_all(criteria, opened.inputs(block), batch_size=self.batch_size, on_progress=opened.on_progress)
        return _Seen([without(criterion, *criterion.unmerged) for criterion in criteria])


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


_SKETCHED = 10 * CELLS
"""Rows of float32 from which on sketches of their columns take less: 40 bytes for a cell, 4 for a value."""


@dataclass(eq=False)
class _ColumnSketches:
    """Sketches of the columns of the rows (n, m) of several blocks; rows that are few are kept as they are."""

    rows: list[NDArray[np.generic]]
    sketches: list[Sketch] = field(default_factory=list)  # none yet, or m

    def __post_init__(self) -> None:
        if sum(map(len, self.rows)) >= _SKETCHED:
            self._sketch()

    def merge(self, other: _ColumnSketches) -> _ColumnSketches:
        """Return the rows and sketches of both."""
        return _ColumnSketches(self.rows + other.rows, _merged(self.sketches, other.sketches))

    def joined(self) -> list[Sketch]:
        """Return the sketch of each column."""
        self._sketch()
        return self.sketches

    def _sketch(self) -> None:
        if self.rows:
            sketches = [Sketch.of(column) for column in np.concatenate(self.rows).T]
            self.rows, self.sketches = [], _merged(self.sketches, sketches)


def _merged(some: list[Sketch], others: list[Sketch]) -> list[Sketch]:
    if not some or not others:
        return some or others
    return [sketch.merge(other) for sketch, other in zip(some, others, strict=True)]


@dataclass(frozen=True)
class _Important(Work[BlockRows[np.float32] | _ColumnSketches]):
    """Work of the second round: a block's activations of the important neurons, as the first round has seen them."""

    first: _Relevance
    important: NDArray[np.int64]
    gather: type[BlockRows[np.float32] | _ColumnSketches]
    keeps: str = ""

    def __call__(self, opened: Opened, block: Block) -> BlockRows[np.float32] | _ColumnSketches:
        """Return what the worker kept; one that took over from another runs the block again."""
        shelf = self.first.shelf(opened)
        if block not in shelf:
            self.first(opened, block)
        return self.gather([part[:, self.important] for part in shelf.take(block)])
