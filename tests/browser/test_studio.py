"""What only a browser shows: clicks, addresses, downloads, and a console without errors."""

import re
from dataclasses import replace

import numpy as np
import pytest

from idc_core.figures.coverage import coverage_grid
from idc_core.figures.grid import lay_out
from studio.coverage.cell_details import SHOWN
from studio.jobs.overview import summarise
from studio.jobs.results import open_view
from studio.shell.pages import PAGES
from studio.state.setup import DEFAULT
from studio.text import cell_name
from studio.widgets import grid_axes
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


def empty_cell(view):
    """Return the first cell without tests."""
    covered = set(map(tuple, view.table.cells.tolist()))
    return next(cell for cell in np.ndindex(*view.sizes) if cell not in covered)


def place_of_tile(visitor, view, grid, row, column):
    """Return where on the screen the figure says that a tile is drawn."""
    option = coverage_grid(grid, view.table, "covered", grid_axes.finding(view, grid), reach=summarise(view).reach())
    place = option["grid"]
    chart = visitor.page.get_by_test_id("stEChartsChart").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    wide = (box["width"] - place["left"] - place["right"]) / len(grid.column_cells)
    high = (box["height"] - place["top"] - place["bottom"]) / len(grid.row_cells)
    return box["x"] + place["left"] + (column + 0.5) * wide, box["y"] + place["top"] + (row + 0.5) * high


def place_of(visitor, view, cell):
    """Return where on the screen a cell of the default grid is."""
    grid = lay_out(view.table, [str(neuron) for neuron in view.analysis.important])
    row, column = grid.place(cell)
    return place_of_tile(visitor, view, grid, grid.row_labels.index(row), grid.column_labels.index(column))


def click_cell(visitor, view, cell):
    """Click a cell of the default grid."""
    visitor.page.mouse.click(*place_of(visitor, view, cell))
    visitor.page.wait_for_timeout(300)
    visitor.settle()


@pytest.mark.slow
def test_the_first_address_a_server_is_asked_for_is_a_whole_page(visitor, fresh_address):
    # Only then has no page gone through the front door. The page has a component of its own, and computes little.
    visitor = visitor._replace(address=fresh_address)
    visitor.open("learn?tab=relevance")
    assert visitor.page.get_by_test_id("stSidebarNavLink").count() == len(PAGES)
    visitor.page.get_by_role("slider", name="weight from a1 to b1", exact=True).focus()
    visitor.page.keyboard.press("ArrowUp")
    expect(visitor.page).to_have_url(re.compile("line=a1-b1"))


# What each page shows is looked at where it is opened by its address.
def test_the_finding_points_to_its_page_and_the_navigation_leads_to_pages(visitor):
    visitor.open("?m=12")  # where something stands out
    visitor.page.get_by_test_id("stPageLink").first.locator("a").first.click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(PAGES["coverage"].question)
    for name in ("learn", "relevance", "criteria"):
        visitor.follow(name, whole=False)
        expect(visitor.page).to_have_title(re.compile(re.escape(PAGES[name].title)))
        assert visitor.page.get_by_test_id("stException").count() == 0
    visitor.settle()
    assert visitor.page.get_by_test_id("stException").count() == 0
    assert visitor.errors == []


def test_a_click_opens_a_cell(visitor, view):
    cells = {tuple(cell): int(count) for cell, count in zip(view.table.cells.tolist(), view.table.counts, strict=True)}
    page = visitor.page
    visitor.open("coverage")
    for cell in (max(cells, key=lambda one: cells[one]), empty_cell(view)):
        click_cell(visitor, view, cell)
        expect(page.get_by_role("heading", name=f"Cell {cell_name(cell)}", exact=True)).to_be_visible()
        if cell in cells:
            assert f"{cells[cell]} tests, " in visitor.text()
            expect(page.locator(".gallery").first.get_by_role("button")).to_have_count(min(SHOWN, cells[cell]))
        else:
            assert "No test reaches this cell." in visitor.text()
        expect(page).to_have_url(re.compile(f"cell={cell_name(cell)}"))


@pytest.mark.slow
def test_a_grid_drawn_anew_between_press_and_release_is_clicked(visitor, view, browser):
    cell = empty_cell(view)
    page = browser.new_page(viewport={"width": 1440, "height": 1200})  # what is added at its start, it keeps
    visitor = visitor._replace(page=page)
    page.add_init_script(
        "const draw = requestAnimationFrame; requestAnimationFrame = then => draw(() => setTimeout(then, window.late))"
    )
    visitor.open("coverage")
    page.evaluate("window.late = 200")
    page.mouse.move(*place_of(visitor, view, cell))
    page.mouse.down()
    page.wait_for_timeout(600)  # the tile under the pointer is lifted
    page.mouse.up()
    expect(page.get_by_role("heading", name=f"Cell {cell_name(cell)}", exact=True)).to_be_visible()
    page.close()


@pytest.mark.slow
def test_an_address_reopens_the_view(visitor, view):
    cell = cell_name(view.table.cells[-1])
    visitor.open(f"coverage?cell={cell}&colour=how+often&classes=3&classes=5")
    assert "tests of class 3, 5" in visitor.setup()
    expect(visitor.page.get_by_role("heading", name=f"Cell {cell}", exact=True)).to_be_visible()
    visitor.page.reload()
    visitor.settle()
    assert "tests of class 3, 5" in visitor.setup()
    expect(visitor.page.get_by_role("heading", name=f"Cell {cell}", exact=True)).to_be_visible()


@pytest.mark.rare
def test_what_an_address_chose_survives_a_change_of_page(visitor):
    visitor.open("clusters?m=3&layer=fc1")
    assert "layer fc1 · m = 3" in visitor.setup()
    for name in ("coverage", "overview", "learn", "clusters"):
        visitor.follow(name)
        assert name == "learn" or "layer fc1 · m = 3" in visitor.setup(), name


@pytest.mark.rare
def test_moving_m_changes_the_result_and_the_address(visitor):
    visitor.open("coverage")
    before = visitor.text()
    visitor.page.get_by_role("slider").focus()
    visitor.page.keyboard.press("ArrowLeft")
    expect(visitor.page.get_by_text("m = 5 ·").first).to_be_visible()
    visitor.settle()
    expect(visitor.page).to_have_url(re.compile("m=5"))
    assert visitor.text() != before


# Whether the setup's line says that the former one is still shown; its layer, the number in the finding and in the
# grid's title, where they are seen at once; and whether the finding is dimmed; in every picture drawn.
WATCH = """() => {
    const seen = window.seen = new Set();
    const text = found => found?.checkVisibility({opacityProperty: true}) ? found.innerText ?? found.textContent : '';
    const look = () => {
        const main = document.querySelector('[data-testid="stMain"]');
        const line = text(main.querySelector('[data-testid="stCaptionContainer"]'));
        const finding = main.querySelector('[data-testid="stMarkdown"]:has(strong)');
        const parts = [
            line.match(/layer (\\w+)/),
            text(finding).match(/of (\\d+) combinations/),
            text(main.querySelector('[data-testid="stEChartsChart"] svg')).match(/of (\\d+) cells/),
        ].map(part => part ? part[1] : '');
        const stale = finding?.closest('[data-stale="true"]');
        const dimmed = stale && parseFloat(getComputedStyle(stale).opacity) < 0.5 ? 'dimmed' : '';
        seen.add([line.startsWith('Still shown: ') ? 'former' : '', ...parts, dimmed].join());
        requestAnimationFrame(look);
    };
    look();
}"""


def test_numbers_of_two_setups_are_never_seen_together(visitor, view):
    visitor.open("coverage")
    visitor.page.evaluate(WATCH)
    visitor.page.get_by_role("combobox", name="Layer", exact=True).click()
    visitor.page.get_by_role("option", name="conv2", exact=True).click()
    expect(visitor.page.get_by_text("· layer conv2 ·").first).to_be_visible()
    visitor.settle()
    seen = [one.split(",") for one in visitor.page.evaluate("() => [...window.seen]")]
    before, after = str(view.table.total), str(open_view(replace(DEFAULT, layer="conv2")).table.total)
    assert ["", "conv2", after, after, ""] in seen
    for label, layer, found, drawn, _ in seen:
        # The former numbers stay while the new ones are on their way, with a line that says whose they are.
        assert (label, layer) in {("", ""), ("", "fc2"), ("former", "fc2"), ("", "conv2")}
        of = {"conv2": {"", after}, "fc2": {"", before}}.get(layer, {"", found, drawn})
        assert {found, drawn} <= of
        assert len({found, drawn} - {""}) <= 1
    assert ["former", "fc2", before, before, "dimmed"] in seen
    visitor.page.evaluate("() => window.seen.clear()")
    visitor.page.get_by_role("radio", name="how often").click()
    visitor.settle()
    seen = visitor.page.evaluate("() => [...window.seen]")
    assert {one.split(",")[2] for one in seen} == {after}, "the finding stays where the setup does"
