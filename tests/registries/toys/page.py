"""A page of one's own in one file: what the studio knows of it, and what it draws."""

import streamlit as st

from studio.jobs.jobs import JobKind, Waiting
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.state.choices import choose_one

PAGE = PageEntry(
    "Toy",
    ":material/toys:",
    "How many tests are there?",
    "The number of tests.",
    tabs={"once": "Once", "often": "Several times"},
    controls={"toy-times": "often"},
    selects=("toy-times",),
)

_COUNTS = JobKind("toy-counts", is_long=True)

view = current_view()
tests = len(view.chosen)


def draw_once() -> None:
    """Show the number of the tests."""
    st.metric("Tests", tests)


def draw_often() -> None:
    """Show several times the number of the tests."""
    times = choose_one(st.selectbox, "Times", {2: "twice", 3: "three times"}, 2, "toy-times")
    count = Waiting(1).get(_COUNTS, (tests, times), "counting the tests", lambda report: times * tests)
    st.metric("Counted", count)


tabs.draw("toy", {"once": draw_once, "often": draw_often})
