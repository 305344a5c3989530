"""The test that all tabs show: chosen by its number or by stepping; and the tests to step through, side by side."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from studio.jobs.results import PICKS, View, heatmaps, pick
from studio.jobs.wording import input_parts, is_series, tests_name
from studio.state import address
from studio.state.choices import choose_one
from studio.state.selection import select
from studio.text import literal
from studio.widgets import layout
from studio.widgets.stepping import draw_steps

_SHOWN = 20
_WAYS = {**PICKS, "first": "all tests", "missed": "largest errors"}


def _orders(view: View) -> dict[str, NDArray[np.int64]]:
    """Return the tests to step through, by a key of `_WAYS`."""
    ways = ["first", "misclassified", "uncertain"] if view.is_classifier else ["first"]
    tests_by_way = {way: pick(view, way) for way in ways if way != "misclassified" or view.correct is not None}
    if not view.is_classifier:
        missed = np.abs(view.test.targets - view.analysis.confidence)[view.chosen]
        tests_by_way["missed"] = view.chosen[np.argsort(-missed, kind="stable")]
    return {way: tests for way, tests in tests_by_way.items() if len(tests)}


def choose_test(view: View) -> tuple[int, str, NDArray[np.int64]]:
    """Choose a test by its number, by stepping, or by the address.

    Return its position, and which tests to step through, with their positions.
    """
    offered, ids = _orders(view), view.test.ids
    # The second one tells most: errors, where there are any.
    telling = list(offered)[1]
    default = int(offered[telling][0])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = choose_one(
            st.segmented_control,
            "Step through",
            {way: _WAYS[way] for way in offered},
            telling,
            "step",
            required=True,
            help=f"Tests that Previous, Next and the gallery of all tests go through. Default {_WAYS[telling]}.",
        )
        order = offered[how]
        typed = st.session_state["test-number"] = address.read("input")
        st.text_input(
            "Test",
            key="test-number",
            on_change=lambda: select(input=st.session_state["test-number"]),
            placeholder=str(ids[default]),
            width=120,
            help=f"Number of the test in its test set, from {ids.min()} to {ids.max()}. Default: the first one to step "
            "through.",
        )
        position = default if view.position is None else view.position
        draw_steps(ids[order], int(ids[position]))
    if typed and view.position is None:
        st.warning(
            f"{literal(repr(typed))} is no test of {tests_name(view.test)}. Expected a number from {ids.min()} to "
            f"{ids.max()}; shown is test {ids[position]}."
        )
    return position, _WAYS[how], order


def draw(view: View, which: str, order: NDArray[np.int64]) -> None:
    """Show the tests to step through, each with its heatmap."""
    st.markdown(layout.lead(layout.counted(which.capitalize(), len(order), len(view.chosen), "test")))
    layout.gallery(view, order, _SHOWN, heatmaps(view, order[:_SHOWN], None) if len(order) else None)
    layout.how_to_read(
        "Each test is shown with its relevance for (red) and against (blue) the predicted class, by the epsilon rule. "
        "Every heatmap has its own colour range."
        if view.has_pictures
        else "Lines are the channels; the ground is each step's relevance for (red) and against (blue) the prediction."
        if is_series(view.test)
        else f"{input_parts(view.test).capitalize()} with strong relevance for the prediction are bold on red, against "
        "it italic on blue."
    )
    layout.computed(view)
