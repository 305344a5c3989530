"""A differential search for a page: which models, from which tests, within what; what came of it; its coverage."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.errors import CancelledError, IdcError
from idc_core.progress import Progress
from studio.engine.jobs import KEPT, Waiting
from studio.engine.results import View

if TYPE_CHECKING:
    from torch import nn

    from idc_core.generation import Constraint, Distances, Finds
    from idc_core.models import ModelEntry

COPY, BITS = "copy", 4
"""Name of the bench's own network with weights of few bits, and of how many."""


@dataclass(frozen=True)
class Settings:
    """Everything that a search depends on beside the bench.

    Attributes
    ----------
    models : tuple of str
        Keys of `offered`, the bench's own network first.
    how, count, seed, cell
        As `idc_core.generation.choose_seeds` takes them; `cell` is None where none is needed.
    constraint : str
    parameters : tuple of (str, value)
        Of the constraint; "rows" and "columns" of the pixels that may change, where a person marks them.
    guide : str
        One of `idc_core.generation.guides`, or empty.
    weight_difference, weight_coverage, step, iterations, threshold, bound
        As `idc_core.generation.differential_search` takes them.
    """

    models: tuple[str, ...]
    how: str = "random"
    count: int = 50
    seed: int = 0
    cell: tuple[int, ...] | None = None
    constraint: str = "light"
    parameters: tuple[tuple[str, Any], ...] = ()
    guide: str = "nc"
    weight_difference: float = 1.0
    weight_coverage: float = 0.1
    step: float = 10.0
    iterations: int = 50
    threshold: float = 0.0
    bound: float = 0.2


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a search.

    Attributes
    ----------
    finds : Finds
    positions : ndarray of int64 (seeds,)
        Positions of the seeds among the tests.
    seeds : ndarray of float32 (seeds, C, H, W)
        As the search took them, of 8 bits.
    labels : tuple of str
        The models' names for a person.
    models : tuple of Module
    key : hashable
        What all of it depends on.
    """

    finds: Finds
    positions: NDArray[np.int64]
    seeds: NDArray[np.float32]
    labels: tuple[str, ...]
    models: tuple[nn.Module, ...]
    key: Hashable

    @property
    def bound(self) -> float | None:
        """By how much answers of a regression must differ; None for classes."""
        return None if self.finds.predictions.dtype.kind == "i" else float(self.finds.settings["bound"])

    @property
    def origin(self) -> NDArray[np.int64]:
        """Position among the tests of each find's seed."""
        return self.positions[self.finds.seed_index]

    @cached_property
    def distances(self) -> Distances:
        """How far each find lies from its seed."""
        from idc_core.generation import distances

        return distances(self.finds.inputs, self.seeds[self.finds.seed_index])

    @cached_property
    def votes(self) -> NDArray[Any]:
        """The majority's answer to each find."""
        from idc_core.generation import majority

        return majority(self.finds.predictions, self.bound)

    @property
    def voted(self) -> NDArray[np.bool_]:
        """Whether a find has a majority."""
        from idc_core.generation import has_majority

        return has_majority(self.votes)


def offered(view: View) -> dict[str, str]:
    """Return the models of the bench's task that are here, with their names for a person; the bench's own first."""
    from idc_core.models import MODELS

    own = MODELS[view.bench.model]
    found = {view.bench.model: _short(own)}
    for name, entry in MODELS.items():
        if entry.dataset == own.dataset and name not in found and _is_here(entry):
            found[name] = _short(entry)
    return found | {COPY: f"{_short(own)} with {BITS} bits a weight"}


def usual(view: View) -> list[str]:
    """Return what a search opens with: networks of the task that were trained here, else a coarser copy of the one."""
    from idc_core.generation.similar_models import companions

    trained = companions(view.bench.model)
    return list(trained) if len(trained) > 1 else [view.bench.model, COPY]


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


def constraint_of(settings: Settings, shape: Sequence[int]) -> Constraint:
    """Make the constraint for pictures (C, H, W).

    Raises
    ------
    SettingError
        If a parameter is outside its range.
    """
    from idc_core.generation import CONSTRAINTS

    values = dict(settings.parameters)
    if "rows" in values:
        (top, bottom), (left, right) = values.pop("rows"), values.pop("columns")
        marked = np.zeros(tuple(shape[1:]), bool)
        marked[top:bottom, left:right] = True
        values["pixels"] = marked
    return CONSTRAINTS[settings.constraint](**values)


def run(view: View, settings: Settings) -> Outcome | None:
    """Search, or find the result again; after a stop, return what had been found, None where that is nothing.

    Raises
    ------
    IdcError
        If a network or a setting does not fit.
    """
    waiting = Waiting(len(settings.models) + 1)
    try:
        models = tuple(_open(waiting, view, name) for name in settings.models)
    except CancelledError:
        return None
    positions = _seeds(view, settings)
    prints = tuple(getattr(model, "card", view.model.card).fingerprint for model in models)
    key = (view.test.fingerprint, prints, settings, _guided(view, settings), crc32(positions.tobytes()))
    told = _told()

    def work(report: Progress) -> Finds:
        from idc_core.generation import differential_search

        def publish(finds: Finds) -> None:
            told[key] = finds
            while len(told) > KEPT:
                told.popitem(last=False)

        inputs = view.test.inputs[positions]
        guidance = _guidance(view, settings, models, report)
        finds = differential_search(
            models,
            inputs,
            constraint_of(settings, inputs.shape[1:]),
            settings.weight_difference,
            settings.weight_coverage if settings.guide else 0.0,
            settings.step,
            settings.iterations,
            settings.threshold,
            settings.seed,
            guidance=guidance,
            bound=settings.bound,
            on_progress=report,
            on_finds=publish,
        )
        if finds.stopped:
            # Nobody waits any more: the next one who asks gets a whole search, not the rest of this.
            raise CancelledError("Nobody waited for the search.")
        return finds

    try:
        finds = waiting.get("searches", key, "searching, step", work)
    except CancelledError:
        finds = told.get(key)
        if finds is None:
            return None
    from idc_core.generation.eight_bit import as_seeds

    labels = offered(view)
    seeds = as_seeds(view.test.inputs[positions]).numpy()
    return Outcome(finds, positions, seeds, tuple(labels[name] for name in settings.models), models, (key, len(finds)))


@st.cache_resource
def _told() -> OrderedDict[Hashable, Finds]:
    """Return the finds so far of searches that run or were stopped, for all sessions of this server."""
    return OrderedDict()


def _open(waiting: Waiting, view: View, name: str) -> nn.Module:
    if name == view.bench.model:
        return view.model

    def work(report: Progress) -> nn.Module:
        from idc_core.generation import rounded
        from idc_core.models import load_model

        return rounded(view.model, BITS) if name == COPY else load_model(name)

    # A copy keeps the card of the network it was made of.
    key = (COPY, BITS, view.model.card.fingerprint) if name == COPY else name
    model: nn.Module = waiting.get("companions", key, "loading the networks", work, kept=12)
    return model


def _seeds(view: View, settings: Settings) -> NDArray[np.int64]:
    from idc_core.generation import Pool, choose_seeds

    rows = view.chosen
    pool = Pool(view.test.targets[rows], view.test_traces.scores[rows], view.analysis, rows, settings.cell)
    return rows[choose_seeds(pool, settings.how, settings.count, settings.seed)]


def _guided(view: View, settings: Settings) -> Hashable:
    """Return what guidance depends on beyond the models."""
    if settings.guide in ("", "nc"):
        return None
    return view.bench, crc32(view.chosen.tobytes())


def _guidance(view: View, settings: Settings, models: Sequence[nn.Module], report: Progress) -> Any:
    """Make the criteria that guide the search; None for neuron coverage by the finds alone, which it knows itself."""
    from idc_core.generation import make_guidance

    if settings.guide in ("", "nc"):
        return None
    cards = [getattr(model, "card", view.model.card) for model in models]
    own = view.model.card.fingerprint
    layers = [view.bench.layer if card.fingerprint == own else card.default_layer for card in cards]
    return make_guidance(
        settings.guide,
        models,
        view.train,
        view.test.inputs[view.chosen],
        layers=layers,
        m=view.bench.m,
        on_progress=report,
    )


def heatmaps(view: View, outcome: Outcome, row: int) -> list[NDArray[np.float32]]:
    """Return each model's relevance of a find's seed and of the find, for the class it answers: (2, C, H, W) each."""
    pair = np.stack([outcome.seeds[outcome.finds.seed_index[row]], outcome.finds.inputs[row]])

    def work(report: Progress) -> list[NDArray[np.float32]]:
        from idc_core.attribution.relevance import relevance

        return [
            np.asarray(relevance(model, pair, ["input"], target="predicted", on_progress=report)["input"], np.float32)
            for model in outcome.models
        ]

    key = (outcome.key, row, crc32(pair.tobytes()))
    found: list[NDArray[np.float32]] = Waiting(1).get("heatmaps", key, "explaining seed and find", work)
    return found


@dataclass(frozen=True, eq=False)
class Gain:
    """Coverage of the bench's tests before and after finds are added.

    Attributes
    ----------
    scores : dict of str to (float, float)
        By criterion, each in its own unit.
    shares : dict of str to bool
        Whether a criterion's score is a share.
    new_cells : int
        Cells of IDC that only finds reach.
    problems : list of str
        A sentence for each criterion that is left out.
    """

    scores: dict[str, tuple[float, float]]
    shares: dict[str, bool]
    new_cells: int
    problems: list[str]


def gain(view: View, inputs: NDArray[np.float32], names: Sequence[str], depends: Hashable) -> Gain:
    """Measure by criteria what some inputs add to the chosen tests, in the bench's layer; show progress."""
    from idc_core.tracing.trace import Traces

    waiting, layer = Waiting(1 + len(names)), view.bench.layer
    scores: dict[str, tuple[float, float]] = {}
    shares: dict[str, bool] = {}
    problems: list[str] = []

    def passed(report: Progress) -> Any:
        from idc_core.tracing.trace import collect

        return collect(view.model, inputs, [layer], on_progress=report)

    try:
        bench = (view.model.card.fingerprint, layer)
        added = waiting.get("suites", (*bench, "search", depends), "running the finds through the network", passed)
        before = view.test_traces.only(view.chosen)
        after = Traces.joined(before, added)
        cells = [view.analysis.cell_profiles(one.activations[layer]) for one in (before, after)]
        scores["idc"], shares["idc"] = (cells[0].coverage(), cells[1].coverage()), True
        new = len(np.unique(cells[1].targets)) - len(np.unique(cells[0].targets))
        for name in names:
            if name != "idc":
                _measure(waiting, view, name, (before, after), depends, (scores, shares, problems))
    except CancelledError:
        left = [name.upper() for name in names if name not in scores]
        problems.append(f"Stopped before it was finished: {', '.join(left)}.")
        new = 0 if "idc" not in scores else new
    return Gain(scores, shares, new, problems)


def _measure(
    waiting: Waiting,
    view: View,
    name: str,
    suites: tuple[Any, Any],
    depends: Hashable,
    into: tuple[dict[str, tuple[float, float]], dict[str, bool], list[str]],
) -> None:
    """Add the scores of one criterion, or a sentence on why it has none."""
    from idc_core.coverage import CRITERIA
    from idc_core.coverage.agreement import score_suites
    from idc_core.coverage.streamed import TargetCriterion

    card = CRITERIA[name].card

    def work(report: Progress) -> tuple[float, float] | str:
        try:
            make: Any = CRITERIA[name]  # each has a constructor of its own
            one = make(view.model, view.bench.layer)
            found = score_suites([one], view.train_traces, suites, on_progress=report)[0]
        except CancelledError:
            raise
        except IdcError as error:
            return f"{card.label} is left out. {error}"
        return float(found[0]), float(found[1])

    key = (*view.key, view.bench.layer, view.bench.classes, name, "search", depends)
    answer = waiting.get("scores", key, f"measuring {card.label}", work, kept=192)
    if isinstance(answer, str):
        into[2].append(answer)
    else:
        into[0][name] = answer
        into[1][name] = issubclass(CRITERIA[name], TargetCriterion)
