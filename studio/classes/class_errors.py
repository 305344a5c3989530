"""Evidence, settings and class errors of the Class errors page, each computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.confusion.evidence import Evidence, parse_groups
from idc_core.confusion.report import ClassErrors
from idc_core.runs import ErrorSettings, planned_class_errors, planned_statistics
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.jobs.runs import run_settings
from studio.state import address, choices
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.confusion.scaled_activation import Statistics

_PAIR = "pair"
"""Name in the address: the selected pair."""

PREDICTIONS, SCALED = "own-predictions", "own-scaled"
"""In the session: a person's own file, and whether its activations are scaled already."""

SOURCE = (
    "Source: Y. Tian, Z. Zhong, V. Ordonez, G. Kaiser, B. Ray, Testing DNN Image Classifiers for Confusion & Bias "
    "Errors, ICSE 2020 (DeepInspect)."
)


@dataclass(frozen=True, eq=False)
class Looked:
    """Class errors of the chosen tests, or of a person's own predictions (then without positions, scores and layers).

    `positions` (n,) are the evidence's rows among the tests, `scores` (n, classes) the network's outputs for them, None
    for groups; `key` is everything it depends on.
    """

    evidence: Evidence
    found: ClassErrors
    positions: NDArray[np.int64] | None
    scores: NDArray[np.float32] | None
    layers: tuple[str, ...]
    sizes: tuple[int, ...]
    key: Hashable

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.found.class_names

    @property
    def known(self) -> list[int]:
        """Return the classes that some input is predicted as."""
        known_classes: list[int] = np.flatnonzero(np.isfinite(np.diag(self.found.distance))).tolist()
        return known_classes

    @property
    def inputs_word(self) -> str:
        """Return what the inputs are: tests of the setup, or a person's own inputs."""
        return "input" if self.positions is None else "test"

    def pair_name(self, pair: tuple[int, int]) -> str:
        """Name a pair."""
        return f"{self.names[pair[0]]} and {self.names[pair[1]]}"

    def neuron_of(self, index: int) -> tuple[str, int]:
        """Return a neuron's layer, empty where there are none, and its index there."""
        for layer, size in zip(self.layers, self.sizes, strict=True):
            if index < size:
                return layer, index
            index -= size
        return "", index

    def of_class(self, one: int) -> NDArray[np.int64]:
        """Return the rows that are predicted as a class."""
        predicted = self.evidence.predicted
        if predicted is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(predicted[:, one] if predicted.ndim == 2 else predicted == one)


def read_own() -> Evidence | None:
    """Read a person's own predictions, shown instead of the setup's network; None where there are none."""
    file = st.session_state.get(PREDICTIONS)
    if file is None:
        return None
    content, name, scaled = file.getvalue(), file.name, bool(st.session_state.get(SCALED))

    def read(report: Progress) -> Evidence:
        from idc_core.confusion.predictions_file import own_evidence

        return own_evidence(content, name, scaled=scaled)

    key = (hashlib.sha256(content).hexdigest(), name, scaled)
    return Waiting(1).get(JobKind("own-predictions", kept=4, lives="server"), key, f"reading {name}", read)


def _own_key() -> Hashable:
    """Return what a person's own predictions depend on."""
    file = st.session_state.get(PREDICTIONS)
    return None if file is None else (file.file_id, bool(st.session_state.get(SCALED)))


def look(view: View, settings: ErrorSettings, own: Evidence | None) -> Looked:
    """Find everything the page shows; a pass only where layers or tests are new."""
    if own is not None:
        return _find(own, settings, None, None, (_own_key(),))
    statistics = _open_statistics(view, settings.layers)
    rows = view.chosen
    names = view.train.class_names
    evidence = Evidence(
        tuple(names),
        statistics.predictions[rows],
        view.test.targets[rows] if view.is_comparable else None,
        values=statistics.values[rows],
    )
    key = (view.card.fingerprint, view.test.fingerprint, view.chosen_key)
    return _find(evidence, settings, statistics, rows, key, run_settings(view, **settings.told))


def _open_statistics(view: View, layers: tuple[str, ...]) -> Statistics:
    """Return how strongly the tests activate every neuron of some layers, from one pass."""
    plan = planned_statistics(view.card, view.open_model, view.test, layers)
    doing = "running the tests through all counted layers"
    return Waiting(1).get(JobKind(plan.kind, kept=6), plan.key, doing, plan.make)


def _find(
    evidence: Evidence,
    settings: ErrorSettings,
    statistics: Statistics | None,
    rows: NDArray[np.int64] | None,
    key: tuple[object, ...],
    run: dict[str, object] | None = None,
) -> Looked:
    """Compare the classes; a run where its settings are told, as of a person's own predictions they are not."""
    grouped = evidence.grouped(parse_groups(settings.groups, evidence.class_names))
    if not grouped.several_labels:
        settings = replace(settings, kind=None)
    plan = planned_class_errors(lambda _: grouped, settings, key, run)
    doing = "comparing all pairs of classes"
    errors = Waiting(1).get(JobKind(plan.kind, kept=48), plan.key, doing, plan.make, settings=run)
    if statistics is None:
        return Looked(grouped, errors, None, None, (), (), plan.key)
    # Groups have no scores of their own.
    scores = None if settings.groups.strip() else statistics.scores[rows]
    return Looked(grouped, errors, rows, scores, statistics.layers, statistics.sizes, plan.key)


def current_pair(looked: Looked) -> tuple[int, int]:
    """Return the selected pair; the most suspected one where none is chosen."""
    new, text = address.is_new(_PAIR), address.read(_PAIR)
    parts = text.split("-")
    numbers = [number for part in parts if (number := address.position(part)) is not None]
    if len(numbers) == 2 and numbers[0] != numbers[1] and set(numbers) <= set(looked.known):
        return numbers[0], numbers[1]
    choices.not_there("Pair", [text] if new else [])
    first, second = looked.found.suspected[0].tolist()
    return int(first), int(second)


def keep_pair(first: int, second: int) -> None:
    """Select a pair; for callbacks."""
    address.keep(_PAIR, f"{first}-{second}")


def told(looked: Looked, pair: tuple[int, int]) -> str:
    """Say how many inputs of a pair are confused, beside the other pairs; empty where labels say nothing."""
    finding = looked.found.pair_finding(pair, looked.inputs_word)
    return "" if finding is None else literal(finding.sentence)
