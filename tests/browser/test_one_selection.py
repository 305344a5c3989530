"""A selection made by clicking is followed through the pages, and its address opens the same for somebody else."""

import io
import re

import pandas as pd
import pytest
from playwright.sync_api import expect

from studio.engine.results import open_view
from studio.shell.bench import DEFAULT
from studio.shell.pages import PAGES
from studio.widgets.text import cell_name

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


def follow(visitor, name):
    """Open a page through the navigation."""
    page = visitor.page
    page.get_by_test_id("stTopNavSection").filter(has_text=PAGES[name].group).click()
    page.get_by_test_id("stTopNavDropdownLink").filter(has_text=PAGES[name].title).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(PAGES[name].question)
    visitor.settle()


def sidebar(visitor) -> str:
    """Return the sidebar's text without Streamlit's own button, which shows only where the pointer is."""
    return visitor.page.get_by_test_id("stSidebarUserContent").inner_text()


def gallery_button(visitor, number):
    return visitor.page.locator(f'button[data-test="{number}"]').first


def test_a_test_clicked_in_a_cell_is_followed_over_three_pages(visitor, view):
    cell = tuple(view.table.cells[view.table.counts.argmax()].tolist())
    visitor.open(f"coverage?cell={cell_name(cell)}")
    button = visitor.page.locator("button[data-test]").nth(1)
    number = int(button.get_attribute("data-test"))
    button.click()
    visitor.settle()
    assert f"test {number}" in sidebar(visitor)
    expect(gallery_button(visitor, number)).to_have_attribute("aria-pressed", "true")
    assert f"input={number}" in visitor.page.url

    follow(visitor, "relevance")
    finding = visitor.page.locator('[data-testid="stMain"] [data-testid="stMarkdown"] strong').first.inner_text()
    assert finding.startswith(f"Test {number} ")
    for name in ("neurons", "clusters"):
        follow(visitor, name)
        assert f"test {number}" in sidebar(visitor), name
        assert f"input={number}" in visitor.page.url, name
        assert f"test {number}" in visitor.text().lower(), f"{name} does not show the selected test"
    follow(visitor, "coverage")
    assert f"cell={cell_name(cell)}" in visitor.page.url
    expect(visitor.page.get_by_role("heading", name=f"Cell {cell_name(cell)}", exact=True)).to_be_visible()
    assert [text for text in visitor.errors if not is_probe(text)] == []


def is_probe(text: str) -> bool:
    """Streamlit asks below a deep link whether a server answers there before it asks the root."""
    return "404" in text


def test_an_address_copied_after_several_pages_opens_the_same_for_somebody_else(visitor, stranger):
    visitor.open("?m=4&layer=fc1")
    follow(visitor, "coverage")
    visitor.page.get_by_test_id("stSidebar").get_by_role("slider").focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.settle()
    visitor.page.locator("button[data-test]").first.click()
    visitor.settle()
    follow(visitor, "clusters")
    copied, said, chosen = visitor.page.url, visitor.text(), sidebar(visitor)
    assert re.search(r"layer=fc1.*m=5|m=5.*layer=fc1", copied)
    stranger.open(copied.removeprefix(f"{visitor.address}/"))
    assert stranger.text() == said
    assert sidebar(stranger) == chosen
    assert stranger.page.url == copied


def test_two_layers_stand_side_by_side(visitor):
    visitor.open("coverage")
    visitor.page.get_by_role("button", name="Pin for comparison").click()
    visitor.settle()
    visitor.page.get_by_role("combobox", name="Layer").click()
    visitor.page.get_by_role("option", name="fc1", exact=True).click()
    visitor.settle()
    shown = visitor.text()
    assert "Beside the pinned bench" in shown
    assert "layer fc1 · m = 6" in shown
    assert "Pinned: LeNet-5 · digits · layer fc2 · m = 6" in shown
    assert visitor.page.get_by_test_id("stException").count() == 0


def test_a_table_taken_away_reads_again_as_the_same_numbers(visitor, view):
    visitor.open("coverage")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="Covered cells (CSV)").click()
    table = pd.read_csv(io.BytesIO(download.value.path().read_bytes()), dtype={"cell": str})
    found = dict(zip(table["cell"], table["tests"], strict=True))
    cells = zip(view.table.cells, view.table.counts, strict=True)
    assert found == {cell_name(cell): int(count) for cell, count in cells}
