"""Tests in galleries are buttons: a click or a key selects one on all pages, and a second one takes that back."""

import re

import pytest

from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def visitor(visit):
    """One visit for all tests: each leaves behind what the next one can begin with."""
    with visit() as visitor:
        visitor.open("coverage?tab=smallest")
        yield visitor


@pytest.fixture(scope="module")
def tiles(visitor):
    """The pictures of the smallest set; those of a cell open Relevance instead."""
    return visitor.page.locator(".gallery").first.get_by_role("button")


def number(tile):
    return int(tile.get_attribute("data-test"))


def test_pictures_are_the_inputs_enlarged_by_a_whole_number(visitor, tiles, view):
    """Draw what the browser shows of each tile at the input's own size, and compare the pixels."""
    cut = """async (tile) => {
        const style = getComputedStyle(tile.querySelector('.picture'));
        const sheet = new Image();
        sheet.src = style.backgroundImage.slice(5, -2);
        await sheet.decode();
        const times = parseFloat(style.backgroundSize) / sheet.naturalWidth;
        const [left, top] = style.backgroundPosition.split(' ').map((at) => -parseFloat(at) / times);
        const canvas = Object.assign(document.createElement('canvas'), {width: 28, height: 28});
        const pen = canvas.getContext('2d');
        pen.drawImage(sheet, left, top, 28, 28, 0, 0, 28, 28);
        const shades = [...pen.getImageData(0, 0, 28, 28).data].filter((_, i) => i % 4 === 0);
        return [times, style.width, style.height, style.imageRendering, shades];
    }"""
    count = tiles.count()
    assert count > 4
    for index in (0, 1, count - 1):
        times, width, height, rendering, shades = tiles.nth(index).evaluate(cut)
        assert (times, width, height, rendering) == (3, "84px", "84px", "pixelated")
        (place,) = (view.test.ids == number(tiles.nth(index))).nonzero()[0]
        assert shades == (view.test.inputs[place, 0] * 255).round().astype(int).ravel().tolist()


def test_a_gallery_weighs_little(visitor, tiles):
    address = "one => getComputedStyle(one.querySelector('.picture')).backgroundImage.length"
    assert tiles.first.evaluate(address) < 150_000


def test_a_click_selects_on_all_pages_and_is_marked(visitor, tiles):
    chosen = number(tiles.nth(2))
    tiles.nth(2).click()
    expect(visitor.page).to_have_url(re.compile(rf"input={chosen}\b"))
    expect(tiles.nth(2)).to_have_attribute("aria-pressed", "true")
    expect(tiles.nth(2)).to_contain_text("selected")
    expect(visitor.page.get_by_test_id("stSidebar")).to_contain_text(f"test {chosen}")
    visitor.settle()
    assert tiles.evaluate_all("all => all.filter(one => one.ariaPressed === 'true').length") == 1
    tiles.nth(2).click()
    expect(visitor.page).not_to_have_url(re.compile("input="))
    expect(tiles.nth(2)).to_have_attribute("aria-pressed", "false")


@pytest.mark.slow
def test_the_keyboard_keeps_its_place(visitor, tiles):
    tiles.first.focus()
    visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("Enter")
    expect(tiles.nth(1)).to_have_attribute("aria-pressed", "true")
    visitor.settle()
    expect(tiles.nth(1)).to_be_focused()
    visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("Space")
    expect(tiles.nth(2)).to_have_attribute("aria-pressed", "true")
    expect(tiles.nth(1)).to_have_attribute("aria-pressed", "false")


@pytest.mark.rare
def test_galleries_wrap_in_a_narrow_window(visitor, tiles):
    visitor.page.set_viewport_size({"width": 800, "height": 1000})
    visitor.settle()
    boxes = [tile.bounding_box() for tile in tiles.all()]
    assert len({round(box["y"]) for box in boxes}) > 1
    assert max(box["x"] + box["width"] for box in boxes) <= 800
    assert min(min(box["width"], box["height"]) for box in boxes) >= 56
