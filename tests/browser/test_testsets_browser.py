"""On the Test sets page, a mark leads to the inputs that add its cells, and an input to what changed in it."""

import re

import pytest

from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_a_mark_leads_to_the_inputs_that_add_its_cells(visitor):
    visitor.open("testsets")
    # In each of the four panels the original tests, random and relevance-guided noise.
    mark = visitor.page.locator(".js-plotly-plot").first.locator(".scatterlayer .trace .points path").nth(3 * 3 + 2)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    visitor.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(visitor.page).to_have_url(re.compile(r"shown=guided"))
    expect(visitor.page).to_have_url(re.compile(r"cells-m=12"))
    visitor.settle()
    expect(visitor.page.get_by_text("inputs of relevance-guided noise lie in")).to_be_visible()


@pytest.mark.slow
def test_a_click_on_an_input_shows_what_changed_and_selects_its_source(visitor):
    visitor.open("testsets?shown=guided&cells-m=12")
    tiles = visitor.page.locator(".gallery").first.get_by_role("button")
    expect(tiles.first).to_have_attribute("aria-pressed", "true")
    position = int(tiles.nth(4).get_attribute("data-test"))
    tiles.nth(4).click()
    expect(visitor.page).to_have_url(re.compile(rf"pick={position}\b"))
    expect(visitor.page).to_have_url(re.compile(rf"input={position - 540}\b"))
    visitor.settle()
    expect(tiles.nth(4)).to_have_attribute("aria-pressed", "true")
    changed = visitor.page.locator(".st-key-what-changed")
    assert changed.locator("img").count() == 3
    expect(changed).to_contain_text(f"Original, {position - 540}: ")
    expect(changed).to_contain_text("Difference")
    visitor.page.reload()
    visitor.settle()
    expect(tiles.nth(4)).to_have_attribute("aria-pressed", "true")


@pytest.mark.slow
def test_nothing_is_wider_than_a_narrow_window(visitor):
    visitor.page.set_viewport_size({"width": 800, "height": 900})
    visitor.open("testsets?suites=noise,guided,rotation,blur,original~answers=wrong")
    wide = visitor.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 800
    visitor.page.wait_for_timeout(600)  # it slides away
    tables = "all => all.map(one => [one.scrollWidth, one.clientWidth])"
    for inside, outside in visitor.page.locator(".dvn-scroller").evaluate_all(tables):
        assert inside <= outside + 1, "a table is cut off"
