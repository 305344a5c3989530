"""A differential search on an engine: every worker has blocks of the seeds, and all take each step together."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from idc_core.engines.criteria import with_model, without
from idc_core.engines.engine import Block, Engine, cut
from idc_core.engines.source import Opened, Source
from idc_core.errors import DataError, SettingError
from idc_core.generation.ascent import Arrived, AscentSettings, JointAscent, said_steps
from idc_core.generation.constraints import as_seeds
from idc_core.generation.guidance import Covered
from idc_core.generation.search import Disagreements, disagreements
from idc_core.models import load_model
from idc_core.progress import Progress

if TYPE_CHECKING:
    from idc_core.coverage.registry import Criterion
    from idc_core.models import Network

SEEDS = 16
"""Seeds of a block: few, so that a search of hundreds has work for many workers."""


def search_on(
    engine: Engine,
    source: Source,
    names: Sequence[str],
    models: Sequence[Network],
    positions: NDArray[np.int64],
    settings: AscentSettings,
    guidance: Sequence[Criterion] | None = None,
    *,
    open_model: Callable[[str], Network] = load_model,
    on_progress: Progress | None = None,
) -> Disagreements:
    """Search as `differential_search` does.

    Parameters
    ----------
    engine : Engine
    source : Source
        What the workers open: the first network, and the tests that hold the seeds.
    names : sequence of str
        Names of all networks, as `open_model`, a function of a module, takes them.
    models : sequence of Network
        The same, opened here: the workers' are to have their fingerprints.
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
    blocks, count = cut(len(positions), SEEDS), len(positions)
    work = _Step(
        tuple(names),
        tuple(model.card.fingerprint for model in models),
        open_model,
        positions,
        settings,
        None if guidance is None else [_sent(one, models) for one in guidance],
        uuid.uuid4().hex,
    )
    begun = partial(_tell, on_progress, 0, settings.iterations, said_steps(0, count))
    seen = engine.run(source, work, blocks, begun)
    for taken in range(settings.iterations):
        if not seen.active:
            break
        work = replace(work, told=(*work.told, seen.covered))
        said = said_steps(count - seen.active, count)
        seen = engine.run(source, work, blocks, partial(_tell, on_progress, taken, settings.iterations, said))
    arrived = engine.run(source, _Gather(work), blocks)
    return disagreements(arrived, settings, guidance, False, time.perf_counter() - started)


def _tell(on_progress: Progress | None, taken: int, iterations: int, said: str, *_: object) -> bool | None:
    """Tell how many steps are taken, whenever an engine tells how many inputs are done in one; return its answer."""
    return on_progress is None or on_progress(taken, iterations, said)


def _sent(criterion: Any, models: Sequence[Network]) -> tuple[int, Any]:
    """Return a criterion without its network, and which of the networks that is."""
    places = [at for at, model in enumerate(models) if model is criterion.model]
    if not places:
        raise SettingError(
            f"{criterion.card.label} belongs to none of the models; give each one a criterion of its own."
        )
    return places[0], without(criterion, "model")


@dataclass(eq=False)
class _Seen:
    """What is covered, by each network's guide, and how many seeds are without a disagreement."""

    covered: list[Covered | None]
    active: int

    def merge(self, other: _Seen) -> Self:
        """Take in what the next seeds have shown."""
        pairs = zip(self.covered, other.covered, strict=True)
        self.covered = [None if mine is None else mine | theirs for mine, theirs in pairs]
        self.active += other.active
        return self


@dataclass(frozen=True)
class _Step:
    """Work: one more step of a block's seeds; `told` is what all seeds together had covered before each step.

    How far the seeds are stays with the worker. One that takes over from another makes all steps again.
    """

    names: tuple[str, ...]
    prints: tuple[str, ...]
    open_model: Callable[[str], Network]
    positions: NDArray[np.int64]
    settings: AscentSettings
    guidance: list[tuple[int, Any]] | None
    keeps: str
    told: tuple[list[Covered | None], ...] = ()

    def __call__(self, opened: Opened, block: Block) -> _Seen:
        """Take the step."""
        ascent = self.ascent(opened, block)
        return _Seen(ascent.covered, len(ascent.active))

    def ascent(self, opened: Opened, block: Block) -> JointAscent:
        """Return how far a block's seeds have come, after as many steps as `told` is long."""
        ascent: JointAscent | None = opened.kept.get((self.keeps, block))
        if ascent is None:
            ascent = opened.kept[self.keeps, block] = self._begun(opened, block)
        for covered in self.told[ascent.taken :]:
            ascent.cover(covered)
            ascent.step()
        return ascent

    def _begun(self, opened: Opened, block: Block) -> JointAscent:
        models = self._models(opened)
        guidance = None if self.guidance is None else [with_model(one, models[at]) for at, one in self.guidance]
        seeds = as_seeds(opened.data.inputs[self.positions[slice(*block)]])
        return JointAscent(models, seeds, self.settings, guidance, first=block[0])

    def _models(self, opened: Opened) -> list[Network]:
        """Return the networks, each opened once."""
        found: dict[str, Network] = opened.kept.setdefault("searched networks", {})
        for name, fingerprint in zip(self.names, self.prints, strict=True):
            if name not in found:
                found[name] = self.open_model(name)
            asked = Source(name, opened.data.name, prints=(fingerprint, ""))
            asked.check(Opened(found[name], opened.data))
        return [found[name] for name in self.names]


@dataclass(frozen=True)
class _Gather:
    """Work: what a block's seeds have led to."""

    last: _Step

    @property
    def keeps(self) -> str:
        """The word of all rounds."""
        return self.last.keeps

    def __call__(self, opened: Opened, block: Block) -> Arrived:
        """Return it, and forget the block."""
        ascent = self.last.ascent(opened, block)
        del opened.kept[self.keeps, block]
        return ascent.arrived()
