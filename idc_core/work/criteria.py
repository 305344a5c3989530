"""Coverage criteria: learning from training inputs, and what tests cover."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from torch import nn

from idc_core.coverage.idc import IDC
from idc_core.coverage.registry import Criterion, all_or_nothing
from idc_core.coverage.streamed import Learned, StreamedCriterion, adopt_all, learn_all, update_all
from idc_core.progress import Progress
from idc_core.work.executor import Block, Executor, Work
from idc_core.work.importance import fit_idc
from idc_core.work.sizes import find_blocks
from idc_core.work.source import Opened, Source


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
        streamed = [one for one in criteria if isinstance(one, StreamedCriterion)]
        if streamed:
            cutting = find_blocks(executor, source, _layers(streamed), None, batch_size)
            learns = any(one.learns for one in streamed)
            blocks = cutting.blocks if learns else cutting.blocks[:1]
            work = _Learn([without(one, "model") for one in streamed], cutting.batch_size)
            adopt_all(streamed, executor.run(source, work, blocks, on_progress))
        for one in criteria:
            if isinstance(one, IDC):
                fit_idc(executor, one, source, batch_size or one.batch_size, on_progress)


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

    def seen(begun: Sequence[Criterion], blocks: Sequence[Block]) -> list[Any]:
        work = _Update([without(one, "model") for one in begun], cutting.batch_size)
        return executor.run(source, work, blocks, on_progress).criteria if begun else []

    more = seen([one.fresh() for one in parted], cutting.blocks)
    later = seen(whole, [(0, cutting.count)])
    with all_or_nothing(*criteria):
        for criterion, other in zip(parted, more, strict=True):
            criterion.merge(other)
        for criterion, other in zip(whole, later, strict=True):
            vars(criterion).update({name: vars(other)[name] for name in vars(other).keys() - _own(criterion)})


def _own(criterion: Criterion) -> set[str]:
    """Return the attributes that a copy which has seen more does not tell."""
    return {*criterion.unmerged, "batch_size"}


def _layers(criteria: Sequence[Any]) -> tuple[str, ...]:
    named = (layer for one in criteria for layer in ((one.layer,) if isinstance(one, IDC) else one.layers))
    return tuple(dict.fromkeys(named))


def without(criterion: Any, *names: str) -> Any:
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

    criteria: list[Any]
    batch_size: int | None

    def __call__(self, opened: Opened, block: Block) -> Learned:
        """Learn from a block of the training inputs."""
        criteria = [with_model(one, opened.model) for one in self.criteria]
        return learn_all(criteria, opened.inputs(block), batch_size=self.batch_size, on_progress=opened.on_progress)


@dataclass(eq=False)
class _Seen:
    """Criteria that have seen some of the tests."""

    criteria: list[Any]

    def merge(self, other: _Seen) -> Self:
        """Take in what the next tests cover."""
        for mine, theirs in zip(self.criteria, other.criteria, strict=True):
            mine.merge(theirs)
        return self


@dataclass(frozen=True)
class _Update(Work[_Seen]):
    """Work: what a block of tests covers."""

    criteria: list[Any]
    batch_size: int | None

    def __call__(self, opened: Opened, block: Block) -> _Seen:
        """Account for a block of the tests."""
        criteria = [with_model(one, opened.model) for one in self.criteria]
        for one in criteria:
            if isinstance(one, IDC):
                one.batch_size = self.batch_size
        update_all(criteria, opened.inputs(block), batch_size=self.batch_size, on_progress=opened.on_progress)
        return _Seen([without(one, *one.unmerged) for one in criteria])
