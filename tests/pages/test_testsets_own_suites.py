"""The Test sets page: a person's own suites, from files and from pages, and what other pages make of them."""

import numpy as np
import pytest

from idc_core.suites import SAVED, original, perturbed, save_suite, saved_suites, select_tests
from studio.jobs import suite_catalog
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT
from studio.state.setup import parse as parse_setup
from tests.pages.reading import text
from tests.pages.test_testsets_page import captions, table
from tests.suites.test_own import packed


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


def test_own_files_are_kept_and_join_the_suites(open_page, view):
    app = open_page("testsets", suites="noise", tab="own")
    inputs = 1 - view.test.inputs[:25]
    app.file_uploader(key="own-file").set_value(
        ("inverted.npz", packed(inputs=inputs, targets=view.test.targets[:25]), "application/zip")
    ).run()
    assert not app.exception
    assert [one.label for one in saved_suites(view.test).values()] == ["inverted"]
    (name,) = saved_suites(view.test)
    assert app.query_params["suites"] == f"noise,{name}"
    assert app.button(key=f"compare-{name}").disabled
    asked = {"suites": f"noise,{name}"}
    assert table(open_page("testsets", **asked)).loc["inverted", "inputs"] == "565"
    assert "This input was not made of one of these tests" in text(open_page("testsets", shown=name, **asked))
    app.button(key=f"remove-{name}").click().run()
    assert not saved_suites(view.test)
    assert list(table(open_page("testsets", **asked)).index) == ["Original tests", "Random noise"]


def test_files_that_do_not_fit_are_refused_with_a_reason(open_page, view):
    app = open_page("testsets", suites="noise", tab="own")
    app.file_uploader(key="own-file").set_value(("mine.npz", packed(x=np.zeros(3)), "application/zip")).run()
    assert not app.exception
    assert "mine.npz was not added. The file lacks inputs and targets" in text(app)
    assert app.query_params["suites"] == "noise"


def test_every_suite_is_kept_under_its_own_name(open_page, view):
    app = open_page("testsets", shown="guided")
    app.button(key="keep-adding").click().run()
    app.selectbox(key="shown").set_value("noise").run()
    app.button(key="keep-adding").click().run()
    assert not app.exception
    names = {one.label for one in saved_suites(view.test).values()}
    assert names == {"Relevance-guided noise, adding cells", "Random noise, adding cells"}
    app.text_input(key="keep-adding-name").set_value("Mine").run()
    app.button(key="keep-adding").click().run()
    assert "Mine" in [one.label for one in saved_suites(view.test).values()]


def test_a_saved_suite_can_be_the_tests_of_all_pages(open_page, view):
    name = save_suite("The first *forty*", select_tests(original(view.test), range(40))).stem
    app = open_page("testsets", tab="own")
    assert "1 saved suite can be compared with these tests." in text(app)
    app.button(key=f"open-{name}").click().run()
    assert not app.exception
    assert app.query_params["data"] == name
    assert "LeNet-5 · The first forty · layer fc2 · m = 6 · 40 tests" in text(app)
    assert "The first forty" in app.sidebar.selectbox(key="data").options
    assert name not in suite_catalog._catalogue(open_view(parse_setup({"data": name}))), (
        "it is not compared with itself"
    )
    grid = open_page("coverage", data=name)
    covered = len({tuple(cell) for cell in view.analysis.assignments[:40].tolist()})
    assert f"The tests cover {covered} of {view.table.total} combinations" in text(grid)
    layers = open_page("layers", suites=name)
    assert not layers.exception
    assert (
        "The first forty" in next(one for one in layers.multiselect if one.label == "Compare these tests with").options
    )
    SAVED.delete(name)
    app.run()
    assert not app.exception
    assert "LeNet-5 · digits · layer fc2 · m = 6 · 540 tests" in text(app)


def test_kept_attacks_of_another_page_keep_their_source(open_page, view):
    attacked = perturbed(select_tests(original(view.test), range(40)), "fgsm", view.model)
    name = save_suite("FGSM finds", attacked).stem
    app = open_page("testsets", suites=name)
    assert table(app).loc["FGSM finds", "inputs"] == "580"
    app = open_page("testsets", suites=name, tab="adding")
    assert "Its source is in cell" in text(app)
    assert "Difference, times " in captions(app)
