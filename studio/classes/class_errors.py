"""What the Class errors page looks at: its evidence, its settings, and everything found, each computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.confusion.evidence import Evidence, parse_groups
from idc_core.confusion.report import ClassErrors, find_errors
from idc_core.progress import Progress
from studio.engine.jobs import Waiting
from studio.engine.results import View
from studio.shell import address
from studio.shell.selection import select
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.confusion.scaled_activation import Statistics

LAYERS, GROUPS, PAIR = "counted", "groups", "pair"
"""Names in the address: the layers whose neurons count, classes taken together, and the pair looked at."""

PREDICTIONS = "own-predictions"
"""In the session: a person's own file, its name and content."""


@dataclass(frozen=True)
class Settings:
    """What the person chose on the page.

    Attributes
    ----------
    layers : tuple of str
        Layers whose neurons count.
    threshold : float
        Scaled output above which a neuron is active.
    deviations : float
        Standard deviations at which pairs are reported.
    normalise, filtered : bool
        As in `find_errors`.
    kind : str or None
        Error type of several labels.
    groups : str
        Classes taken together, as the person wrote them.
    """

    layers: tuple[str, ...]
    threshold: float
    deviations: float
    normalise: bool
    filtered: bool
    kind: str | None
    groups: str


@dataclass(frozen=True, eq=False)
class Looked:
    """What the page shows.

    Attributes
    ----------
    evidence : Evidence
        With groups, of the chosen tests.
    found : ClassErrors
    positions : ndarray of int64 (n,) or None
        Positions among the tests of the evidence's rows; None for a person's own predictions.
    scores : ndarray of float32 (n, classes) or None
        What the network returned for them; None for groups.
    layers : tuple of str
        Layers of the neurons, with their `sizes`; empty for a person's own predictions.
    sizes : tuple of int
    key : hashable
        What all of it depends on.
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
        help="Convolutions and linear layers, before their activation function. Another choice needs one more pass "
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
            help="A neuron is active where its output, scaled to 0..1 over its layer, is above this; counted again at "
            "once. From 0.05 to 0.95; default 0.5.",
        )
    with columns[1]:
        deviations = st.slider(
            "Report beyond (standard deviations)",
            0.0,
            3.0,
            1.0,
            0.25,
            key="deviations",
            bind="query-params",
            help="Pairs this far below the mean distance, or above the mean bias, are reported; true pairs lie as far "
            "above the mean of the truth. From 0 to 3; default 1.",
        )
    with columns[2], st.container(horizontal=True):
        normalise = st.toggle(
            "As published",
            key="normalise",
            bind="query-params",
            help="Divide a distance by the root of the number of neurons that either class activates, as the published "
            "tables do; the paper's equation (2) does not. Default off.",
        )
        filtered = st.toggle(
            "Near third classes only",
            True,
            key="near",
            bind="query-params",
            help="For bias, a third class that is far from both counts as 0, as in the paper. Default on.",
        )
        kind = None
        if several:
            kind = st.segmented_control(
                "True errors",
                ["type2", "type1"],
                default="type2",
                required=True,
                key="kind",
                bind="query-params",
                format_func={"type2": "beside (type 2)", "type1": "instead (type 1)"}.get,
                help="What counts as a true confusion of several labels: a class predicted beside, or instead of, "
                "another that alone is there. Default beside (type 2).",
            )
    return {
        "threshold": threshold,
        "deviations": deviations,
        "normalise": normalise,
        "filtered": filtered,
        "kind": kind,
    }


def choose_groups() -> str:
    """Choose which classes are taken together."""
    st.session_state[GROUPS] = address.read(GROUPS)
    text: str = st.text_area(
        "Groups of classes",
        key=GROUPS,
        height=80,
        placeholder="pets: cat, dog\nvehicles: car, truck",
        on_change=lambda: address.keep(GROUPS, "; ".join(st.session_state[GROUPS].splitlines())),
        help="Classes that are taken together, one group a line as name: class, class; for example two groups of "
        "people between which the network must be fair. Default none.",
    )
    return text


def choose_own() -> Evidence | None:
    """Take a person's own predictions instead of the bench's network; None where there are none."""
    file = st.file_uploader(
        "Own predictions (npz, csv)",
        ["npz", "csv"],
        key=PREDICTIONS,
        help="An npz file or CSV table of any classifier, also with several labels an input, shown instead of the "
        "bench's network; what it must hold is said below. Default none.",
    )
    scaled = st.toggle(
        "Activations are scaled to 0..1 already",
        key="own-scaled",
        help="Otherwise each input's activations are scaled by the smallest and largest of their layer. Default off.",
    )
    st.caption(
        "npz: `activations` (inputs, neurons) with `predicted`, or `probability` (neurons, classes); and where known "
        "`true`, `class_names`, `layer_sizes`. Labels are class numbers (inputs,) or zeros and ones (inputs, classes). "
        "CSV: a column `predicted`, perhaps `true`, all others activations; or a column a class and a row a neuron."
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
    """Find everything the page shows; a pass only where layers or tests are new.

    Raises
    ------
    IdcError
        If the groups make no sense, or nothing can be said of these predictions.
    """
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
    bench = (*view.key, view.bench.classes)
    key = (*bench, settings.layers, settings.groups)
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
    """Choose the pair that is looked at; the most suspected one where none is chosen."""
    known = np.flatnonzero(np.isfinite(np.diag(looked.found.distance))).tolist()
    said = address.read(PAIR).split("-")
    numbers = [int(part) for part in said if part.isascii() and part.isdigit() and len(part) < 7]
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
                help="One of the two classes that are looked at below; type to search. Default the most suspected "
                "pair.",
            )
    return int(pair[0]), int(pair[1])


def keep_pair(first: int, second: int) -> None:
    """Look at a pair; for callbacks."""
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
