"""A selection made by clicking is followed through the pages, and its address opens the same for somebody else."""

import re

import pytest

from studio.text import cell_name
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


def sidebar(visitor) -> str:
    """Return the sidebar's text without Streamlit's own button, which shows only where the pointer is."""
    return visitor.page.get_by_test_id("stSidebarUserContent").inner_text()


@pytest.mark.slow
def test_a_test_clicked_in_a_cell_is_followed_over_three_pages(visitor, view):
    cell = tuple(view.table.cells[view.table.counts.argmax()].tolist())
    visitor.open(f"coverage?cell={cell_name(cell)}")
    button = visitor.page.locator("button[data-test]").nth(1)
    number = int(button.get_attribute("data-test"))
    button.click()
    visitor.settle()
    assert f"test {number}" in sidebar(visitor)
    assert re.search(rf"/relevance\?.*input={number}\b", visitor.page.url)
    finding = visitor.page.locator('[data-testid="stMain"] [data-testid="stMarkdown"] strong').first.inner_text()
    assert re.match(rf"Test {number}\b", finding)
    for name in ("neurons", "clusters"):
        visitor.follow(name)
        if name == "neurons":
            visitor.page.get_by_role("tab", name="One neuron").click()
            visitor.settle()
        assert f"test {number}" in sidebar(visitor), name
        assert f"input={number}" in visitor.page.url, name
        assert f"test {number}" in visitor.text().lower(), f"{name} does not show the selected test"
    visitor.follow("coverage")
    assert f"cell={cell_name(cell)}" in visitor.page.url
    expect(visitor.page.get_by_role("heading", name=f"Cell {cell_name(cell)}", exact=True)).to_be_visible()
    assert visitor.faults() == []


@pytest.mark.slow
def test_an_address_copied_after_several_pages_opens_the_same_for_somebody_else(visitor, stranger):
    visitor.open("?m=4&layer=fc1")
    visitor.follow("coverage")
    visitor.page.get_by_test_id("stSidebar").get_by_role("slider").focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.settle()
    visitor.page.locator("button[data-test]").first.click()
    visitor.settle()
    visitor.follow("clusters")
    copied, said, chosen = visitor.page.url, visitor.text(), sidebar(visitor)
    assert re.search(r"layer=fc1.*m=5|m=5.*layer=fc1", copied)
    stranger.open(copied.removeprefix(f"{visitor.address}/"))
    assert stranger.text() == said
    assert sidebar(stranger) == chosen
    assert stranger.page.url == copied


@pytest.mark.rare
def test_two_layers_stand_side_by_side(visitor):
    visitor.open("coverage")
    visitor.page.get_by_role("button", name="Pin for comparison").click()
    visitor.settle()
    visitor.page.get_by_role("combobox", name="Layer").click()
    visitor.page.get_by_role("option", name="fc1", exact=True).click()
    visitor.settle()
    shown = visitor.text()
    assert "Compared with the pinned setup" in shown
    assert "layer fc1 · m = 6" in shown
    assert "Pinned: LeNet-5 · digits · layer fc2 · m = 6" in shown
    assert visitor.page.get_by_test_id("stException").count() == 0
