"""The frame of every page: configuration, heading, bench, and what to show where something goes wrong."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# Read by OpenMP when torch is first imported: waiting threads must not spin beside other processes.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.analysis.overview import Overview
from idc_core.errors import CancelledError, IdcError
from studio.engine import jobs
from studio.engine.results import View, open_view
from studio.shell import address, pins, theme, tour
from studio.shell.bench import DEFAULT, Bench, bench_line, choose
from studio.shell.pages import FRONT_DOOR, PAGES, navigation
from studio.shell.selection import Selection
from studio.widgets.text import plural

ASSETS = Path(__file__).parents[2] / "assets"
LAST_GOOD = "last-good-bench"
TRIED = "front-door-tried"


@dataclass(frozen=True)
class Frame:
    """A page that has begun.

    Attributes
    ----------
    name : str
        The page's name in the registry.
    line : DeltaGenerator
        The place of the bench line, above the heading.
    guide : DeltaGenerator
        The place of the guided tour, below the heading.
    """

    name: str
    line: DeltaGenerator
    guide: DeltaGenerator


def frame(name: str) -> Frame:
    """Begin a page: configuration, styles, and its question as the heading.

    Parameters
    ----------
    name : str
        The page's name in the registry.

    Returns
    -------
    Frame
    """
    page = PAGES[name]
    # A picture of our own: a Material symbol in the browser's tab would be fetched from the network.
    st.set_page_config(page_title=f"{page.title} - IDC Studio", page_icon=ASSETS / "icon.png", layout="wide")
    if not st.session_state.pop(FRONT_DOOR, False):
        _go_through_the_front_door()
    for held in (*vars(DEFAULT), *vars(Selection()), pins.PIN, tour.STEP):
        # On every page, also one that shows none of it: the next page's address is empty.
        address.read(held)
    st.html(ASSETS / "styles" / "studio.css")
    st.logo(ASSETS / "logo.svg", size="large")
    line = st.empty()
    st.title(page.question, anchor=False)
    theme.follow()
    return Frame(name, line, tour.begin(name))


def _go_through_the_front_door() -> None:
    """Begin a page anew that Streamlit opened without the front door: its widgets would lose their addresses.

    As long as no page has gone through the door, Streamlit opens the files of a folder named ``pages`` directly.
    """
    navigation()
    if TRIED not in st.session_state:
        st.session_state[TRIED] = True
        st.rerun()


def open_bench(page: Frame) -> View:
    """Draw the sidebar and return what to show; where that fails, say why and show the last good result.

    Parameters
    ----------
    page : Frame
        The page.
    """
    bench = choose()
    pins.draw_sidebar(bench)
    tour.draw_sidebar()
    stopped = st.session_state[jobs.HALTED] = st.session_state.pop(jobs.STOPPED, False)
    if stopped:
        st.info("Stopped. Nothing was lost: start again, or choose something else.")
        st.button("Start again", on_click=jobs.go_on)
    try:
        view = open_view(bench)
        st.session_state[LAST_GOOD] = bench
    except CancelledError:
        view = _last_good(bench)
    except IdcError as error:
        st.error(str(error))
        view = _last_good(bench)
    page.line.caption(view.line)
    notes(view)
    tour.guide(page.guide, page.name, view)
    return view


def _last_good(failed: Bench) -> View:
    """Return the last result of this session, or end the page."""
    bench = st.session_state.get(LAST_GOOD)
    if bench is None or bench == failed:
        st.stop()
    st.caption("Below is the last result that worked; it is named in the line above the heading.")
    try:
        return open_view(bench)
    except IdcError:
        st.stop()


def default_line(result: Overview) -> str:
    """Write the default bench's line without loading the registry of networks."""
    return f"{bench_line('LeNet-5', DEFAULT, len(result.important))} · {plural(result.tests, 'test')}"


def notes(view: View) -> None:
    """Say what is unusual about a bench."""
    if view.analysis.m < view.bench.m:
        st.caption(f"Layer {view.bench.layer} has {plural(view.analysis.m, 'neuron')}: all of them are used.")
    if view.is_classifier and not view.is_comparable:
        st.caption(
            f"The network answers with the classes of {view.train.name}, the tests are {view.test.name}: "
            "right and wrong have no meaning here, coverage has."
        )
    if not len(view.chosen):
        st.warning("No test has the chosen classes. Choose others in the sidebar.")
        st.stop()
