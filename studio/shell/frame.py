"""What all pages share: the front door draws the frame and the setup, then runs the page that was asked for."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path

# Read by OpenMP when torch is first imported: waiting threads must not spin beside other processes.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import streamlit as st
from streamlit.navigation.page import Page

from idc_core.analysis.overview import Overview
from idc_core.errors import CancelledError, IdcError
from idc_core.files import cache_folder
from studio.engine import jobs
from studio.engine.overview import snapshot
from studio.engine.results import View, open_view, warm
from studio.shell import own_setup, pins, tour
from studio.shell.pages import PAGES, asked_page, navigation
from studio.state import address
from studio.state.selection import Selection
from studio.state.setup import DEFAULT, Setup, choose, setup_line, untouched
from studio.text import literal, plural
from studio.widgets.charts import follow_theme

ASSETS = Path(__file__).parents[2] / "assets"
LAST_GOOD = "last-good-setup"
TRIED = "front-door-tried"

# Of the thread that runs the script: nothing of it stays in the session.
_opened: ContextVar[View | Overview | None] = ContextVar("opened")


def run() -> None:
    """Draw heading, sidebar and setup, then run the page; its script is loaded only then, when these are painted."""
    entry, script = navigation()
    st.session_state.pop(TRIED, None)
    # A picture of our own: a Material symbol in the browser's tab would be fetched from the network.
    st.set_page_config(page_title=f"{entry.title} - IDC Studio", page_icon=ASSETS / "icon.png", layout="wide")
    for held in (*vars(DEFAULT), *vars(Selection()), pins.PIN, tour.STEP):
        # On every page, also one that shows none of it: the next page's address is empty.
        address.read(held)
    if asked := asked_page():
        st.switch_page(PAGES[asked].file)
    try:
        cache_folder()
    except IdcError as error:
        st.error(literal(error))
        st.stop()
    st.html(ASSETS / "styles" / "studio.css")
    st.logo(ASSETS / "logo.svg", size="large")
    line = st.empty()
    st.title(entry.question, anchor=False)
    follow_theme()
    own_setup.follow()
    guide = tour.begin(entry.name)
    if entry.setup == "none":
        _run(script, None)
    elif entry.setup == "snapshot" and (kept := _instant()) is not None:
        line.caption(default_line(kept))
        tour.guide(guide, entry.name, kept)
        _run(script, kept)
        # What the sidebar lists takes a second to load; the page has not waited for it.
        _draw_sidebar(choose())
        warm(DEFAULT)
    else:
        view = _open_setup()
        line.caption(view.line)
        _note(view)
        tour.guide(guide, entry.name, view)
        _run(script, view)


def _run(script: Page, shown: View | Overview | None) -> None:
    token = _opened.set(shown)
    try:
        script.run()
    finally:
        _opened.reset(token)


def enter() -> View | Overview | None:
    """Begin a page's script: return the results that the front door opened for it, None for a page without a setup.

    As long as no page has gone through the front door, Streamlit opens the files of a folder named ``pages``
    directly. The script then begins anew behind the door.
    """
    try:
        return _opened.get()
    except LookupError:
        navigation()
    if TRIED in st.session_state:
        st.error("This page is part of IDC Studio: start it with `streamlit run app.py`.")
        st.stop()
    st.session_state[TRIED] = True
    st.rerun()


def current_result() -> View | Overview:
    """Begin the script of a page that shows the setup's results: return them, or those made beforehand."""
    result = enter()
    if result is None:
        raise TypeError("A page that shows results of the setup must not be registered with setup='none'.")
    return result


def current_view() -> View:
    """Begin the script of a page that shows the setup's results: return them."""
    view = current_result()
    if not isinstance(view, View):
        raise TypeError("A page registered with setup='snapshot' reads its results by current_result().")
    return view


def default_line(result: Overview) -> str:
    """Write the default setup's line without loading the registry of networks."""
    return f"{setup_line('LeNet-5', DEFAULT, len(result.important))} · {plural(result.tests, 'test')}"


def _instant() -> Overview | None:
    """Return what the Overview shows before anything is loaded; None unless all is as the studio opens."""
    return snapshot() if untouched() and pins.pinned() is None else None


def _open_setup() -> View:
    """Draw the sidebar and return what to show; where that fails, say why and return the last good result."""
    setup = choose()
    _draw_sidebar(setup)
    stopped = st.session_state[jobs.HALTED] = st.session_state.pop(jobs.STOPPED, False)
    if stopped:
        st.info("Stopped. Finished results are kept. Start again, or change the setup.")
        st.button("Start again", on_click=jobs.go_on)
    try:
        view = open_view(setup)
    except CancelledError:
        return _last_good(setup)
    except IdcError as error:
        st.error(literal(error))
        return _last_good(setup)
    st.session_state[LAST_GOOD] = setup
    return view


def _draw_sidebar(setup: Setup) -> None:
    pins.draw_sidebar(setup)
    tour.draw_sidebar()


def _last_good(failed: Setup) -> View:
    """Return the last result of this session, or end the page."""
    setup = st.session_state.get(LAST_GOOD)
    if setup is None or setup == failed:
        st.stop()
    st.caption("The last successful result is shown; the line above the heading names its setup.")
    try:
        return open_view(setup)
    except IdcError:
        st.stop()


def _note(view: View) -> None:
    """Say what is unusual about a setup."""
    for remark in getattr(view.model, "remarks", ()):
        st.caption(remark)
    if view.analysis.m < view.setup.m:
        st.caption(f"Layer {view.setup.layer} has {plural(view.analysis.m, 'neuron')}: all are used.")
    if view.is_classifier and not view.is_comparable:
        st.caption(
            f"The network predicts classes of {view.train.name}, the tests are {view.test.name}. "
            "Accuracy is not defined for these tests; coverage is."
        )
    if not len(view.chosen):
        st.warning("No test has the chosen classes. Choose other classes in the sidebar.")
        st.stop()
