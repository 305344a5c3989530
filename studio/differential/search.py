"""A differential search for a page: which models, from which tests, within what; what came of it; its coverage."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.base.ranges import SearchOptions
from idc_core.errors import CancelledError, IdcError
from studio.jobs.jobs import JobKind, Waiting, shelf
from studio.jobs.results import HEATMAPS, View
from studio.jobs.runs import run_settings
from studio.jobs.tasks import tell
from studio.state import device, visitor

if TYPE_CHECKING:
    from torch import nn

    from idc_core.coverage.registry import Criterion
    from idc_core.generation import Constraint, Disagreements, Distances
    from idc_core.models import ModelEntry

_SEARCHES = JobKind("searches", is_long=True)

_COPY, _BITS = "copy", 4
"""Name of the setup's own network with weights of few bits, and of how many."""

_QUICK = 2_500_000
"""Values of all pictures times steps up to which a search starts by itself: 50 small pictures and 50 steps."""


@dataclass(frozen=True)
class SearchSettings(SearchOptions):
    """Everything that a search depends on beside the setup; names as in `choose_seeds` and `differential_search`.

    `models` holds keys of `offered`, the setup's own network first. `parameters` are of the constraint; "rows" and
    "columns" are the selected ranges of pixels. `guide` is one of `guides()`, or empty.
    """

    models: tuple[str, ...]
    how: str = "random"
    count: int = 50
    cell: tuple[int, ...] | None = None
    constraint: str = "light"
    parameters: tuple[tuple[str, object], ...] = ()
    guide: str = "nc"


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The disagreements of a search, with its seeds and models."""

    disagreements: Disagreements
    positions: NDArray[np.int64]
    """Positions of the seeds among the tests."""
    seeds: NDArray[np.float32]
    """As the search took them, of 8 bits, (seeds, C, H, W)."""
    labels: tuple[str, ...]
    """Names of the models for a person."""
    models: tuple[nn.Module, ...]
    key: Hashable
    """Everything that it depends on."""

    @property
    def bound(self) -> float | None:
        """By how much predictions of a regression must differ; None for classes."""
        return None if self.disagreements.predictions.dtype.kind == "i" else float(self.disagreements.settings["bound"])

    @property
    def origin(self) -> NDArray[np.int64]:
        """Position among the tests of each disagreement's seed."""
        return self.positions[self.disagreements.seed_index]

    @cached_property
    def distances(self) -> Distances:
        """Distance of each disagreement to its seed."""
        from idc_core.generation import distances

        return distances(self.disagreements.inputs, self.seeds[self.disagreements.seed_index])

    @cached_property
    def votes(self) -> NDArray[np.generic]:
        """Majority vote on each disagreement."""
        from idc_core.generation import majority

        return majority(self.disagreements.predictions, self.bound)

    @property
    def voted(self) -> NDArray[np.bool_]:
        """Whether a disagreement has a majority."""
        from idc_core.generation import has_majority

        return has_majority(self.votes)


def offered(view: View) -> dict[str, str]:
    """Return the models of the setup's task that are here, with their names for a person; the setup's own first."""
    seen = visitor.models()
    own = seen[view.setup.model]
    labels = {view.setup.model: _short(own)}
    for name, entry in seen.items():
        if entry.dataset == own.dataset and name not in labels and _is_here(entry):
            labels[name] = _short(entry)
    return labels | {_COPY: f"{_short(own)} with {_BITS} bits per weight"}


def usual(view: View) -> list[str]:
    """Return what a search opens with: networks of the task that were trained here, else a coarser copy of the one."""
    from idc_core.models.registry import companions

    trained = companions(view.setup.model)
    return list(trained) if len(trained) > 1 else [view.setup.model, _COPY]


def _short(entry: ModelEntry) -> str:
    return entry.label.partition(" on ")[0]


def _is_here(entry: ModelEntry) -> bool:
    """Whether a network's weights can be read; those of published ones are not part of the project."""
    if not entry.published:
        return True
    from idc_core.models.published import published_folder

    try:
        return (published_folder(entry.name) / f"{entry.name}.npz").is_file()
    except IdcError:
        return False


def _constraint_of(settings: SearchSettings, shape: Sequence[int]) -> Constraint:
    """Make the constraint for pictures (C, H, W); SettingError if a parameter is outside its range."""
    from idc_core.generation import CONSTRAINTS

    values: dict[str, Any] = dict(settings.parameters)
    if "rows" in values:
        (top, bottom), (left, right) = values.pop("rows"), values.pop("columns")
        marked = np.zeros(tuple(shape[1:]), bool)
        marked[top:bottom, left:right] = True
        values["pixels"] = marked
    return CONSTRAINTS[settings.constraint](**values)


def is_quick(view: View, settings: SearchSettings) -> bool:
    """Whether a search takes so few seconds that it needs no click."""
    return bool(settings.count * settings.iterations * view.test.inputs[0].size <= _QUICK)


def run(view: View, settings: SearchSettings, *, start: bool = True) -> SearchResult | None:
    """Search, or find the result again; after a stop, return what had been found, None where that is nothing.

    Without `start` a search that was not made before is not begun, and there is no result.
    """
    waiting = Waiting(len(settings.models) + 1)
    try:
        models = tuple(_open(waiting, view, name) for name in settings.models)
    except CancelledError:
        return None
    positions = _seeds(view, settings)
    prints = tuple(getattr(model, "card", view.card).fingerprint for model in models)
    key = (view.test.fingerprint, prints, settings, _guided(view, settings), crc32(positions.tobytes()))
    if not start and shelf().finished(_SEARCHES, key) is None:
        return None

    def work(report: Progress) -> Disagreements:
        from idc_core.generation import differential_search

        inputs = view.test.inputs[positions]
        disagreements = differential_search(
            models,
            inputs,
            _constraint_of(settings, inputs.shape[1:]),
            guidance=_guidance(view, settings, models, report),
            on_progress=report,
            on_disagreements=partial(tell, key),
            **settings.options | ({} if settings.guide else {"weight_coverage": 0.0}),
        )
        if disagreements.stopped:
            # Nobody waits any more: the next one who asks gets a whole search, not the rest of this.
            raise CancelledError("Nobody waited for the search.")
        return disagreements

    try:
        disagreements = waiting.get(_SEARCHES, key, "searching, step", work, settings=_told(view, settings))
    except CancelledError:
        disagreements = shelf().told(key)
        if disagreements is None:
            return None
    from idc_core.generation.constraints import as_seeds

    labels = offered(view)
    seeds = as_seeds(view.test.inputs[positions]).numpy()
    shown = tuple(labels[name] for name in settings.models)
    return SearchResult(disagreements, positions, seeds, shown, models, (key, len(disagreements)))


def _told(view: View, settings: SearchSettings) -> dict[str, object]:
    """Return what a list of runs says of a search."""
    facts = {name: value for name, value in vars(settings).items() if name != "parameters" and value is not None}
    facts["models"] = [name for name in settings.models if name != _COPY]
    if _COPY in settings.models:
        facts["copy_of_bits"] = _BITS
    return run_settings(
        view, **facts, **{f"{settings.constraint}_{name}": setting for name, setting in settings.parameters}
    )


def _open(waiting: Waiting, view: View, name: str) -> nn.Module:
    from idc_core.models import MODELS

    if name == view.setup.model:
        return view.model

    where = device.chosen()

    def work(report: Progress) -> nn.Module:
        from idc_core.generation import rounded
        from idc_core.models import load_model

        return rounded(view.model, _BITS) if name == _COPY else load_model(name, device=where)

    # A copy keeps the card of the network it was made of.
    key = (_COPY, _BITS, view.card.fingerprint, where) if name == _COPY else (name, MODELS[name].edition, where)
    return waiting.get(JobKind("companions", kept=12, lives="everywhere"), key, "loading the networks", work)


def _seeds(view: View, settings: SearchSettings) -> NDArray[np.int64]:
    from idc_core.generation import Pool, choose_seeds

    rows = view.chosen
    pool = Pool(view.test.targets[rows], view.test_traces.scores[rows], view.analysis, rows, settings.cell)
    return rows[choose_seeds(pool, settings.how, settings.count, settings.seed)]


def _guided(view: View, settings: SearchSettings) -> Hashable:
    """Return what guidance depends on beyond the models."""
    if settings.guide in ("", "nc"):
        return None
    return view.setup, view.chosen_key


def _guidance(
    view: View, settings: SearchSettings, models: Sequence[nn.Module], report: Progress
) -> list[Criterion] | None:
    """Make the criteria that guide the search; None for neuron coverage by the disagreements alone, the default."""
    from idc_core.generation import make_guidance

    if settings.guide in ("", "nc"):
        return None
    cards = [getattr(model, "card", view.card) for model in models]
    own = view.card.fingerprint
    layers = [view.setup.layer if card.fingerprint == own else card.default_layer for card in cards]
    return make_guidance(
        settings.guide,
        models,
        view.train,
        view.test.inputs[view.chosen],
        layers=layers,
        m=view.setup.m,
        on_progress=report,
    )


def heatmaps(view: View, result: SearchResult, row: int) -> list[NDArray[np.float32]]:
    """Return each model's relevance of a seed and its disagreement, for the predicted class: (2, C, H, W) each."""
    pair = np.stack([result.seeds[result.disagreements.seed_index[row]], result.disagreements.inputs[row]])

    def work(report: Progress) -> list[NDArray[np.float32]]:
        from idc_core.attribution.relevance import relevance

        return [
            np.asarray(relevance(model, pair, ["input"], target="predicted", on_progress=report)["input"], np.float32)
            for model in result.models
        ]

    key = (result.key, row, crc32(pair.tobytes()))
    return Waiting(1).get(HEATMAPS, key, "explaining seed and disagreement", work)
