"""Relevance: one test's heatmaps for any class and method, layer by layer, methods compared, and all tests."""

from functools import partial

import streamlit as st

from studio.relevance import all_tests, compared_methods, edited_input, one_test
from studio.relevance.findings import draw_way_back, opening
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry

PAGE = PageEntry(
    "Relevance",
    ":material/visibility:",
    "Which part of the input decided?",
    "Heatmaps of one test for any class and method, and relevance layer by layer.",
    place=30,
    tabs={
        "test": "One test",
        "layers": "Layer by layer",
        "methods": "Compare methods",
        "edit": "Change it",
        "tests": "All tests",
    },
    controls={"methods": "methods"},
)

_view = current_view()
_finding = st.container()
_position, _which, _order = all_tests.choose_test(_view)
with _finding:
    draw_way_back(_view, _position)
_finding.markdown(f"{opening(_view, _position)}.")
tabs.draw(
    "relevance",
    {
        "test": partial(one_test.draw, _view, _position),
        "layers": partial(one_test.draw_layers, _view, _position),
        "methods": partial(compared_methods.draw, _view, _position),
        "edit": partial(edited_input.draw, _view, _position),
        "tests": partial(all_tests.draw, _view, _which, _order),
    },
)
