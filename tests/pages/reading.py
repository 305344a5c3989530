"""Opening pages, and what a person reads on them."""

import json
import os
import time
from functools import cache
from pathlib import Path

from streamlit.testing.v1 import AppTest

from studio.shell.pages import PAGES

ROOT = Path(__file__).parents[2]


def open_page(name: str, **parameters: str | list[str]) -> AppTest:
    """Open a page through the front door, with an address's parameters."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for key, value in parameters.items():
        app.query_params[key] = value
    return app.switch_page(str(PAGES[name].file)).run()


def until_drawn(app: AppTest) -> AppTest:
    """Run a page again, as a browser does, until what is retrained in the background has something to show."""
    end = time.monotonic() + 120
    while not app.get("plotly_chart") and any(button.key == "retraining-stop" for button in app.button):
        assert time.monotonic() < end
        time.sleep(0.2)
        app.run()
    return app


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
