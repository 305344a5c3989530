"""A story made of three slides, ordered by drag and by keyboard, played before a room, and opened from its file."""

import re

import pytest

from idc_core.stories.drawing import SMALLEST
from tests.browser.violations import serious_violations
from tests.browser.waiting import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOM = {"width": 1280, "height": 720}
LEAST = """chart => Math.min(...[...chart.querySelectorAll('text')].filter(one => one.textContent.trim())
    .map(one => parseFloat(getComputedStyle(one).fontSize)))"""
FITS = "one => one.scrollHeight <= one.clientHeight && one.scrollWidth <= one.clientWidth"


def told(page):
    """What the slides say, in their order."""
    return [re.sub(r"^\d+\. ", "", text) for text in page.locator(".slides .show").all_inner_texts()]


def test_three_slides_are_made_ordered_played_and_opened_from_a_file(stranger, browser, tmp_path):
    visitor, page = stranger, stranger.page
    for path in ("coverage", "clusters"):
        visitor.open(path)
        page.locator(".st-key-add-histograms button, [class*='st-key-add-grid-'] button").first.click()
        expect(page.get_by_test_id("stToast")).to_contain_text("My story")
        visitor.settle()
    visitor.open("relevance?input=519")
    page.locator(".st-key-tell-heatmaps button").first.click()
    expect(page.get_by_test_id("stToast")).to_contain_text("Slide 3")
    visitor.open("stories")
    grid, histograms, test = told(page)
    page.get_by_role("button", name="Move slide 3 up").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".slides .show").nth(1)).to_contain_text(test)
    expect(page.get_by_role("button", name="Move slide 2 up")).to_be_focused()
    page.locator(".slides li").nth(0).drag_to(page.locator(".slides li").nth(2))
    expect(page.locator(".slides .show").nth(2)).to_contain_text(grid)
    assert told(page) == [test, histograms, grid]
    assert serious_violations(page) == []
    with page.expect_download() as saved:
        page.get_by_role("button", name="HTML").click()
    saved.value.save_as(tmp_path / "story.html")

    page.set_viewport_size(ROOM)
    page.get_by_role("button", name="Play", exact=True).click()
    slides = [test, histograms, grid]
    for place, (key, said) in enumerate(zip(("PageDown", "ArrowRight", "End"), slides, strict=True)):
        expect(page.get_by_role("heading", level=1)).to_have_text(said)
        expect(page).to_have_url(re.compile(f"slide={place + 1}"))
        visitor.settle()
        assert page.get_by_test_id("stMain").evaluate(FITS)
        assert page.locator(".js-plotly-plot").evaluate(LEAST) >= SMALLEST
        assert serious_violations(page) == []
        page.keyboard.press(key)
    assert visitor.faults() == []

    context = browser.new_context(viewport=ROOM, offline=True, color_scheme="dark")
    alone, asked = context.new_page(), []
    alone.on("request", lambda request: asked.append(request.url))
    alone.on("pageerror", lambda error: asked.append(str(error)))
    alone.goto((tmp_path / "story.html").as_uri())
    for place, said in enumerate(slides):
        alone.locator(f'html[data-drawn="{place + 1}-dark"]').wait_for(state="attached")
        expect(alone.get_by_role("heading", level=1)).to_have_text(said)
        assert alone.locator("html").evaluate(FITS)
        assert alone.locator("#chart").evaluate(LEAST) >= SMALLEST
        alone.keyboard.press("PageDown")
    assert [one for one in asked if not one.startswith(("file:", "data:", "blob:"))] == []
    context.close()
