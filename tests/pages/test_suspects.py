"""Suspects left out: every finding of every page is recomputed without them, which is said, with the way back."""

import numpy as np
import pytest

from idc_core.analysis.filtering import SUSPECTS
from idc_core.analysis.mistakes import mistakes_of
from studio.jobs.overview import summarise
from studio.jobs.results import open_view
from studio.shell.pages import PAGES
from studio.state.setup import DEFAULT, parse
from studio.text import percent
from tests.pages.reading import open_page, text


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture(scope="module")
def mistakes(view):
    return mistakes_of(view.test_traces.scores, view.train, view.test)


@pytest.fixture(scope="module")
def kinds(mistakes):
    """Kinds of suspects that there are, as the address names them."""
    found = [reason.name.lower() for reason in SUSPECTS if len(mistakes.of(reason))]
    assert len(found) > 1
    return found


def test_one_switch_recomputes_every_finding_and_is_taken_back(view, mistakes, kinds):
    out = np.concatenate([mistakes.of(reason) for reason in SUSPECTS])
    left = np.setdiff1d(np.arange(len(view.test)), out)
    app = open_page("coverage", tab="mistakes")
    listed = next(frame.value for frame in app.dataframe if "most likely" in frame.value.columns)
    app.button_group(key="without").set_value(kinds).run()
    assert not app.exception
    assert "".join(app.query_params["without"]) == ",".join(kinds)
    assert f"{len(left)} tests without suspects (" in app.main.caption[0].value
    again = next(frame.value for frame in app.dataframe if "most likely" in frame.value.columns)
    assert again["test"].tolist() == listed["test"].tolist()
    assert again["test"][again["left out"] == "yes"].tolist() == sorted(view.test.ids[out].tolist())
    assert f"Without the {len(out)} tests: accuracy {percent(view.correct[left].mean())}" in text(app)
    # A change of page empties the address.
    for name in ("overview", "classes", "coverage"):
        app.query_params.clear()
        app.switch_page(PAGES[name].file).run()
        assert not app.exception
        assert f"**Left out of all findings: {len(out)} of 540 tests (" in text(app)
    app.button(key="suspects-back").click().run()
    assert "without" not in app.query_params
    assert "Left out of all findings" not in text(app)
    assert "540 tests" in app.main.caption[0].value


def test_a_link_shows_the_findings_of_the_rest(view, mistakes, kinds):
    out = np.concatenate([mistakes.of(reason) for reason in SUSPECTS])
    left = np.setdiff1d(np.arange(len(view.test)), out)
    app = open_page("overview", without=",".join(kinds))
    numbers = {metric.label: metric.value for metric in app.metric}
    assert numbers["Accuracy"] == percent(view.correct[left].mean())
    assert numbers["IDC"] == percent(len(np.unique(view.analysis.codes[left])) / view.table.total)
    shown, whole = (summarise(open_view(parse(said))) for said in ({"without": ",".join(kinds)}, {}))
    assert shown.tests == len(left)
    assert shown.training is not None
    before, after = ({one.subject: one for one in result.findings} for result in (whole, shown))
    assert set(before) == set(after)
    assert after["recall"].number > before["recall"].number or after["recall"].claim != before["recall"].claim
    grid = open_page("coverage", without=",".join(kinds))
    assert percent(shown.table.covered / shown.table.total) in text(grid)


def test_what_has_no_classes_has_no_suspects_to_leave_out(small_data):
    app = open_page("coverage", model="dave2-udacity", without="label")
    assert not app.exception
    assert [one.value for one in app.warning] == [
        "No suspects \u201clabel\u201d can be left out. Shown instead: all tests."
    ]
