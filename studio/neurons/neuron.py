"""Inspect one neuron: the tests that activate it most and least, and its relevance per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.figures.neurons import relevance_by_group
from studio.jobs.results import View
from studio.neurons.rankings import Ranked
from studio.shell.pages import draw_link, open_neuron
from studio.state.selection import Point, carried, select, selected
from studio.text import count, plural
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.importance.ranking import Ranking

_ACTIVATES = "Relevance for the neuron's activation: red activates it, blue holds it down. By the epsilon rule."

_EXAMPLES = 4
"""Tests shown that activate a neuron most, and least."""


def told(points: Sequence[Point]) -> int:
    """Return the number that the first clicked mark carries."""
    return int(carried(points[0])[0])


def draw(view: View, found: Ranked, ranking: Ranking) -> None:
    """Show the tests that activate one neuron most and least, and its relevance per class."""
    _draw_neuron(view, found, _choose_neuron(view, ranking))
    layout.computed(view, "A neuron's relevance per class is the mean over the training inputs of that class.")


def inspected(view: View, ranking: Ranking) -> int:
    """Return the selected neuron; the most important one where the layer has none selected."""
    chosen = selected().neuron
    return int(view.analysis.important[0]) if chosen is None or chosen >= len(ranking.values) else chosen


def _choose_neuron(view: View, ranking: Ranking) -> int:
    """Choose the neuron to inspect; the most important one where none is selected."""
    neuron, known = inspected(view, ranking), len(ranking.values)
    st.session_state["neuron-chosen"] = neuron
    places = ranking.places
    st.selectbox(
        "Neuron",
        ranking.order.tolist(),
        format_func=lambda number: f"neuron {number}, place {places[number] + 1} of {known}",
        key="neuron-chosen",
        width=260,
        on_change=lambda: select(neuron=st.session_state["neuron-chosen"]),
        help=f"Neuron to inspect on all pages, from 0 to {known - 1}. Default the most important one.",
    )
    return neuron


def draw_highest(view: View, neuron: int, *, explained: bool = False) -> None:
    """Show the tests that activate a neuron most; where they are `explained`, beside what in them activates it."""
    from idc_core.importance.ranking import extremes

    activations = _activations(view, neuron)
    most, _ = extremes(activations, _EXAMPLES)
    own = ""
    if view.position is not None:
        value = view.test_traces.activations[view.analysis.layer][view.position, neuron]
        own = f"; test {selected().input} activates it at {value:.2f}"
    name = layout.label(f"Neuron {neuron}, highest activation")
    st.markdown(f"{name}, from {activations.max():.2f} down{own}")
    tests = view.chosen[most]
    maps = layout.neuron_heatmaps(view, tests, neuron) if explained else None
    layout.gallery(view, tests, _EXAMPLES, maps, key="most-active")
    if maps is not None:
        layout.how_to_read(_ACTIVATES)


def _draw_lowest(view: View, neuron: int) -> None:
    """Show the tests that activate a neuron least."""
    from idc_core.importance.ranking import extremes

    activations = _activations(view, neuron)
    _, least = extremes(activations, _EXAMPLES)
    lowest = float(activations.min())
    tied = int((activations == lowest).sum())
    if tied == len(activations):
        st.markdown("Its activation is the same for every test.")
        return
    st.markdown(f"{layout.label('Lowest activation')}, from {lowest:.2f} up")
    layout.gallery(view, view.chosen[least], _EXAMPLES, key="least-active")
    if tied > _EXAMPLES:
        st.caption(
            f"{count(tied)} of {plural(len(activations), 'test')} have the activation {lowest:.2f}; the first "
            "are shown."
        )


def _activations(view: View, neuron: int) -> NDArray[np.floating]:
    """Return a neuron's activation by every chosen test."""
    activations: NDArray[np.floating] = view.test_traces.activations[view.analysis.layer][view.chosen, neuron]
    return activations


def _draw_neuron(view: View, found: Ranked, neuron: int) -> None:
    """Show which tests activate a neuron most and least, and its relevance per class."""
    _draw_classes(view, found, neuron)
    left, right = st.columns(2, gap="medium")
    with left:
        draw_highest(view, neuron, explained=True)
        st.button(
            f"Explain neuron {neuron} on the Relevance page",
            key="neuron-explained",
            type="tertiary",
            icon=":material/arrow_forward:",
            on_click=open_neuron,
            args=(neuron,),
            help="Open the Relevance page, which explains the neuron's activation layer by layer, by any method.",
        )
    with right:
        _draw_lowest(view, neuron)
    if neuron in view.analysis.important:
        draw_link("clusters", f"See the clusters of neuron {neuron}")
    else:
        st.caption(
            f"Only the {plural(view.analysis.m, 'important neuron')} are split into clusters; neuron {neuron} is not "
            "one of them. Increase m in the sidebar to include it."
        )


def _draw_classes(view: View, found: Ranked, neuron: int) -> None:
    """Show a neuron's relevance per class, or per range of the target."""
    values, labels = found.by_class[neuron], found.labels
    what = "class" if view.is_classifier else "target"
    title = layout.topic("Mean relevance of neuron {} by {}", neuron, what)
    comparable = view.is_comparable and view.is_classifier
    layout.chart(
        view,
        "classes-of-neuron",
        lambda dark: relevance_by_group(values, labels, title, f"true {what}", chosen=view.setup.classes, dark=dark),
        alt=title,
        read=f"Each bar is one true {what}. Height: the neuron's mean relevance for the prediction over its training "
        "inputs; red is evidence for the prediction, hatched blue against it."
        + (" Click a bar to show only that class's tests on all pages." if comparable else ""),
        depends=neuron,
        clicked=(lambda points: select(classes=[labels[told(points)]])) if comparable else None,
        table=pd.DataFrame(found.by_class, columns=list(labels)).rename_axis("neuron").reset_index(),
    )
