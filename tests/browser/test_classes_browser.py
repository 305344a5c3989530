"""The Class errors page as a person uses it: a click on a square, a bar and a row, and the threshold's slider."""

import re

import numpy as np
import pytest

from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


def figure(visitor, words):
    """The chart whose title holds these words."""
    found = visitor.page.locator(".js-plotly-plot").filter(has_text=words).first
    found.scroll_into_view_if_needed()
    return found


def click(visitor, mark):
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    visitor.page.mouse.move(*place)
    visitor.page.wait_for_timeout(200)
    visitor.page.mouse.click(*place)
    visitor.settle()


def selected(visitor, first, second):
    """What the page says of the selected pair, where it is not the most suspected one."""
    return visitor.page.get_by_text(re.compile(f"^Confused among .* tests of {first} and {second}: "))


@pytest.mark.slow
def test_a_click_on_a_square_selects_its_pair(visitor):
    visitor.open("classes?tab=pairs")
    squares = figure(visitor, "Distances of the classes").locator(".scatterlayer .trace").first
    assert squares.locator(".points path").count() == 90
    click(visitor, squares.locator(".points path").nth(3))
    first, second = re.search(r"pair=(\d)-(\d)", visitor.page.url).groups()
    assert first != second
    expect(selected(visitor, first, second)).to_be_visible()
    visitor.page.reload()
    visitor.settle()
    expect(selected(visitor, first, second)).to_be_visible()
    visitor.page.get_by_role("button", name="Open this pair").click()
    figure(visitor, f"Inputs classified as {first} and").wait_for()
    assert visitor.faults() == []


@pytest.mark.slow
def test_a_click_on_a_third_class_shows_its_pictures(visitor):
    visitor.open("classes?pair=1-8&tab=pair")
    rows = visitor.page.locator(".gallery").nth(1).evaluate("all => [...all.children].map((tile) => tile.offsetTop)")
    assert len(rows) == 10
    assert min(map(rows.count, rows)) > 1, "a picture is alone in its row"
    visitor.page.get_by_role("tab", name="Bias").click()
    visitor.settle()
    bars = figure(visitor, "Bias of third classes").locator(".bars .point path")
    assert bars.count() == 3
    click(visitor, bars.nth(1))
    third = re.search(r"third=(\d)", visitor.page.url)[1]
    expect(visitor.page.get_by_text(f"Classified as {third}")).to_be_visible()


@pytest.mark.rare
def test_the_threshold_is_counted_again_at_once(visitor):
    visitor.open("classes?tab=pairs")
    before = figure(visitor, "Distances of the classes").text_content()
    visitor.page.get_by_role("button", name="Settings").click()
    slider = visitor.page.get_by_role("slider", name="Activation threshold")
    slider.focus()
    for _ in range(4):
        slider.press("ArrowLeft")
    visitor.settle()
    assert "activation=0.3" in visitor.page.url
    after = visitor.page.locator(".js-plotly-plot").filter(has_text="Distances of the classes").first
    expect(after).not_to_have_text(before)


@pytest.mark.rare
def test_own_predictions_take_the_place_of_the_network(visitor, tmp_path):
    random = np.random.default_rng(0)
    predicted = random.random((200, 4)) < 0.5
    file = tmp_path / "own.npz"
    true = predicted ^ (random.random((200, 4)) < 0.1)
    names = np.array(["woman", "man", "bag", "skis"])
    np.savez(file, activations=random.random((200, 12)), predicted=predicted, true=true, class_names=names)
    visitor.open("classes?tab=pairs")
    visitor.page.get_by_text("Custom predictions, and groups of classes").click()
    visitor.page.locator("input[type=file]").set_input_files(file)
    expect(visitor.page.get_by_text("These are your own predictions")).to_be_visible()
    visitor.settle()
    assert re.search("Ranked by distance, (woman|man|bag|skis) and (woman|man|bag|skis) come first", visitor.text())
    visitor.page.get_by_role("textbox", name="Groups of classes").fill("people: woman, man")
    visitor.page.keyboard.press("Control+Enter")
    visitor.settle()
    assert "people" in figure(visitor, "Distances of the classes").inner_text()
