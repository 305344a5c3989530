"""A differential search: every worker has blocks of the seeds, and all take each step together."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress, report
from idc_core.errors import DataError, SettingError
from idc_core.generation.ascent import Arrived, AscentSettings, JointAscent, said_steps
from idc_core.generation.constraints import as_seeds
from idc_core.generation.guidance import Targets
from idc_core.generation.search import Disagreements, disagreements
from idc_core.work.criteria import with_model, without
from idc_core.work.executor import Block, Cut, Executor, Work
from idc_core.work.source import Opened, Source

if TYPE_CHECKING:
    from idc_core.coverage.registry import Criterion
    from idc_core.models import Network

_SEEDS = 16
"""Seeds of a block: few, so that a search of hundreds has work for many workers."""

_EARLY = 0.25
"""Part of the steps within which a worker that joins is given seeds.

It makes their earlier steps again while the others wait: that pays in the first half where it joins as many as are
there, in the first third where one joins two."""


def search_seeds(
    executor: Executor,
    source: Source,
    names: Sequence[str],
    models: Sequence[Network],
    positions: NDArray[np.int64],
    settings: AscentSettings,
    guidance: Sequence[Criterion] | None = None,
    *,
    on_progress: Progress | None = None,
) -> Disagreements:
    """Search as `differential_search` does.

    Parameters
    ----------
    executor : Executor
    source : Source
        What the workers open: the first network, and the tests that hold the seeds.
    names : sequence of str
        Names of all networks, as the source's `open_model` takes them.
    models : sequence of Network
        The same, opened here: those of workers are to have their fingerprints.
    positions : ndarray of int64, shape (n,)
        Which of the tests are the seeds.
    settings : AscentSettings
    guidance : sequence of Criterion, optional
        As `differential_search` takes it, of `models`.
    on_progress : Progress, optional
        Told the steps taken.

    Returns
    -------
    Disagreements
        As one process finds them, but that sums of batches of other sizes can end in other last digits, and turn a grey
        level of a picture.

    Raises
    ------
    IdcError
        As `differential_search`; CancelledError if `on_progress` asks to stop.
    """
    started = time.perf_counter()
    settings.check_models(models)
    if not len(positions):
        raise DataError("A search starts from pictures: expected at least one seed, got none.")
    count = len(positions)
    blocks = executor.cut(source, Cut(_seeds_at_once, most=count)).blocks
    firsts = [next(at for at, one in enumerate(models) if one is model) for model in models]
    work = _Step(
        replace(source, live=None),
        tuple(names),
        tuple(model.card.fingerprint for model in models),
        tuple(firsts),
        positions,
        settings,
        None if guidance is None else [_sent(one, models) for one in guidance],
        uuid.uuid4().hex,
    )

    def tell(done: int) -> Progress:
        return partial(_tell, on_progress, len(work.told), settings.iterations, said_steps(done, count))

    seen = executor.run(source, work, blocks, tell(0))
    while seen.active and len(work.told) < settings.iterations:
        early, now = len(work.told) < _EARLY * settings.iterations, tell(count - seen.active)
        work = replace(work, told=(*work.told, seen.covered))
        seen = executor.run(source, work, blocks, now, moving=early)
    arrived = executor.run(source, _Gather(work, work.keeps), blocks, tell(count - seen.active))
    return disagreements(arrived, settings, guidance, False, time.perf_counter() - started)


def _seeds_at_once(opened: Opened) -> int:
    return _SEEDS


def _tell(on_progress: Progress | None, taken: int, iterations: int, said: str, *_: object) -> bool | None:
    """Tell how many steps are taken, whenever an executor tells how many inputs are done in one; return its answer."""
    return on_progress is None or on_progress(taken, iterations, said)


def _sent(criterion: Any, models: Sequence[Network]) -> tuple[int, Criterion]:
    """Return a criterion without its network, and which of the networks that is."""
    places = [at for at, model in enumerate(models) if model is criterion.model]
    if not places:
        raise SettingError(
            f"{criterion.card.label} belongs to none of the models; give each one a criterion of its own."
        )
    return places[0], without(criterion, "model")


@dataclass(eq=False)
class _Seen:
    """What a step has covered, by each network's guide, and how many seeds are without a disagreement."""

    covered: list[list[Targets]]
    active: int

    def merge(self, other: _Seen) -> Self:
        """Take in what the next seeds have shown."""
        pairs = zip(self.covered, other.covered, strict=True)
        self.covered = [_joined(mine + theirs) for mine, theirs in pairs]
        self.active += other.active
        return self


def _joined(parts: list[Targets]) -> list[Targets]:
    return [np.unique(np.concatenate(parts))] if len(parts) > 1 else parts


@dataclass(eq=False)
class _Ascents:
    """A worker's networks, and how far the seeds of each of its blocks have come."""

    models: list[Network]
    by_block: dict[Block, JointAscent] = field(default_factory=dict)


@dataclass(frozen=True)
class _Step(Work[_Seen]):
    """Work: one more step of a block's seeds; `told` is what all seeds together had newly covered before each step.

    How far the seeds are stays with the worker. One that takes over from another makes all steps again. `firsts` are
    the places at which each network comes first.
    """

    source: Source
    names: tuple[str, ...]
    prints: tuple[str, ...]
    firsts: tuple[int, ...]
    positions: NDArray[np.int64]
    settings: AscentSettings
    guidance: list[tuple[int, Criterion]] | None
    keeps: str = ""
    told: tuple[list[list[Targets]], ...] = ()

    def __call__(self, opened: Opened, block: Block) -> _Seen:
        """Take the step."""
        ascent = self.ascent(opened, block)
        return _Seen([_joined(parts) for parts in ascent.covered], len(ascent.active))

    def ascent(self, opened: Opened, block: Block) -> JointAscent:
        """Return how far a block's seeds have come, after as many steps as `told` is long."""
        kept = self.kept(opened)
        if block not in kept.by_block:
            kept.by_block[block] = self._begun(kept.models, opened, block)
        ascent = kept.by_block[block]
        for covered in self.told[ascent.taken :]:
            ascent.cover(covered)
            ascent.covered = [[] for _ in self.names]
            ascent.step()
        report(opened.on_progress, block[1], len(self.positions), "seeds")
        return ascent

    def kept(self, opened: Opened) -> _Ascents:
        """Return what the worker keeps."""
        return opened.kept.of(self.keeps, lambda: _Ascents(self._models(opened)))

    def _begun(self, models: list[Network], opened: Opened, block: Block) -> JointAscent:
        guidance = (
            None if self.guidance is None else [with_model(criterion, models[at]) for at, criterion in self.guidance]
        )
        seeds = as_seeds(opened.data.inputs[self.positions[slice(*block)]])
        return JointAscent(models, seeds, self.settings, guidance, first=block[0])

    def _models(self, opened: Opened) -> list[Network]:
        """Return the networks, each opened once; the first is there."""
        models: list[Network] = []
        for at, (name, first, fingerprint) in enumerate(zip(self.names, self.firsts, self.prints, strict=True)):
            if first < at:
                models.append(models[first])
                continue
            models.append(opened.open_model(name) if at else opened.model)
            replace(self.source, model=name, prints=(fingerprint, "")).check(Opened(models[at], opened.data))
        return models


@dataclass(frozen=True)
class _Gather(Work[Arrived]):
    """Work: what a block's seeds have led to."""

    last: _Step
    keeps: str = ""

    def __call__(self, opened: Opened, block: Block) -> Arrived:
        """Return it, and forget the block."""
        ascent = self.last.ascent(opened, block)
        del self.last.kept(opened).by_block[block]
        return ascent.arrived()
