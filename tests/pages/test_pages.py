"""Every page opens on a finished result and survives whatever its address says."""

import html
import itertools
import json
import re
import shutil
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from idc_core.figures.wording import typeset
from studio.jobs.jobs import STOPPED, shelf
from studio.jobs.overview import OVERVIEWS, snapshot, summarise
from studio.jobs.results import open_view
from studio.shell.pages import PAGES
from studio.state.setup import DEFAULT
from tests.pages.reading import ROOT, TABS, charts, forget, read_page

WITH_SETUP = [one for one in TABS if PAGES[one[0]].setup != "none"]
OF_CELLS = ("overview", "clusters", "coverage", "layers", "testsets")
EXPLORE = ("neurons", "clusters", "coverage")


@pytest.fixture(scope="module")
def default_view():
    return open_view(DEFAULT)


def words(app) -> str:
    """Everything a person can read in the main area, charts aside."""
    kinds = (app.markdown, app.caption, app.title, app.header, app.subheader, app.info, app.warning, app.error)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


@pytest.mark.parametrize(("name", "tab"), WITH_SETUP, ids=str)
def test_opens_on_a_finished_result(name, tab):
    app = read_page(name, **tab)
    assert not app.exception
    assert not app.error
    assert app.title[0].value == PAGES[name].question
    assert "LeNet-5 · digits · layer fc2 · m = 6 · 540 tests" in words(app)
    read = "\n".join([words(app), *(chart["layout"]["title"]["text"] for chart in charts(app))])
    assert typeset(read) == read, "a negative number is written with a hyphen"
    assert not re.search(r"(?<![\w.,`-])\d{5,}(?![\w.`-])", read), "thousands have commas"
    assert not re.search(r"\b1 (cells|tests|neurons|inputs|classes|pairs|records)\b", read), "one, they"


# Elsewhere fewer or more neurons are a shorter or longer list; all tabs of a page open with the same setup.
MOSTLY_OF_CELLS = [
    pytest.param(name, tab, marks=([], pytest.mark.slow, pytest.mark.rare)[(name not in OF_CELLS) + bool(tab)])
    for name, tab in WITH_SETUP
]
# What a setup falls back to is the same on all of them.
FEW_OF_CELLS = [pytest.param(*one.values, marks=pytest.mark.rare if one.marks else ()) for one in MOSTLY_OF_CELLS]


@pytest.mark.rare  # every page is opened by tests of its own too
def test_front_door_leads_to_every_page():
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).run()
    assert not app.exception
    for name, page in PAGES.items():
        app.switch_page(page.file).run()
        assert not app.exception, name
        assert app.title[0].value == page.question


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "tab"), FEW_OF_CELLS, ids=str)
def test_wrong_address_falls_back_to_the_default_setup(open_page, name, tab):
    app = open_page(
        name,
        model="nonsense",
        data="nonsense",
        layer="nonsense",
        m="99",
        classes="nonsense",
        cell="9-9",
        colour="nonsense",
        rows="77",
        tests="nonsense",
        explain="nonsense",
        neuron="x",
        cluster="y",
        **tab,
    )
    assert not app.exception
    assert "LeNet-5 · digits · layer fc2 · m = 6 · 540 tests" in words(app)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "tab"), MOSTLY_OF_CELLS, ids=str)
def test_smallest_m(open_page, name, tab):
    app = open_page(name, m="1", **tab)
    assert not app.exception
    assert "m = 1 ·" in words(app)


@pytest.mark.parametrize(("name", "tab"), MOSTLY_OF_CELLS, ids=str)
def test_largest_m_and_a_filter_that_leaves_few_tests(open_page, name, tab):
    app = open_page(name, m="12", classes=["3", "5"], confidence="0to0.99", **tab)
    assert not app.exception
    assert "m = 12 ·" in words(app)
    assert "tests of class 3, 5, with confidence 0 to 0.99" in words(app)
    assert "540 tests" not in app.caption[0].value


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "tab"), MOSTLY_OF_CELLS, ids=str)
def test_layer_with_fewer_neurons_than_m(open_page, name, tab):
    app = open_page(name, model="LeNet-1 on digits", layer="conv1", **tab)
    assert not app.exception
    assert "Layer conv1 has 4 neurons: all are used." in words(app)
    assert "LeNet-1 · digits · layer conv1 · m = 4 · 540 tests" in words(app)


def test_sidebar_changes_what_a_page_shows(open_page):
    app = open_page("coverage")
    before = words(app)
    app.slider(key="m").set_value(3).run()
    assert not app.exception
    assert "m = 3 ·" in words(app)
    assert words(app) != before
    app.selectbox(key="layer").select("fc1").run()
    assert not app.exception
    assert "layer fc1 · m = 3" in words(app)


def test_a_data_set_that_is_not_there_leaves_a_sentence_and_the_last_good_result(open_page, monkeypatch, tmp_path):
    app = open_page("coverage")
    # Neither a data folder, nor a cache, nor a network: every proxy points nowhere.
    monkeypatch.delenv("IDC_DATA", raising=False)
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    app.selectbox(key="data").select("fashion-mnist").run()
    assert not app.exception
    assert len(app.error) == 1
    assert "fashion-mnist" in app.error[0].value.lower()
    assert "Traceback" not in app.error[0].value
    assert "LeNet-5 · digits · layer fc2 · m = 6 · 540 tests" in words(app)


def test_cell_in_the_address_is_opened(open_page):
    app = open_page("coverage", m="2", cell="0-0")
    assert not app.exception
    assert app.header[0].value == "Cell 0-0"


def test_uncovered_cell_names_its_nearest_covered_cells(open_page, default_view):
    covered = {tuple(cell) for cell in default_view.table.cells.tolist()}
    empty = next(cell for cell in itertools.product(*map(range, default_view.sizes)) if cell not in covered)
    app = open_page("coverage", cell="-".join(map(str, empty)))
    assert not app.exception
    assert "No test reaches this cell." in words(app)
    (nearest,) = (table.value for table in app.dataframe if "steps away" in table.value.columns)
    for cell, steps in zip(nearest["cell"], nearest["steps away"], strict=True):
        indices = tuple(map(int, cell.split("-")))
        assert indices in covered
        assert steps == sum(abs(a - b) for a, b in zip(indices, empty, strict=True)) > 0


def test_cell_that_does_not_fit_gets_a_sentence(open_page):
    app = open_page("coverage", m="2", cell="7-7-7")
    assert not app.exception
    assert "is no cell of this grid. Expected 2 numbers" in app.warning[0].value
    assert app.header[0].value.startswith("Cell ")


def test_pages_of_shipped_setups_alone_take_their_findings_from_the_files(default_view, overviews):
    change(overviews, lambda kept: kept["overview"].update(tests=7))
    assert summarise(default_view).tests == 7
    assert summarise(replace(default_view, setup=replace(default_view.setup, classes=("3",)))).tests != 7


def test_an_overview_of_other_weights_is_not_shown(overviews):
    assert snapshot(DEFAULT).line == "LeNet-5 · digits · layer fc2 · m = 6 · 540 tests"
    assert snapshot(replace(DEFAULT, m=5)) is None
    change(overviews, lambda kept: kept["overview"]["fingerprints"].__setitem__(0, "0" * 16))
    assert snapshot(DEFAULT) is None


@pytest.fixture
def overviews(monkeypatch, tmp_path):
    """A copy of the default setup's files, in place of those of the project."""
    shutil.copytree(OVERVIEWS / DEFAULT.model, tmp_path / DEFAULT.model)
    monkeypatch.setattr("studio.jobs.overview.OVERVIEWS", tmp_path)
    return tmp_path


def change(overviews, how):
    file = overviews / DEFAULT.model / "result.json"
    kept = json.loads(file.read_text(encoding="utf-8"))
    how(kept)
    file.write_text(json.dumps(kept), encoding="utf-8")


# A slide's sentence takes the place of its chart's title.
@pytest.mark.parametrize(("name", "tab"), [one for one in TABS if one[0] != "stories"], ids=str)
def test_what_is_drawn_as_a_title_is_the_headline_of_the_chart(name, tab):
    """Its source is looked at by `tests/test_headlines.py`."""
    for chart in read_page(name, **tab).get("plotly_chart"):
        drawn = html.unescape(json.loads(chart.proto.spec)["layout"]["title"]["text"].replace("<br>", " "))
        assert drawn
        assert typeset(chart.proto.alt).startswith(drawn)


def test_charts_have_titles_and_name_their_axes():
    for name, tab in TABS:
        if name not in EXPLORE:
            continue
        app = read_page(name, **tab)
        for chart in charts(app):
            layout = chart["layout"]
            assert len(layout["title"]["text"]) > 20
            for axis in ("xaxis", "yaxis"):
                titles = [layout[key].get("title", {}).get("text") for key in layout if key.startswith(axis)]
                assert any(titles), f"{name}: no {axis} of {layout['title']['text']!r} has a title"
        for chart in app.get("plotly_chart"):
            assert chart.proto.alt


def test_stopping_leaves_a_sentence_and_a_way_on(open_page):
    app = open_page("coverage")
    forget("analysis", lambda key: 4 in key)
    app.session_state[STOPPED] = True
    app.slider(key="m").set_value(4).run()
    assert not app.exception
    assert "Stopped." in app.info[0].value
    assert "m = 6 ·" in words(app), "the last good result stays"
    next(button for button in app.button if button.label == "Start again").click().run()
    assert not app.info
    assert "m = 4 ·" in words(app)


def test_what_was_stopped_is_not_begun_by_the_next_page(open_page):
    app = open_page("coverage")
    forget("analysis", lambda key: 4 in key)
    app.session_state[STOPPED] = True
    app.slider(key="m").set_value(4).run()
    app.switch_page(str(PAGES["clusters"].file)).run()
    assert "Stopped." in app.info[0].value
    assert not [key for key in shelf()._jobs["analysis"] if 4 in key]
    app.slider(key="m").set_value(6).run()
    assert not app.info, "another setup is another matter"
