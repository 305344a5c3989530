"""The filter of the tests: set in the sidebar, followed by every page, and left again."""

import numpy as np
from streamlit.testing.v1 import AppTest

from studio.jobs.results import open_view
from studio.shell import test_filter
from studio.shell.pages import PAGES
from studio.state.setup import parse
from studio.text import cell_name
from tests.pages.reading import ROOT, text


def with_controls(**parameters: str) -> AppTest:
    """Open a page whose filter's button was clicked."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in parameters.items():
        app.query_params[name] = value
    app.session_state[test_filter._KEY] = True
    return app.switch_page(str(PAGES["coverage"].file)).run()


def test_conditions_are_set_in_the_sidebar_and_cleared():
    view = open_view(parse({}))
    wrong = np.flatnonzero(~view.correct)
    low = np.flatnonzero(~view.correct & (view.analysis.confidence <= 0.9))
    app = with_controls()
    app.segmented_control(key="answers").set_value("wrong").run()
    assert app.query_params["answers"] == "wrong"
    assert f"{len(wrong)} tests misclassified" in app.main.caption[0].value
    app.slider(key="confidence").set_value((0.0, 0.9)).run()
    assert app.query_params["confidence"] == "0to0.9"
    assert f"{len(low)} tests misclassified, with confidence 0 to 0.9" in app.main.caption[0].value
    assert f"{len(low)} of 540 tests" in [caption.value for caption in app.sidebar.caption]
    cell = cell_name(view.analysis.assignments[low[0]])
    app.selectbox(key="within").select(cell).run()
    assert app.main.caption[0].value.endswith(f"in cell {cell}")
    app.button(key="filter-clear").click().run()
    assert "540 tests" in app.main.caption[0].value
    assert not set(parse({}).texts) & set(app.query_params)


def test_a_filter_that_no_test_passes_is_a_sentence_with_a_way_back(open_page):
    app = open_page("relevance", classes="3", within="7-7")
    assert not app.exception
    assert [one.value for one in app.warning] == ["None of the 540 tests is of class 3, in cell 7-7."]
    app.button(key="filter-way-back").click().run()
    assert not app.exception
    assert not app.warning
    assert "540 tests" in app.main.caption[0].value


def test_a_cell_is_of_its_layer_alone():
    cell = cell_name(open_view(parse({})).analysis.assignments[0])
    app = with_controls(within=cell)
    app.selectbox(key="layer").select("fc1").run()
    assert "within" not in app.query_params
    assert [one.value for one in app.toast] == [
        f"No longer selected: the filter by cell {cell}. It belongs to the former layer."
    ]


def test_what_does_not_apply_is_not_offered(small_data):
    app = with_controls(model="Dave-2 on Udacity", answers="wrong", confidence="0to0.5")
    assert not app.exception
    assert [one.key for one in app.multiselect if one.key in ("classes", "predicted")] == []
    assert "answers" not in app.query_params
    assert "confidence" not in app.query_params
    assert app.selectbox(key="within").value == ""
    assert "misclassified" not in text(app)


def test_a_filter_that_a_click_has_set_is_said_and_undone(open_page):
    app = open_page("coverage", classes="3")
    assert "Filter on all pages" not in text(app), "an address is no click"
    app.session_state[test_filter._CLICKED] = "3,5", "3"
    app.run()
    assert "Filter on all pages: tests of class 3." in text(app)
    app.button(key="filter-undo").click().run()
    assert "".join(app.query_params["classes"]) == "3,5"
    assert "Filter on all pages" not in text(app)
