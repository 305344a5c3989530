"""Coverage, Fill the grid: inputs for all empty cells, how they are judged, a person's decisions, and stopping."""

from functools import partial

import numpy as np
import pytest

from idc_core.coverage.cells import encode
from idc_core.coverage.reach import CellState
from idc_core.filling import FillSettings
from idc_core.suites import open_saved, saved_suites
from studio.coverage import filling as page
from studio.jobs.jobs import STOPPED, shelf
from studio.jobs.overview import summarise
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT
from studio.text import cell_name
from tests.pages.reading import forget_all

HEADING = "Inputs for all empty cells"
FEW = partial(FillSettings, changed=60, starts=2, iterations=5, kept=2)


@pytest.fixture(autouse=True, scope="module")
def few(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "FillSettings", FEW)
        patch.setenv("IDC_HOME", str(tmp_path_factory.mktemp("home")))
        forget_all()
        yield
    forget_all()


def text(app) -> str:
    return "\n".join(element.value for kind in (app.markdown, app.caption, app.warning) for element in kind)


def opened(open_page):
    """The page with inputs for all empty cells, whether they were made before or not."""
    app = open_page("coverage", tab="fill")
    for button in [one for one in app.button if one.key == "fill-all-start"]:
        button.click().run()
    assert not app.exception
    return app


def found():
    view = open_view(DEFAULT)
    plan = page._planned(view)
    return view, shelf().finished(page._FILLINGS, plan.key).result()


def test_stopped_it_offers_to_go_on_and_is_there_without_a_click_once_made(open_page, monkeypatch):
    monkeypatch.setattr(page, "FillSettings", partial(FEW, seed=1))
    app = open_page("coverage", tab="fill")
    assert HEADING not in [header.value for header in app.header]
    app.session_state[STOPPED] = True
    app.button(key="fill-all-start").click().run()
    assert not app.exception
    assert "Stopped: nothing was tried to its end." in text(app)
    app.button(key="fill-all-resume").click().run()
    assert not app.exception
    assert "Reached by valid generated inputs" in text(app)
    app = open_page("coverage", tab="fill")
    assert HEADING in [header.value for header in app.header]
    monkeypatch.setattr(page, "FillSettings", partial(FEW, seed=2))
    app.run()
    assert HEADING not in [header.value for header in app.header]


def test_the_page_says_what_was_reached_beside_what_is_accepted_of_bad_inputs(open_page):
    app = opened(open_page)
    view, filling = found()
    valid, reached = filling.reached_validly.sum(), filling.reached.sum()
    empty = view.table.total - view.table.covered
    assert f"**Reached by valid generated inputs: {valid} of {empty} empty cells" in text(app)
    assert f"reach {reached - valid} more; nothing within the budget reaches {empty - reached}." in text(app)
    assert "of known-bad inputs" in next(one.value for one in app.markdown if "accepted as valid" in one.value)
    table = next(frame.value for frame in app.dataframe if "reached by" in frame.value.columns)
    assert (table["reached by"] == "valid input").sum() == valid
    assert (table["reached by"] == "nothing yet").sum() == empty - reached
    cells = table["cell"][table["reached by"] == "valid input"]
    listed = {cell_name(cell) for cell in filling.cells[filling.reached_validly].tolist()}
    assert set(cells) == listed
    judged = next(frame.value for frame in app.dataframe if "accepted by" in frame.value.columns)
    assert judged["accepted by"][0] == filling.validity.detector
    assert {"noise", "shuffled pixels"} < set(judged.columns)


def test_a_person_accepts_rejects_and_relabels(open_page):
    app = opened(open_page)
    _, filling = found()
    order = page.made_inputs._order(filling)
    first, second, third = (int(row) for row in order[:3])
    app.button(key="made-reject").click().run()
    app.button(key="made-accept").click().run()
    other = (int(filling.targets[third]) + 1) % 10
    app.selectbox(key=f"made-class-{third}").set_value(other).run()
    app.button(key="made-relabel").click().run()
    assert not app.exception
    assert "2 accepted, 1 rejected" in text(app)
    app.button(key="keep-filled").click().run()
    (saved,) = saved_suites().values()
    suite = open_saved(saved.name)
    inputs = suite.take(np.arange(len(suite)))

    def places(row):
        return np.flatnonzero((inputs == filling.inputs[row]).all((1, 2, 3)))

    assert not len(places(first))
    assert len(places(second)) == 1
    assert suite.targets[places(third)].tolist() == [other]
    expected = set(np.flatnonzero(filling.usable).tolist()) - {first} | {second, third}
    assert len(suite) == len(expected)
    app.button(key="made-back").click().run()
    assert f"Input 3 of {len(filling)}, accepted as {other}." in text(app)


def test_the_grid_marks_cells_that_valid_inputs_reach(open_page):
    open_page("coverage", tab="fill", **{"fill-all": "1"})
    view, filling = found()
    known = summarise(view).reach()
    generated = np.setdiff1d(filling.valid_codes, encode(known.cells, view.sizes))
    assert len(generated)
    app = open_page("coverage", tab="grid")
    assert not app.exception
    assert CellState.GENERATED in str([chart.proto.spec for chart in app.get("echarts_chart")])
    reach = known if page.generated(view) is None else summarise(view).reach(page.generated(view))
    assert reach.states.count(CellState.GENERATED) == len(generated)
