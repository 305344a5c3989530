"""Tests that are selected together on one chart are marked in all charts of tests."""

import json

import numpy as np
import pytest

from studio.jobs.results import open_view
from studio.state import selection
from studio.state.setup import DEFAULT
from studio.text import cell_name
from tests.pages.reading import charts, open_page, read_page


@pytest.fixture(scope="module", name="view")
def default_view():
    return open_view(DEFAULT)


def marked(app) -> list[dict]:
    """What is drawn of the tests that are selected together."""
    return [trace for chart in charts(app) for trace in chart["data"] if trace.get("legendgroup") == "together"]


def with_tests(name: str, view, positions: list[int], **parameters: str):
    """Open a page on which tests were drawn around."""
    app = open_page(name, **parameters)
    app.session_state[selection._AROUND] = ("digits", view.test.ids[positions].tolist())
    app.session_state[selection._LAST] = "tests"
    return app.run()


def test_tests_drawn_around_are_ringed_in_the_map_and_the_panels(view):
    (rings,) = marked(with_tests("clusters", view, [3, 5, 8], tab="map"))
    assert rings["name"] == "selected tests (3)"
    panels = marked(with_tests("neurons", view, [3, 5, 8], tab="agreement"))
    assert len(panels) == view.analysis.m
    for rank, panel in enumerate(panels):
        np.testing.assert_allclose(panel["x"], view.analysis.test_activations[[3, 5, 8], rank], rtol=1e-6)
        np.testing.assert_allclose(panel["y"], view.analysis.test_relevance[[3, 5, 8], rank], rtol=1e-6)


def test_tests_drawn_around_frame_their_tiles_and_are_cleared(view):
    app = with_tests("coverage", view, [3, 5, 8])
    wanted = {cell_name(cell) for cell in view.analysis.assignments[[3, 5, 8]]}

    def framed() -> set[str]:
        series = json.loads(app.get("echarts_chart")[0].proto.spec)["series"]
        data = [one["value"] for each in series if each["name"] == "together" for one in each["data"]]
        return {f"{row}-{column}" for column, row, _ in data}

    assert framed() == wanted
    app.button(key="clear-tests").click().run()
    assert framed() == set()


def test_the_tests_of_a_cell_are_outlined_in_every_histogram(view):
    cell = view.table.cells[int(np.argmax(view.table.counts))]
    panels = marked(read_page("clusters", cell=cell_name(cell)))
    assert [panel["name"] for panel in panels] == [f"selected tests ({view.table.counts.max()})"] * view.analysis.m
    for panel in panels:
        assert sum(share for share in panel["y"] if share is not None) == pytest.approx(100)


def test_what_was_selected_last_is_marked(view, monkeypatch):
    cell, neuron = cell_name(view.table.cells[0]), int(view.analysis.important[1])
    app = open_page("clusters", cell=cell)
    app.session_state[selection._LAST] = "cluster"
    app.query_params["neuron"], app.query_params["cluster"] = str(neuron), "0"
    app.run()
    inside = int((view.analysis.assignments[:, 1] == 0).sum())
    assert {panel["name"] for panel in marked(app)} == {f"selected tests ({inside})"}


def test_a_click_on_one_mark_selects_its_test_and_marks_of_no_test_nothing(monkeypatch):
    kept: dict = {}
    monkeypatch.setattr(selection.st, "session_state", kept)
    monkeypatch.setattr(selection.address, "keep", lambda name, value: kept.update({name: value}))
    selection.select_tests("digits", [{"x": 1.0}])
    assert kept == {}
    selection.select_tests("digits", [{"customdata": [17]}, {"customdata": 17}])
    assert selection.drawn_around("digits") == [17]
    assert kept["input"] == "17"
    assert selection.drawn_around("mnist") == []


@pytest.mark.parametrize(("page", "tab"), [("clusters", "map"), ("neurons", "agreement"), ("classes", "pair")])
def test_pictures_of_the_tests_of_all_marks_are_at_hand(view, page, tab):
    app = read_page(page, tab=tab)
    (sent,) = [json.loads(one.proto.json) for one in app.get("bidi_component") if '"tests": [' in one.proto.json]
    chart = next(chart for chart in charts(app) if "customdata" in chart["data"][0])
    numbers = {number for trace in chart["data"] if trace.get("mode") == "markers" for number in trace["customdata"]}
    assert set(sent["tests"]) == numbers <= set(view.test.ids.tolist())
    assert sent["sheet"]["address"].endswith(".webp"), "fetched when it is needed, not sent with the page"
