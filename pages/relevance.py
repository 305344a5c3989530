"""Relevance: one test's heatmaps for any class and method, layer by layer, methods compared, and all tests."""

from functools import partial

import streamlit as st

from studio.relevance import all_tests, compared_methods, edited_input, one_test
from studio.relevance.all_tests import choose_test
from studio.relevance.findings import opening
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry

PAGE = PageEntry(
    "Relevance",
    ":material/visibility:",
    "Which part of the input decided?",
    "Heatmaps of one test for any class and method, and relevance layer by layer.",
    place=50,
    tabs={
        "test": "One test",
        "layers": "Layer by layer",
        "methods": "Compare methods",
        "edit": "Change it",
        "tests": "All tests",
    },
    controls={"methods": "methods"},
)

view = current_view()
finding = st.container()
position, which, order = choose_test(view)
finding.markdown(f"**{opening(view, position)}.**")
tabs.draw(
    "relevance",
    {
        "test": partial(one_test.draw, view, position),
        "layers": partial(one_test.draw_layers, view, position),
        "methods": partial(compared_methods.draw, view, position),
        "edit": partial(edited_input.draw, view, position),
        "tests": partial(all_tests.draw, view, which, order),
    },
)
