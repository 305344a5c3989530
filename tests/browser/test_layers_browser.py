"""What is chosen on the Layers page, by mouse or keyboard, is opened on the Coverage page."""

import pytest

pytestmark = pytest.mark.browser


def click_square(page, panel, index):
    """Click a square as a person does: plotly takes clicks with a layer above the squares."""
    square = page.locator(".js-plotly-plot .bars").nth(panel).locator(".point path").nth(index)
    square.scroll_into_view_if_needed()
    box = square.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url("**/coverage*")


@pytest.mark.slow
def test_a_click_on_a_square_opens_its_layer_and_m(visitor):
    visitor.open("layers?m=3")
    assert visitor.page.locator(".js-plotly-plot .bars .point path").count() == 7 * 7, "m = 3 beside the six usual ones"
    click_square(visitor.page, 0, 2 * 7 + 2)  # the third layer, the third of 2, 3, 4, 6, 8, 10, 12
    visitor.settle()
    assert "layer conv2 · m = 4" in visitor.setup()
    assert "layer=conv2" in visitor.page.url
    assert "m=4" in visitor.page.url


@pytest.mark.rare
def test_another_test_set_is_opened_with_its_layer(visitor):
    visitor.open("layers?suites=mnist&ms=6")
    click_square(visitor.page, 1, 0)
    visitor.settle()
    assert "LeNet-5 · mnist · layer conv1 · m = 6" in visitor.setup()


@pytest.mark.slow
def test_a_row_is_opened_with_the_keyboard(visitor):
    visitor.open("layers")
    visitor.page.locator('[data-testid="stMultiSelect"] input').last.focus()
    for _ in range(28):  # the buttons below the charts come first
        visitor.page.keyboard.press("Tab")
        if visitor.page.evaluate("() => document.activeElement.tagName") == "CANVAS":
            break
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("Shift+Space")
    visitor.page.wait_for_url("**/coverage*")
    visitor.settle()
    assert "layer conv1 · m = 4" in visitor.setup()
