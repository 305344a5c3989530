"""What is clicked on the Neurons page is selected there, on the other pages, and in the address."""

import re

import pytest
from PIL import Image

from idc_core.figures.cards import WIDTH
from idc_core.stories.story import STORIES
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


def click_mark(visitor, chart, selector, index):
    """Click a mark of a chart as a person does: plotly takes clicks with a layer above the marks."""
    mark = visitor.page.locator(f".st-key-{chart} .js-plotly-plot").locator(selector).nth(index)
    mark.scroll_into_view_if_needed()
    visitor.settle()
    box = mark.bounding_box()
    visitor.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    visitor.settle()


@pytest.mark.slow
def test_a_bar_opens_its_neuron_and_the_link_its_clusters(visitor):
    visitor.open("neurons?tab=ranking")
    # Bars are drawn ranking by ranking: the third one is the third of the important neurons.
    click_mark(visitor, "ranking", ".bars .point path", 2)
    chosen = re.search(r"neuron=(\d+)", visitor.page.url)
    assert chosen is not None, visitor.page.url
    neuron = chosen[1]
    visitor.page.get_by_role("button", name=f"See neuron {neuron} in detail").click()
    visitor.settle()
    assert "tab=neuron" in visitor.page.url
    visitor.page.get_by_role("link", name=f"See the clusters of neuron {neuron}").click()
    visitor.page.wait_for_url("**/clusters*")
    visitor.settle()
    assert f"neuron={neuron}" in visitor.page.url


@pytest.mark.rare
def test_a_mark_selects_its_test_on_the_relevance_page_too(visitor):
    visitor.open("neurons?tab=agreement")
    click_mark(visitor, "activation-relevance", ".scatterlayer .points path", 5)
    chosen = re.search(r"input=(\d+)", visitor.page.url)
    assert chosen is not None, visitor.page.url
    assert f"test {chosen[1]}" in visitor.page.locator(".st-key-activation-relevance").inner_text()
    visitor.open(f"relevance?input={chosen[1]}")
    assert f"Test {chosen[1]} is" in visitor.text()


@pytest.mark.rare
def test_heavier_methods_are_computed_when_chosen(visitor):
    visitor.open("neurons?tab=agreement")
    visitor.page.get_by_role("button", name="Settings").click()
    box = visitor.page.locator(".st-key-compared input")
    box.click()
    box.press_sequentially("DeepLift")
    visitor.page.get_by_role("option", name="DeepLift").wait_for()
    box.press("Enter")
    labels = visitor.page.locator(".st-key-agreement .ytick")
    expect(labels.filter(has_text="DeepLift")).to_be_visible()


def test_a_card_is_saved_as_a_picture_becomes_a_slide_and_opens_its_neuron(visitor, view):
    visitor.open("neurons")
    neuron = int(view.analysis.important[1])
    with visitor.page.expect_download() as saving:
        visitor.page.get_by_role("button", name=f"PNG: save the card of neuron {neuron} as a picture").click()
    assert re.fullmatch(
        rf"idc-neuron-{neuron}_lenet5-digits_digits_fc2_m6_[\d-]{{10}}\.png", saving.value.suggested_filename
    )
    with Image.open(saving.value.path()) as picture:
        assert picture.format == "PNG"
        assert picture.width == 2 * (WIDTH + 24)
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 50, "it shows something"
    before = set(STORIES.listed())
    visitor.page.get_by_role("button", name=f"Add to story: the card of neuron {neuron}", exact=True).click()
    expect(visitor.page.get_by_test_id("stToast")).to_contain_text("Slide ")
    told = [story.slides[-1].sentence for story in STORIES.listed().values()]
    assert any(sentence.startswith(f"Neuron {neuron}: the tests") for sentence in told)
    for id in set(STORIES.listed()) - before:
        STORIES.delete(id)
    visitor.page.locator(f"[data-neuron='{neuron}']").click()
    expect(visitor.page.get_by_text(f"Neuron {neuron}, highest activation")).to_be_visible()
    visitor.settle()
    assert f"neuron={neuron}" in visitor.page.url
    assert "tab=neuron" in visitor.page.url
