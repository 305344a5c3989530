"""The browser's Back button: it leads to what was chosen before, not through the steps of a slider."""

import re

import pytest

from studio.shell.frame import _history_names
from studio.shell.pages import PAGES
from tests.browser.waiting import expect
from tests.pages.test_addresses import NAMES

pytestmark = pytest.mark.browser


def back(visitor):
    visitor.page.go_back(wait_until="commit")
    visitor.settle()


def test_choices_are_names_that_the_address_holds():
    # Tabs are written without a constant at their reading; the other names are found where they are read.
    assert set(_history_names()) - {"tab"} <= set(NAMES)
    assert "m" not in _history_names()


@pytest.mark.rare
def test_a_slider_is_no_step_and_a_page_is_one(visitor):
    visitor.open("clusters")
    visitor.follow("coverage")
    slider = visitor.page.get_by_role("slider", name="Number of important neurons")
    for m in (5, 4, 3):
        slider.press("ArrowLeft")
        expect(visitor.page).to_have_url(re.compile(f"m={m}"))
        visitor.settle()
    back(visitor)
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(PAGES["clusters"].question)
    visitor.page.go_forward(wait_until="commit")
    visitor.settle()
    assert "m = 3" in visitor.setup()


@pytest.mark.slow
def test_a_network_and_a_tab_are_a_step_each(visitor):
    visitor.open("relevance")
    visitor.page.get_by_role("tab", name="All tests").click()
    visitor.settle()
    visitor.page.get_by_role("combobox", name="Network").click()
    visitor.page.get_by_role("option", name="digits: LeNet-4").click()
    visitor.settle()
    assert visitor.setup().startswith("LeNet-4")
    back(visitor)
    assert visitor.setup().startswith("LeNet-5"), "what was chosen is no longer chosen"
    expect(visitor.page.get_by_role("tab", selected=True)).to_have_text("All tests")
    back(visitor)
    expect(visitor.page.get_by_role("tab", selected=True)).to_have_text("One test")
    assert visitor.faults() == []
