"""Disagreements are chosen by keyboard, and an uncovered cell gets its inputs by a click."""

import re

import pytest

pytestmark = pytest.mark.browser


def test_a_row_shows_its_disagreement_and_selects_its_seed(visitor):
    page = visitor.page
    visitor.open("differential?count=12")
    page.get_by_test_id("stExpander").first.locator("summary").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.tagName") == "CANVAS":
            break
    for key in ("ArrowDown", "ArrowDown", "Shift+Space"):
        page.keyboard.press(key)
    visitor.settle()
    number = re.search(r"find=(\d+)", page.url)[1]
    assert f"input={number}" in page.url
    assert page.get_by_text("Seed: test").first.inner_text().startswith(f"Seed: test {number},")


@pytest.mark.slow
def test_an_uncovered_cell_gets_inputs_by_a_click_and_a_link_opens_them_again(visitor):
    page = visitor.page
    visitor.open("coverage?cell=0-0-0-0-0-0")
    page.get_by_role("button", name="Generate an input for this cell").click()
    page.get_by_role("heading", name="Inputs generated for cell 0-0-0-0-0-0").wait_for()
    visitor.settle()
    assert page.locator(".st-key-made-inputs img").count() == 12
    page.reload()
    visitor.settle()
    assert page.locator(".st-key-made-inputs img").count() == 12
    page.get_by_role("button", name="Hide inputs").click()
    page.get_by_role("heading", name="Inputs generated for cell 0-0-0-0-0-0").wait_for(state="detached")
