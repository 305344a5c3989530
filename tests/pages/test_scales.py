"""Axes whose scale can be switched between linear and logarithmic; the address keeps the choice."""

import numpy as np
import pytest

from tests.pages.reading import charts, open_page, read_page

SWITCHED = [
    ("coverage", "growth", "growth", "xaxis", "log"),
    ("criteria", "growth", "criteria-growth", "xaxis", "log"),
    ("criteria", "prioritisation", "mistakes", "xaxis", "log"),
    ("clusters", "histograms", "histograms", "yaxis", "log"),
]


@pytest.mark.parametrize(("page", "tab", "chart", "axis", "other"), SWITCHED)
def test_a_scale_is_switched_by_the_address(page, tab, chart, axis, other):
    default = {"log": "linear", "linear": "log"}[other]
    before = charts(read_page(page, tab=tab))[0]["layout"][axis]
    after = charts(read_page(page, tab=tab, **{f"{chart}-scale": other}))[0]["layout"][axis]
    assert (before.get("type", "linear"), after.get("type", "linear")) == (default, other)


def test_a_scale_is_switched_by_its_control():
    app = open_page("clusters")
    app.segmented_control(key="histograms-scale").set_value("log").run()
    assert not app.exception
    assert app.query_params["histograms-scale"] == "log"
    app.segmented_control(key="histograms-scale").set_value("linear").run()
    figure = charts(app)[0]
    top = figure["layout"]["yaxis"]["range"][1]
    bars = [trace["y"] for trace in figure["data"] if trace["type"] == "bar"]
    assert max(value for bar in bars for value in bar if value is not None) < top
    diamonds = [trace["y"] for trace in figure["data"] if trace.get("marker", {}).get("symbol") == "diamond"]
    assert np.all(np.concatenate(diamonds) < top)
