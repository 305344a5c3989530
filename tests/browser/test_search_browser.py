"""The search by keyboard alone: to a tab, a test and a term, and the list of shortcuts."""

import re

import pytest

from studio.shell.pages import PAGES
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


def search(visitor, key, text):
    """Open the search by a key, write, and return its window."""
    visitor.page.keyboard.press(key)
    window = visitor.page.get_by_role("dialog", name="Search")
    expect(window).to_be_visible()
    visitor.page.keyboard.type(text)
    return window


def test_tabs_tests_and_terms_are_found_by_keyboard(visitor):
    visitor.open("layers")
    search(visitor, "Control+k", "map of the tests")
    visitor.page.keyboard.press("Enter")
    expect(visitor.page).to_have_url(re.compile(r"/clusters\?.*tab=map"))
    visitor.settle()
    window = search(visitor, "/", "silhouette")
    visitor.page.keyboard.press("Enter")
    expect(window.get_by_role("status")).to_contain_text("Silhouette: How well values fit")
    visitor.page.keyboard.press("Escape")
    expect(window).to_be_hidden()
    visitor.page.keyboard.press("?")
    keys = visitor.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("Ctrl K or /")
    visitor.page.keyboard.press("Escape")
    window = search(visitor, "/", "3 \u2192 5")
    expect(window.get_by_role("option")).to_have_text(re.compile("Tests with \u201c3 \u2192 5\u201d"))
    visitor.page.keyboard.press("Enter")
    expect(window.get_by_role("status")).to_contain_text("test with \u201c3 \u2192 5\u201d.")
    expect(window.get_by_role("option")).to_contain_text("Test 519: 3 \u2192 5")
    # A page that is drawn anew may take the focus from the field: keys still count.
    window.get_by_role("combobox").blur()
    visitor.page.keyboard.press("Enter")
    expect(visitor.page).to_have_url(re.compile(r"/relevance\?.*input=519"))
    visitor.settle()
    assert visitor.faults() == []


def test_pages_that_do_not_apply_are_marked(visitor):
    visitor.open("learn?model=textcnn-20newsgroups")
    pages = visitor.page.get_by_test_id("stSidebarNavLink")
    marked = [text for text in pages.all_inner_texts() if "·" in text]
    assert marked == [f"{PAGES[name].title} · no pictures" for name in ("adversarial", "robustness", "differential")]
    reason = re.compile("by noise, which is defined for pictures")
    expect(pages.filter(has_text="Robustness")).to_have_accessible_description(reason)
    window = search(visitor, "/", "differential search")
    expect(window.get_by_role("option")).to_contain_text("no pictures")
    expect(window.get_by_role("status")).to_contain_text("The search changes pictures, and these tests are none.")
    visitor.page.keyboard.press("Escape")
