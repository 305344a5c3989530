"""The filter of the tests, in the sidebar: which of them all pages look at."""

from __future__ import annotations

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_popover_container import PopoverContainer

from idc_core.analysis.filtering import ALL_CONFIDENCES
from studio.jobs.results import View
from studio.state import address
from studio.state.selection import change_setup, select, selected
from studio.state.setup import ANSWERS, FILTER, WITHOUT, Setup, take
from studio.text import cell_name, count, literal, plural
from studio.widgets.headlines import counted, lead

_KEY = "test-filter"
Places = tuple[PopoverContainer, DeltaGenerator]
"""The button's controls, and what is shown below it."""

_CLICKED = "test-filter-clicked"
"""In the session: the true classes before a click, and those that it chose."""

_MOST_CELLS = 200
"""Cells that are offered, those with most tests first."""


def is_open() -> bool:
    """Whether the filter's controls are shown."""
    return bool(st.session_state.get(_KEY))


def draw(place: DeltaGenerator) -> Places:
    """Draw the button of the filter at a place; return the places of what needs the setup's results."""
    with place:
        return st.popover("Filter tests", key=_KEY, width="stretch", on_change="rerun"), st.container()


def fill(places: Places, view: View) -> None:
    """Draw the controls behind the button, and how many tests pass where not all do."""
    controls, below = places
    if controls.open:
        with controls:
            _draw_controls(view, view.setup)
    if view.setup.filter_words:
        with below.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            st.caption(f"{count(len(view.chosen))} of {plural(len(view.test), 'test')}")
            draw_clear("filter-clear")


def draw_clear(key: str) -> None:
    """Draw the button that lets all tests pass again."""
    st.button(
        "Clear filter",
        key=key,
        type="tertiary",
        help="Look at all tests again.",
        on_click=change_setup,
        kwargs=dict.fromkeys(FILTER, ""),
    )


def choose_class(name: str) -> None:
    """Let only tests of one true class pass, by a click outside the filter's controls; for callbacks."""
    st.session_state[_CLICKED] = address.read("classes"), name
    select(classes=[name])


def tell_click(setup: Setup) -> None:
    """Say which filter a click has set, for as long as it is set, and offer to undo it."""
    before, chosen = st.session_state.get(_CLICKED, ("", ""))
    if setup.classes != (chosen,):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.markdown(f"Filter on all pages: tests of class {literal(chosen)}.", width="content")
        st.button("Undo", key="filter-undo", type="tertiary", on_click=select, kwargs={"classes": before})


def tell_suspects(view: View) -> None:
    """Say where suspects are left out of what all pages show, and offer to include them again."""
    if not view.setup.without:
        return
    number = len(view.judged) - len(view.chosen)
    kinds = ", ".join(WITHOUT[name] for name in view.setup.without)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.markdown(
            lead(counted("Left out of all findings", number, len(view.judged), "test"), f"Suspects: {kinds}."),
            width="content",
            help="Only misclassified tests are suspects, so accuracy without them is an upper bound.",
        )
        st.button(
            "Include them",
            key="suspects-back",
            type="tertiary",
            on_click=change_setup,
            kwargs={"without": ""},
            help="Recompute all findings with these tests.",
        )


def _draw_controls(view: View, setup: Setup) -> None:
    """Draw one control per condition that applies to the setup, in two columns: a popover is cut off at the fold."""
    if view.is_classifier:
        left, right = st.columns(2)
        with left:
            _draw_classes("classes", "True class", view.test.class_names, setup.classes)
            _draw_confidence(setup)
        with right:
            _draw_classes("predicted", "Predicted class", view.train.class_names, setup.predicted)
            if view.correct is not None:
                _draw_answers(setup)
    cells = _cells(view, setup)
    st.session_state["within"] = setup.within
    st.selectbox(
        "Cell",
        list(cells),
        format_func=cells.__getitem__,
        key="within",
        on_change=take,
        args=("within",),
        help=f"Look at the tests of one covered cell; offered are the {_MOST_CELLS} with most tests. Default all.",
    )
    only = " Other test sets are filtered by true class alone." if view.is_classifier else ""
    st.caption(f"All pages follow; neurons and clusters stay the same.{only}")


def _draw_classes(name: str, label: str, known: tuple[str, ...], chosen: tuple[str, ...]) -> None:
    st.session_state[name] = list(chosen)
    st.multiselect(
        label,
        known,
        key=name,
        on_change=take,
        args=(name,),
        placeholder="All classes",
        help=f"Look at tests of these {label.lower()}es alone. Default all.",
    )


def _draw_confidence(setup: Setup) -> None:
    st.session_state["confidence"] = setup.conditions.confidence
    st.slider(
        "Confidence",
        *ALL_CONFIDENCES,
        key="confidence",
        on_change=_take_confidence,
        help="Softmax probability of the predicted class, from 0 to 1, both ends included. Default 0 to 1.",
    )


def _draw_answers(setup: Setup) -> None:
    st.session_state["answers"] = setup.answers
    st.segmented_control(
        "Prediction",
        list(ANSWERS),
        format_func={"": "All", "right": "Correct", "wrong": "Misclassified"}.__getitem__,
        key="answers",
        required=True,
        on_change=take,
        args=("answers",),
        help="Look at correctly classified or misclassified tests alone. Default all.",
    )


def _take_confidence() -> None:
    """Keep the range of confidence; all of it is written as nothing."""
    low, high = st.session_state["confidence"]
    change_setup(confidence="" if (low, high) == ALL_CONFIDENCES else f"{low:g}to{high:g}")


def _cells(view: View, setup: Setup) -> dict[str, str]:
    """Return the cells that are offered, with their numbers of tests: the present and the selected one, the fullest."""
    cells, sizes = np.unique(view.analysis.assignments, axis=0, return_counts=True)
    tests = {cell_name(cells[i]): int(sizes[i]) for i in np.argsort(-sizes, kind="stable")}
    offered = dict.fromkeys((setup.within, selected().cell, *list(tests)[:_MOST_CELLS]))
    return {"": "All cells"} | {name: f"{name} ({plural(tests.get(name, 0), 'test')})" for name in offered if name}
