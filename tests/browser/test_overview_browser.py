"""The Overview in a browser: a click in its grid opens the cell, its findings lead to their subject, at any width."""

import re

import pytest

from studio.shell.pages import PAGES
from studio.text import cell_name
from tests.browser.test_studio import place_of
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser

LATER = """() => {
    const frame = requestAnimationFrame;
    window.requestAnimationFrame = draw => frame(now => draw(now + 60000));
}"""
"""Pictures are drawn as a minute later, when all tests have fallen."""


def test_a_click_in_the_grid_opens_the_cell(visitor, view):
    cell = view.table.cells[view.table.counts.argmax()].tolist()
    visitor.open()
    visitor.page.mouse.move(*place_of(visitor, view, cell))
    visitor.page.wait_for_timeout(300)  # the tile under the pointer is lifted
    visitor.page.mouse.click(*place_of(visitor, view, cell))
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(PAGES["coverage"].question)
    expect(visitor.page.get_by_role("heading", name=f"Cell {cell_name(cell)}", exact=True)).to_be_visible()
    expect(visitor.page).to_have_url(re.compile(f"coverage.*cell={cell_name(cell)}"))
    assert visitor.faults() == []


def test_play_lets_every_test_fall_into_its_cell_until_it_is_stopped_or_all_have(visitor, view):
    visitor.open()
    button, counter = (visitor.page.locator(f".play {part}") for part in ("button", "output"))
    for name, pressed in (("Play", "true"), ("Stop", "false")):
        expect(button).to_have_text(name)
        button.click()
        expect(button).to_have_attribute("aria-pressed", pressed)
    expect(counter).to_have_text(re.compile(r"^[\d,]+ tests, [\d,]+ cells$"))
    visitor.page.evaluate(LATER)
    button.click()
    expect(counter).to_have_text(f"{len(view.test):,} tests, {len(view.table.cells):,} cells")
    expect(button).to_have_text("Play")
    assert visitor.faults() == []


@pytest.mark.slow
def test_findings_are_whole_in_a_narrow_window_and_lead_to_their_subject(visitor):
    visitor.page.set_viewport_size({"width": 800, "height": 900})
    visitor.open("?m=12")
    finding = visitor.page.get_by_test_id("stPageLink").filter(has_text="Cells reached only by misclassified tests")
    parts = "[one, ...one.querySelectorAll('*')].filter(part => part.clientWidth)"
    cut = f"one => {parts}.some(part => part.scrollWidth > part.clientWidth + 1)"
    for link in visitor.page.get_by_test_id("stPageLink").all():
        assert not link.evaluate(cut), link.inner_text()
    finding.locator("a").first.click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(PAGES["coverage"].question)
    visitor.settle()
    assert "cell=" in visitor.page.url
