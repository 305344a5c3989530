"""Opening pages, and what a person reads on them."""

import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.testing.v1 import AppTest

from idc_core import store
from studio.jobs.jobs import shelf
from studio.shell.pages import PAGES
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]

TABS = [(name, {"tab": tab} if tab else {}) for name, page in PAGES.items() for tab in ("", *list(page.tabs)[1:])]
"""Every tab of every page: the page's name, and what the address says; nothing for the first tab."""

RETRAINED = {"epochs": "1", "seeds": "2", "added": "2", "perturbed-by": "noise", "classes": "3,8"}
"""Settings of the Robustness page with which its chart is soon there."""


def open_page(name: str, **parameters: str | list[str]) -> AppTest:
    """Open a page through the front door, with an address's parameters."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for key, value in parameters.items():
        app.query_params[key] = value
    return app.switch_page(str(PAGES[name].file)).run()


def forget(kind: str, chosen: Callable[[Any], bool] = lambda key: True) -> int:
    """Let results of a kind be made again, in memory and on disk; return how many there were in memory."""
    jobs = shelf()._jobs[kind]
    gone = [key for key in jobs if chosen(key)]
    for key in gone:
        del jobs[key]
        store.place(kind, key).unlink(missing_ok=True)
    return len(gone)


def forget_all() -> None:
    """Let every result be made again, and be looked for where it is kept."""
    shelf.clear()
    st.cache_data.clear()
    shutil.rmtree(store.results_folder(), ignore_errors=True)


def until_drawn(app: AppTest) -> AppTest:
    """Start the retraining that the address sets, and run the page again, as a browser does, until a chart is drawn."""
    start = [button for button in app.button if button.key == "retraining-continue"]
    if start and "epochs" in app.query_params:
        start[0].click().run()
    return run_until(app, lambda app: bool(app.get("plotly_chart")) or is_trained(app), pause=0.2)


def run_until(app: AppTest, there: Callable[[AppTest], bool] | None = None, pause: float = 0.6) -> AppTest:
    """Run a page again, as a browser does, until something is there: by default whatever is being trained.

    The page's runs take from what trains beside them, so that there is a pause between them, in seconds.
    """
    looked = there or is_trained
    assert looked(app) or wait_until(lambda: looked(app.run()), pause)
    return app


def is_trained(app: AppTest) -> bool:
    """Whether a page trains nothing, or nothing any more."""
    return all(button.key != "retraining-stop" for button in app.button)


def read_page(name: str, **parameters: str) -> AppTest:
    """Return a page that is opened once for all tests that only read it; it cannot be run again."""
    return _read(name, tuple(parameters.items()), os.environ.get("IDC_DATA"))


@cache
def _read(name: str, parameters: tuple[tuple[str, str], ...], data: str | None) -> AppTest:
    app = until_drawn(open_page(name, **dict(parameters)))

    def refuse(*_, **__) -> None:
        raise AssertionError("other tests read this page too: open one of its own with open_page")

    app.run = refuse
    app._run = refuse
    return app


def charts(app: AppTest) -> list[dict]:
    """Plotly's figures, as they are sent to the browser."""
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def figure(app: AppTest, place: int = 0) -> dict:
    """One of Plotly's figures."""
    return charts(app)[place]


def text(app: AppTest) -> str:
    """Everything a person can read in the main area and the sidebar, charts, tables and controls aside."""
    kinds = (app.title, app.header, app.subheader, app.markdown, app.caption)
    kinds += (app.info, app.warning, app.success, app.error, app.metric)
    return "\n".join(str(element.value) for kind in kinds for element in kind)
