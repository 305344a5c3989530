"""Coverage, Fill the grid: inputs for all empty cells, how they are judged, and stopping."""

from functools import partial

import numpy as np
import pytest

from idc_core.coverage.cells import encode
from idc_core.coverage.reach import CellState
from studio.coverage import filling as page
from studio.jobs.jobs import STOPPED, shelf
from studio.jobs.overview import summarise
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT
from studio.text import cell_name
from tests.pages.conftest import FEW

pytestmark = pytest.mark.usefixtures("few")


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
    assert "Reached by valid generated inputs" not in text(app)
    app.session_state[STOPPED] = True
    app.button(key="fill-all-start").click().run()
    assert not app.exception
    assert "Stopped: nothing was tried to its end." in text(app)
    app.button(key="fill-all-resume").click().run()
    assert not app.exception
    assert "Reached by valid generated inputs" in text(app)
    app = open_page("coverage", tab="fill")
    assert "Reached by valid generated inputs" in text(app)
    monkeypatch.setattr(page, "FillSettings", partial(FEW, seed=2))
    app.run()
    assert "Reached by valid generated inputs" not in text(app)


def test_the_page_says_what_was_reached_beside_what_is_accepted_of_bad_inputs(open_page):
    app = opened(open_page)
    view, filling = found()
    valid, reached = filling.reached_validly.sum(), filling.reached.sum()
    empty = view.table.total - view.table.covered
    assert f"**Reached by valid generated inputs: {valid} of {empty} empty cells" in text(app)
    assert f"reach {reached - valid} more; nothing within the budget reaches {empty - reached}." in text(app)
    assert "of known-bad inputs" in next(one.value for one in app.markdown if "accepted as valid" in one.value)
    table = next(frame.value for frame in app.dataframe if "reached by" in frame.value.columns)
    made = {cell_name(cell): len(rows) for cell, rows in filling.by_cell.items()}
    assert {
        cell: number for cell, number in zip(table["empty cell"], table["inputs made"], strict=True) if number
    } == made
    listed = {cell_name(cell) for cell in filling.cells[filling.reached_validly].tolist()}
    assert set(table["empty cell"][table["p"] > 0.05]) == listed
    assert listed - set(table["empty cell"][table["reached by"] == "valid inputs"]) == set(
        table["empty cell"][(table["training inputs"] > 0) & (table["p"] > 0.05)]
    )
    judged = next(frame.value for frame in app.dataframe if "accepted by" in frame.value.columns)
    assert judged["accepted by"][0] == filling.validity.detector
    assert {"noise", "shuffled pixels"} < set(judged.columns)


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
