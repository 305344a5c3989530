"""A test that is changed by hand: what follows is seen while the hand moves, and the engine agrees afterwards."""

import pytest

from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


def updates(live):
    return int(live.get_attribute("data-updates"))


def test_what_follows_is_seen_while_a_slider_is_dragged_and_the_engine_agrees(visitor):
    visitor.open("relevance?tab=edit&input=1")
    page, live = visitor.page, visitor.page.locator(".live[data-updates]")
    expect(live).to_have_attribute("data-checked", "true")
    rotation = page.get_by_role("slider", name="Rotate (°)")
    rotation.focus()
    for _ in range(12):  # elsewhere on the page this key leads to the next test
        page.keyboard.press("ArrowRight")
    expect(rotation).to_have_value("12")
    box, before = page.get_by_role("slider", name="Epsilon").bounding_box(), updates(live)
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8, middle)
    page.mouse.down()
    for step in range(1, 6):
        page.mouse.move(box["x"] + 8 + 8 * step, middle)
        page.wait_for_timeout(50)
    assert updates(live) >= before + 3, "the hand still holds the slider"
    page.mouse.up()
    said = page.get_by_test_id("stMarkdown").filter(has_text="Test 1, changed, is classified as")
    expect(said).to_be_visible()
    visitor.settle()
    expect(live).to_have_attribute("data-checked", "true")
    now = live.locator("tr.predicted td").nth(1).inner_text()
    cell = live.locator(".cell").inner_text().removeprefix("Cell ").partition(" ")[0]
    assert f" with {now} confidence (before: " in said.inner_text()
    assert f"cell {cell} (before" in said.inner_text() or "the same cell" in said.inner_text()
    assert visitor.faults() == []


@pytest.mark.slow
def test_a_picture_is_painted_by_keyboard_and_put_back(visitor):
    visitor.open("relevance?tab=edit&input=1")
    canvas = visitor.page.get_by_role("application", name="Test 1: arrow keys move, space paints")
    canvas.focus()
    for key in ("ArrowUp", "Space", "ArrowLeft", "Space"):
        visitor.page.keyboard.press(key)
    said = visitor.page.get_by_test_id("stMarkdown")
    expect(said.filter(has_text="Test 1, changed, is")).to_be_visible()
    visitor.page.get_by_role("button", name="Reset").click()
    expect(said.filter(has_text="Test 1 is unchanged.")).to_be_visible()
    assert visitor.faults() == []
