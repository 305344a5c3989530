"""Where a unit leads: the pages that show more of it, and the setup with its layer."""

from __future__ import annotations

import streamlit as st

from studio.hypotheses.inspections import Measured
from studio.shell.pages import draw_link
from studio.state.selection import select, selected


def draw_links(measured: Measured, layer: str, unit: int) -> None:
    """Offer the pages that show more of the unit."""
    if layer != measured.view.setup.layer:
        st.button(
            f"Make {layer} the setup's layer",
            key="take-layer",
            on_click=_take,
            args=(layer, unit),
            help="All pages then show this layer, with this unit selected.",
        )
        return
    shown = {"neurons": f"Neuron {unit}"}
    if unit in measured.view.analysis.important:
        shown |= {"clusters": "Its clusters", "coverage": "Its cells"}
    with st.container(horizontal=True, width="content"):
        for page, label in shown.items():
            draw_link(page, label)
        if selected().input is not None:
            draw_link("relevance", f"Relevance of test {selected().input}")


def _take(layer: str, unit: int) -> None:
    select(layer=layer)
    select(neuron=unit)
