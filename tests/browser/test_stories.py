"""Stories that people come with, walked from their first page to their end: what each costs is counted."""

import re

import pytest
from playwright.sync_api import Locator

from studio.shell.pages import PAGES
from tests.browser.waiting import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Clicks:
    """Clicks, counted."""

    def __init__(self, visitor):
        self.visitor, self.count = visitor, 0

    def on(self, what: Locator) -> None:
        """Click, and wait until the page is idle."""
        what.click()
        self.count += 1
        self.visitor.settle()

    def page(self, name: str) -> None:
        """Open a page by its link."""
        self.visitor.follow(name)
        self.count += 1


def test_from_the_overview_to_the_heatmap_of_a_test_in_a_cell_that_only_errors_reach(visitor, view):
    visitor.open()
    clicks = Clicks(visitor)
    lonely = view.test.ids[(view.analysis.assignments == view.table.cells[view.errors_only[0]]).all(axis=1)]
    clicks.on(visitor.page.get_by_role("button", name=re.compile(f"^{lonely[0]}: ")))
    clicks.page("relevance")
    assert f"Test {lonely[0]}: " in visitor.text()
    expect(visitor.page.get_by_text("LRP-epsilon: sum").first).to_be_visible()
    assert clicks.count <= 3
    assert visitor.faults() == []


def test_rotation_noise_and_attacks_are_compared_and_what_adds_cells_is_kept(visitor):
    visitor.open()
    clicks, page = Clicks(visitor), visitor.page
    clicks.page("testsets")
    clicks.on(page.get_by_role("combobox", name="Compare the original tests with"))
    for option in ("Rotation", "FGSM"):
        # Typed, it is the only one: a list that is scrolled is drawn anew, and a click in that moment is lost.
        page.keyboard.type(option)
        clicks.on(page.get_by_role("option", name=option, exact=True))
        expect(page).to_have_url(re.compile(option.lower()))
    page.keyboard.press("Escape")
    clicks.on(page.get_by_role("tab", name="Inputs that add cells"))
    clicks.on(page.get_by_role("button", name=re.compile("^Keep those of")))
    for name in ("Random noise", "Rotation", "FGSM"):
        assert f"\u201c{name}, adding cells\u201d" in visitor.text()
    assert clicks.count <= 6
    assert visitor.faults() == []


def test_clusters_and_cells_are_taught_from_learn_to_the_grid_by_keyboard(visitor):
    visitor.open("learn")
    keys = 0
    for text, heading in (
        ("4 clu", "What clusters does a neuron have?"),
        ("5 cel", "Which combinations do the tests reach?"),
        ("coverage: gr", PAGES["coverage"].question),
    ):
        visitor.page.keyboard.press("/")
        visitor.page.keyboard.type(text)
        visitor.page.keyboard.press("Enter")
        expect(visitor.page.get_by_role("heading", name=heading)).to_be_visible()
        visitor.settle()
        keys += len(text) + 2
    expect(visitor.page.get_by_role("tab", name="Grid", exact=True)).to_have_attribute("aria-selected", "true")
    assert keys <= 28
    assert visitor.faults() == []
