"""Layers: coverage of every layer, for several numbers of important neurons and several test sets."""

from functools import partial

import streamlit as st

from idc_core.errors import IdcError
from studio.layers import sweep_view
from studio.layers.layer_sweep import open_sweep
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.text import literal, plural

PAGE = PageEntry(
    "Layers",
    ":material/layers:",
    "Where in the network are the tests weak?",
    "Coverage of every layer, for several m and test sets. Click a square to open it.",
    place=90,
    tabs={"coverage": "Coverage of every layer", "network": "Drawing of the network"},
)

view = current_view()
finding = st.empty()
suites, ms = sweep_view.choose(view)
so_far = st.empty()
try:
    sweep = open_sweep(view, suites, ms, partial(sweep_view.draw_partly, so_far, view))
except IdcError as error:
    st.error(literal(error))
    st.stop()
so_far.empty()
finding.markdown(sweep_view.sentence(view, sweep))
if len(sweep.cells) < len(sweep.suites) * len(sweep.layers) * len(sweep.ms):
    done = plural(len({cell.layer for cell in sweep.cells}), "layer")
    st.caption(f"Finished before the stop: {done} of {len(sweep.layers)}.")
if sweep.cells:
    tabs.draw(
        "layers",
        {
            "coverage": partial(sweep_view.draw_coverage, view, sweep, suites),
            "network": partial(sweep_view.draw_network, view, sweep),
        },
    )
