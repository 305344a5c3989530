"""Inspect one neuron: its card, its name, and the tests that activate it most and least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.errors import IdcError
from idc_core.store import notes
from studio.jobs.results import View
from studio.neurons.cards import draw_cards
from studio.shell.pages import draw_link, open_neuron
from studio.state import visitor
from studio.state.selection import Point, carried, select, selected
from studio.text import count, literal, plural
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.importance.ranking import Ranking

_ACTIVATES = "Relevance for the neuron's activation: red activates it, blue holds it down. By the epsilon rule."

_EXAMPLES = 4
"""Tests shown that activate a neuron most, and least."""


def told(points: Sequence[Point]) -> int:
    """Return the number that the first clicked mark carries."""
    return int(carried(points[0])[0])


def draw(view: View, ranking: Ranking) -> None:
    """Show the card of one neuron, and the tests that activate it most and least."""
    _draw_neuron(view, _choose_neuron(view, ranking))
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
        format_func=lambda number: f"{view.called(number)}, place {places[number] + 1} of {known}",
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


def _draw_neuron(view: View, neuron: int) -> None:
    """Show a neuron's card, and which tests activate it most and least."""
    left, right = st.columns([302, 500], gap="medium")
    with left:
        draw_cards(view, np.array([neuron]), "relevance", whole=False, key="card-of-neuron")
        _draw_name(view, neuron)
    with right:
        draw_highest(view, neuron, explained=True)
        _draw_lowest(view, neuron)
        st.button(
            f"Explain neuron {neuron} on the Relevance page",
            key="neuron-explained",
            type="tertiary",
            icon=":material/arrow_forward:",
            on_click=open_neuron,
            args=(neuron,),
            help="Open the Relevance page, which explains the neuron's activation layer by layer, by any method.",
        )
        if neuron in view.analysis.important:
            draw_link("clusters", f"See the clusters of neuron {neuron}")
        else:
            st.caption(
                f"Only the {plural(view.analysis.m, 'important neuron')} are split into clusters; neuron {neuron} is "
                "not one of them. Increase m in the sidebar to include it."
            )


def _draw_name(view: View, neuron: int) -> None:
    """Let a person name a neuron."""
    if visitor.uploads_refused():
        return
    key, setup = f"neuron-name-{neuron}", view.setup
    st.session_state[key] = view.names.get(neuron, "")

    def keep() -> None:
        place = {"model": setup.model, "layer": setup.layer, "neuron": str(neuron)}
        try:
            notes.write_name(
                st.session_state[key], f"neuron {neuron}", setup.line, place, visitor.owner(), visitor.person()
            )
        except IdcError as error:
            st.toast(literal(error))

    st.text_input(
        "Your name for it",
        key=key,
        max_chars=notes.LONGEST_NAME,
        on_change=keep,
        help="Kept with your notes and shown wherever the neuron is named. Default empty.",
    )
