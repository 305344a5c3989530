"""The Coverage page in a browser: looking into a tile and back, by mouse and keyboard, and what can be taken away."""

import re
from collections import Counter

import pytest

from idc_core.coverage.work_list import RankedBy, work_list
from idc_core.figures.grid import lay_out
from idc_core.store.decisions import Decisions, decide
from studio.coverage.decisions import _grid
from studio.jobs.overview import summarise
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT, parse
from studio.text import cell_name
from tests.browser.test_studio import place_of_tile
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def huge():
    return open_view(parse({"m": "12", "k": "4"}))


def click_tile(visitor, view, grid, tile):
    """Click a tile where the figure says that it is drawn."""
    visitor.page.mouse.click(*place_of_tile(visitor, view, grid, *divmod(tile, len(grid.column_cells))))
    visitor.page.wait_for_timeout(300)
    visitor.settle()


@pytest.mark.slow
def test_a_click_looks_into_a_tile_and_a_copied_address_shows_the_same(visitor, stranger, huge):
    table, names = huge.table, [str(neuron) for neuron in huge.analysis.important]
    cell = table.cells[table.counts.argmax()].tolist()
    row = table.counts.argmax()
    visitor.open("coverage?m=12&k=4&pictures=off")
    whole = lay_out(table, names)
    click_tile(visitor, huge, whole, int(whole.tile[row]))
    held = zip(huge.analysis.important[:6], cell[:6], strict=True)
    expect(visitor.page).to_have_url(re.compile("zoom=fc2~" + "~".join(f"{n}-{c}" for n, c in held) + "(&|$)"))
    part = lay_out(table, names, fixed=dict(enumerate(cell[:6])))
    click_tile(visitor, huge, part, int(part.tile[row]))
    heading = f"Cell {cell_name(cell)}"
    expect(visitor.page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(visitor.page).to_have_url(re.compile(f"cell={cell_name(cell)}"))
    stranger.page.goto(visitor.page.url)
    expect(stranger.page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(stranger.page.get_by_text("(4,096 cells)")).to_be_visible()
    visitor.page.get_by_role("button", name="All 16.8 M cells").click()
    visitor.settle()
    assert "zoom=" not in visitor.page.url
    assert visitor.faults() == []


def listeners(page):
    """Count what listens to keys, clicks and the pointer in the whole document."""
    session = page.context.new_cdp_session(page)
    document = session.send("Runtime.evaluate", {"expression": "document"})["result"]["objectId"]
    found = session.send("DOMDebugger.getEventListeners", {"objectId": document})["listeners"]
    session.detach()
    return Counter(one["type"] for one in found if one["type"] in {"keydown", "click", "mousemove"})


@pytest.mark.slow
def test_a_neuron_is_held_and_let_go_with_the_keyboard(visitor):
    view = open_view(DEFAULT)
    visitor.open("coverage")
    page = visitor.page
    before = listeners(page)
    assert before.keys() >= {"keydown", "click"}
    page.get_by_role("button", name="Settings").focus()
    page.keyboard.press("Enter")
    menu = page.get_by_role("combobox", name=view.neurons[0].capitalize())
    menu.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option")).to_have_count(1 + view.sizes[0])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"zoom=fc2~{view.analysis.important[0]}-"))
    visitor.settle()
    page.get_by_role("button", name=f"All {view.table.total} cells").focus()
    page.keyboard.press("Enter")
    visitor.settle()
    assert "zoom=" not in page.url
    # One often the page was drawn anew.
    assert listeners(page) == before
    assert visitor.faults() == []


@pytest.mark.slow
def test_decisions_on_empty_cells_are_made_by_buttons_and_keys_and_found_by_another_visit(visitor, stranger):
    first = listed_cells()
    visitor.open("coverage?tab=fill")
    page = visitor.page
    try:
        page.get_by_role("button", name="Later").click()
        expect(page).to_have_url(re.compile(f"cell={first[1]}(&|$)"))
        expect(page.get_by_text("Decision: undecided.")).to_be_visible()
        page.keyboard.press("b")
        expect(page).to_have_url(re.compile(f"cell={first[0]}(&|$)"))
        expect(page.get_by_text("Decision: later.")).to_be_visible()
        stranger.open(f"coverage?tab=fill&cell={first[0]}&gaps-decided=later")
        expect(stranger.page.get_by_text("Decision: later.")).to_be_visible()
    finally:
        decide(_grid(open_view(DEFAULT)), Decisions())
    visitor.page.reload()
    expect(page.get_by_text("Decision: undecided.")).to_be_visible()


def listed_cells():
    """The first two empty cells of the list."""
    view = open_view(DEFAULT)
    found = work_list(view.table, summarise(view).reach())
    return [cell_name(cell) for cell in found.cells[found.ranked(RankedBy.REACH)[:2]].tolist()]
