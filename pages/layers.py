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
    place=70,
    tabs={"coverage": "Coverage of every layer", "network": "Drawing of the network"},
)

_view = current_view()
_finding = st.empty()
_suites, _ms = sweep_view.choose(_view)
_so_far = st.empty()
try:
    _sweep = open_sweep(_view, _suites, _ms, partial(sweep_view.draw_partly, _so_far, _view))
except IdcError as error:
    st.error(literal(error))
    st.stop()
_so_far.empty()
_finding.markdown(sweep_view.sentence(_view, _sweep))
if len(_sweep.cells) < len(_sweep.suites) * len(_sweep.layers) * len(_sweep.ms):
    _done = plural(len({cell.layer for cell in _sweep.cells}), "layer")
    st.caption(f"Finished before the stop: {_done} of {len(_sweep.layers)}.")
if _sweep.cells:
    tabs.draw(
        "layers",
        {
            "coverage": partial(sweep_view.draw_coverage, _view, _sweep, _suites),
            "network": partial(sweep_view.draw_network, _view, _sweep),
        },
    )
