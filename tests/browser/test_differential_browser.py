"""Disagreements are chosen by keyboard or by clicking their pictures; an uncovered cell gets inputs by a click."""

import re

import pytest

from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


@pytest.mark.rare
def test_a_row_shows_its_disagreement_and_selects_its_seed(visitor):
    page = visitor.page
    visitor.open("differential?count=12")
    page.get_by_role("tab", name="Disagreements").focus()
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
    small = page.locator(".gallery button[aria-pressed=false]").first
    number = small.get_attribute("data-test")
    small.click()
    expect(page).to_have_url(re.compile(rf"find={number}\b"))
    expect(page).to_have_url(re.compile(rf"input={number}\b"))
    expect(page.get_by_text("Seed: test").first).to_contain_text(f"Seed: test {number},")


@pytest.mark.slow
def test_an_uncovered_cell_gets_inputs_by_a_click_and_a_link_opens_them_again(visitor):
    page = visitor.page
    visitor.open("coverage?tab=fill&cell=0-0-0-0-0-0")
    page.get_by_role("button", name="Generate inputs for this cell").click()
    page.get_by_role("heading", name="Inputs generated for cell 0-0-0-0-0-0").wait_for()
    visitor.settle()
    made = page.get_by_role("group", name="Changed inputs to select").get_by_role("button")
    expect(made).to_have_count(12)
    number = made.nth(3).get_attribute("data-test")
    made.nth(3).click()
    expect(page).to_have_url(re.compile(rf"input={number}\b"))
    page.reload()
    visitor.settle()
    expect(made).to_have_count(12)
    expect(made.nth(3)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Hide inputs").click()
    page.get_by_role("heading", name="Inputs generated for cell 0-0-0-0-0-0").wait_for(state="detached")
