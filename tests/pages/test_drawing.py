"""Figures as they are handed to the browser: the same picture, written so that its second rendering changes nothing."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from idc_core.figures.drawn import drawn_once
from idc_core.figures.palette import palette
from idc_core.figures.style import finish
from tests.pages.reading import charts, read_page


def figure(values: np.ndarray) -> go.Figure:
    drawn = go.Figure()
    drawn.add_bar(x=["a", "b", "c"], y=values, customdata=np.arange(3), marker={"color": values})
    drawn.add_heatmap(z=np.eye(3, dtype=np.float32), x=np.arange(3), y=np.arange(3))
    drawn.update_xaxes(tickvals=np.arange(3))
    return finish(drawn, "A finding", palette(False), height=200)


VALUES = np.array([0.1, -2.0, np.nan])


def test_numbers_are_lists_and_nothing_else_changes():
    given = figure(VALUES)
    before = given.to_json()
    found = json.loads(drawn_once(given).to_json())
    assert given.to_json() == before
    bar, picture = found["data"]
    assert bar["y"] == [0.1, -2.0, None]
    assert bar["marker"]["color"] == [0.1, -2.0, None]
    assert bar["customdata"] == [0, 1, 2]
    assert picture["x"] == [0, 1, 2]
    assert found["layout"]["xaxis"]["tickvals"] == [0, 1, 2]
    assert picture["z"] == json.loads(before)["data"][1]["z"]
    layout = json.loads(before)["layout"]
    assert {name: found["layout"][name] for name in layout if name not in ("template", "xaxis")} == {
        name: value for name, value in layout.items() if name not in ("template", "xaxis")
    }


def test_no_template_is_sent():
    assert "template" not in json.loads(drawn_once(figure(VALUES)).to_json())["layout"]


def test_same_figure_has_the_same_revision_and_another_one_does_not():
    first = drawn_once(figure(VALUES)).layout.datarevision
    assert first == drawn_once(figure(VALUES.copy())).layout.datarevision
    assert first != drawn_once(figure(VALUES + 1)).layout.datarevision


@pytest.mark.parametrize(
    ("own", "drag", "click"),
    [(None, "pan", "event+select"), ("zoom", "zoom", "event+select"), ("lasso", "lasso", "event")],
)
def test_what_clicks_need_is_set_already(own, drag, click):
    given = figure(VALUES).update_layout(dragmode=own)
    layout = drawn_once(given, clickable=True).layout
    assert (layout.dragmode, layout.clickmode, layout.hovermode) == (drag, click, "closest")
    assert drawn_once(given).layout.clickmode is None


def test_pages_send_figures_so():
    sent = charts(read_page("layers"))
    assert sent
    revisions = [chart["layout"]["datarevision"] for chart in sent]
    assert len(set(revisions)) == len(sent)
    assert all("template" not in chart["layout"] for chart in sent)
