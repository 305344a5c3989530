"""Evidence, settings and class errors of the Class errors page, each computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.confusion.evidence import Evidence, parse_groups
from idc_core.confusion.report import ClassErrors, Kind, find_errors
from idc_core.progress import Progress
from studio.engine.jobs import Waiting
from studio.engine.results import View
from studio.state import address
from studio.state.choices import choose_one
from studio.state.selection import select
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.confusion.scaled_activation import Statistics

LAYERS, GROUPS, PAIR = "counted", "groups", "pair"
"""Names in the address: the layers whose neurons count, groups of classes, and the selected pair."""

KINDS: dict[Kind, str] = {"type2": "additional (type 2)", "type1": "instead (type 1)"}
"""Error types of several labels."""

PREDICTIONS = "own-predictions"
"""In the session: a person's own file, its name and content."""


@dataclass(frozen=True)
class Settings:
    """The choices of the page: layers whose neurons count, thresholds, forms and groups as the person wrote them."""

    layers: tuple[str, ...]
    threshold: float
    deviations: float
    normalise: bool
    filtered: bool
    kind: Kind | None
    groups: str


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


def choose_layers(view: View) -> tuple[str, ...]:
    """Choose the layers whose neurons count; all convolutions and linear layers unless chosen."""
    from idc_core.confusion.scaled_activation import countable_layers

    offered = countable_layers(view.model)
    said = address.read(LAYERS).split(",")
    st.session_state[LAYERS] = [name for name in offered if name in said] or list(offered)
    chosen = st.pills(
        "Layers whose neurons count",
        offered,
        selection_mode="multi",
        key=LAYERS,
        on_change=lambda: address.keep(LAYERS, ",".join(st.session_state[LAYERS])),
        help="Convolutions and linear layers, before their activation function. Another choice takes one more pass "
        f"over the tests. Default all: {', '.join(offered)}.",
    )
    return tuple(name for name in offered if name in chosen) or offered


def choose_numbers(several: bool) -> dict[str, Any]:
    """Choose thresholds and forms; all of them are counted again at once."""
    columns = st.columns([2, 2, 3], gap="medium", vertical_alignment="bottom")
    with columns[0]:
        threshold = st.slider(
            "Activation threshold",
            0.05,
            0.95,
            0.5,
            0.05,
            key="activation",
            bind="query-params",
            help="A neuron is active where its output, scaled to 0..1 per layer, is above this. From 0.05 to 0.95; "
            "default 0.5.",
        )
    with columns[1]:
        deviations = st.slider(
            "Report pairs closer than mean \u2212 … SD",
            0.0,
            3.0,
            1.0,
            0.25,
            key="deviations",
            bind="query-params",
            help="Reported are pairs this many standard deviations below the mean distance, or above the mean bias. "
            "Truly confused: as far above the mean of the labels' confusion. From 0 to 3; default 1.",
        )
    with columns[2], st.container(horizontal=True):
        normalise = st.toggle(
            "Normalise distances",
            key="normalise",
            bind="query-params",
            help="Divides a distance by the square root of the number of neurons that either class activates, as in "
            "the published tables. The paper's equation (2) does not. Default off.",
        )
        filtered = st.toggle(
            "Near third classes only",
            True,
            key="near",
            bind="query-params",
            help="For bias: a third class far from both counts as 0, as in the paper. Default on.",
        )
        kind: Kind | None = None
        if several:
            kind = choose_one(
                st.segmented_control,
                "True errors",
                KINDS,
                "type2",
                "kind",
                required=True,
                help="True confusion with several labels: a class predicted in addition to, or instead of, the true "
                "one. Default additional (type 2).",
            )
    return {
        "threshold": threshold,
        "deviations": deviations,
        "normalise": normalise,
        "filtered": filtered,
        "kind": kind,
    }


def choose_groups() -> str:
    """Choose groups of classes."""
    st.session_state[GROUPS] = address.read(GROUPS)
    text: str = st.text_area(
        "Groups of classes",
        key=GROUPS,
        height=80,
        placeholder="pets: cat, dog\nvehicles: car, truck",
        on_change=lambda: address.keep(GROUPS, "; ".join(st.session_state[GROUPS].splitlines())),
        help="Classes joined into one, one group per line as name: class, class; for example two groups of people that "
        "the network must treat alike. Default none.",
    )
    return text


def choose_own() -> Evidence | None:
    """Load a person's own predictions instead of the setup's network; None where there are none."""
    file = st.file_uploader(
        "Custom predictions (npz, csv)",
        ["npz", "csv"],
        key=PREDICTIONS,
        help="An npz file or CSV table of any classifier, also with several labels per input, shown instead of the "
        "setup's network. Format: see below. Default none.",
    )
    scaled = st.toggle(
        "Activations are already scaled to 0..1",
        key="own-scaled",
        help="Off: each input's activations are scaled by the minimum and maximum of their layer. Default off.",
    )
    st.caption(
        "npz: `activations` (inputs, neurons) with `predicted`, or `probability` (neurons, classes); optional `true`, "
        "`class_names`, `layer_sizes`. Labels: class numbers (inputs,) or zeros and ones (inputs, classes). CSV: a "
        "column `predicted`, optionally `true`, all others activations; or one column per class and one row per neuron."
    )
    if file is None:
        return None
    content, name = file.getvalue(), file.name

    def read(report: Progress) -> Evidence:
        from idc_core.confusion.predictions_file import own_evidence

        return own_evidence(content, name, scaled=scaled)

    key = (hashlib.sha256(content).hexdigest(), name, scaled)
    found: Evidence = Waiting(1).get("own-predictions", key, f"reading {name}", read, kept=4)
    return found


def own_key() -> Hashable:
    """Return what a person's own predictions depend on."""
    file = st.session_state.get(PREDICTIONS)
    return None if file is None else (file.file_id, bool(st.session_state.get("own-scaled")))


def look(view: View, settings: Settings, own: Evidence | None) -> Looked:
    """Find everything the page shows; a pass only where layers or tests are new."""
    if own is not None:
        return _find(own, settings, None, None, (own_key(), settings.groups))
    statistics = open_statistics(view, settings.layers)
    rows = view.chosen
    names = view.train.class_names
    evidence = Evidence(
        tuple(names),
        statistics.predictions[rows],
        view.test.targets[rows] if view.is_comparable else None,
        values=statistics.values[rows],
    )
    setup = (*view.key, view.setup.classes)
    key = (*setup, settings.layers, settings.groups)
    return _find(evidence, settings, statistics, rows, key)


def open_statistics(view: View, layers: tuple[str, ...]) -> Statistics:
    """Return how strongly the tests activate every neuron of some layers, from one pass."""

    def work(report: Progress) -> Statistics:
        from idc_core.confusion.scaled_activation import collect_statistics

        return collect_statistics(view.model, view.test, layers, on_progress=report)

    key = (*view.key, layers)
    found: Statistics = Waiting(1).get("statistics", key, "running the tests through all counted layers", work, kept=6)
    return found


def _find(
    evidence: Evidence, settings: Settings, statistics: Statistics | None, rows: NDArray[np.int64] | None, key: Hashable
) -> Looked:
    grouped = evidence.grouped(parse_groups(settings.groups, evidence.class_names))
    numbers = (settings.threshold, settings.deviations, settings.normalise, settings.filtered, settings.kind)

    def work(report: Progress) -> ClassErrors:
        return find_errors(
            grouped,
            settings.threshold,
            normalise=settings.normalise,
            filtered=settings.filtered,
            kind=settings.kind if grouped.several_labels else None,
            deviations=settings.deviations,
            on_progress=report,
        )

    found = Waiting(1).get("class-errors", (key, numbers), "comparing all pairs of classes", work, kept=48)
    if statistics is None:
        return Looked(grouped, found, None, None, (), (), (key, numbers))
    # Groups have no scores of their own.
    scores = None if settings.groups.strip() else statistics.scores[rows]
    return Looked(grouped, found, rows, scores, statistics.layers, statistics.sizes, (key, numbers))


def choose_pair(looked: Looked) -> tuple[int, int]:
    """Return the selected pair; the most suspected one where none is chosen."""
    known = np.flatnonzero(np.isfinite(np.diag(looked.found.distance))).tolist()
    said = address.read(PAIR).split("-")
    numbers = [number for part in said if (number := address.position(part)) is not None]
    usual = looked.found.suspected[0].tolist()
    pair = numbers if len(numbers) == 2 and numbers[0] != numbers[1] and set(numbers) <= set(known) else usual
    st.session_state["pair-first"], st.session_state["pair-second"] = pair
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for key, label in (("pair-first", "First class"), ("pair-second", "Second class")):
            st.selectbox(
                label,
                known,
                format_func=lambda one: looked.names[one],
                key=key,
                width=220,
                on_change=_take_pair,
                help="One of the two classes shown below; type to search. Default the most suspected pair.",
            )
    return int(pair[0]), int(pair[1])


def keep_pair(first: int, second: int) -> None:
    """Select a pair; for callbacks."""
    address.keep(PAIR, f"{first}-{second}")


def _take_pair() -> None:
    first, second = st.session_state["pair-first"], st.session_state["pair-second"]
    if first != second:
        keep_pair(first, second)


def open_neuron(looked: Looked, index: int) -> None:
    """Select a neuron on all pages, with its layer; for callbacks."""
    layer, neuron = looked.neuron_of(index)
    if layer:
        select(layer=layer, neuron=neuron)


def named(names: list[str], most: int = 8) -> str:
    """Join names as in a sentence, not all of many."""
    if len(names) <= most:
        return layout.names(names)
    return f"{', '.join(names[:most])} and {len(names) - most} others"
