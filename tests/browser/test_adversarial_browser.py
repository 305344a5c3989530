"""Attacks in a browser: a click looks at an input and selects it; Stop shows what is finished; going on continues."""

import re

import pytest

from tests.browser.waiting import expect

pytestmark = pytest.mark.browser

SLOW = (
    "adversarial?attack=Carlini-Wagner+L2&attacked=100"
    "&cw-iterations=100&cw-search_steps=2&cw-learning_rate=0.1&cw-initial_constant=1"
)
"""An attack that takes a second or two a block, fools most tests, and is left on disk by no other test."""


def finding(visitor):
    return visitor.page.get_by_test_id("stMain").locator("strong").first


@pytest.mark.rare
def test_a_click_looks_at_an_input_and_selects_it(visitor):
    visitor.open("adversarial")
    tile = visitor.page.locator(".gallery").first.get_by_role("button").nth(4)
    number = tile.get_attribute("data-test")
    large = visitor.page.locator('[class*="st-key-heatmaps-attacked"] [data-testid="stImageCaption"]').first
    expect(large).not_to_contain_text(f"Test {number}:")
    tile.focus()
    visitor.page.keyboard.press("Enter")
    expect(large).to_contain_text(f"Test {number}:")
    expect(visitor.page).to_have_url(re.compile(rf"input={number}\b"))
    expect(tile).to_have_attribute("aria-pressed", "true")


@pytest.mark.rare
def test_stop_keeps_what_is_finished_and_going_on_continues(visitor):
    page = visitor.page
    page.goto(f"{visitor.address}/{SLOW}")
    page.get_by_role("button", name="Start attack").click()
    # The second of four blocks: each is attacked, run through the network and explained.
    expect(page.get_by_test_id("stProgress")).to_contain_text("Step 4 of 12")
    page.locator('[class*="st-key-stop-"] button').click()
    warning = page.get_by_test_id("stAlert").filter(has_text="was stopped after")
    expect(warning).to_contain_text(re.compile("was stopped after (32|64|96) of 100 inputs"))
    visitor.settle()
    expect(finding(visitor)).to_contain_text(re.compile(r"of (32|64|96) correctly classified tests"))
    assert page.locator(".gallery").first.get_by_role("button").count() == 9
    page.get_by_role("button", name="Resume").click()
    expect(finding(visitor)).to_contain_text("of 100 correctly classified tests")
    expect(warning).to_have_count(0)


@pytest.mark.rare
def test_a_chosen_cell_is_opened_on_the_coverage_page(visitor):
    visitor.open("adversarial?tab=cells&cell=0-1-0-1-3-1")
    visitor.page.get_by_role("link", name="Show the selected cell on the Coverage page").click()
    expect(visitor.page.get_by_role("heading", name="Cell 0-1-0-1-3-1", exact=True)).to_be_visible()
