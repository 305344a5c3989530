"""The Relevance page in a browser: stepping, copied links, files, and words that keep their colours."""

import io

import numpy as np
import pytest
from PIL import Image

from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


def finding(visitor):
    return visitor.page.locator('[data-testid="stMain"] [data-testid="stMarkdown"] strong').first.inner_text()


@pytest.mark.rare
def test_a_link_copied_after_choosing_opens_the_same_view(visitor, stranger):
    visitor.open("relevance")
    page = visitor.page
    page.get_by_role("button", name="Next").click()
    visitor.settle()
    page.get_by_role("button", name="Settings").click()
    page.get_by_text("shared", exact=True).click()
    visitor.settle()
    page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Method").click()
    page.get_by_role("option", name="DeepLift").click()
    visitor.settle()
    assert "input=" in page.url
    said, shown = finding(visitor), page.get_by_test_id("stImageCaption").all_inner_texts()
    assert any("DeepLift" in caption for caption in shown)
    stranger.open(page.url.removeprefix(f"{visitor.address}/"))
    assert finding(stranger) == said
    assert stranger.page.get_by_test_id("stImageCaption").all_inner_texts() == shown


def test_a_setting_that_is_put_back_is_no_longer_kept(visitor):
    visitor.open("relevance")
    page = visitor.page
    page.get_by_role("button", name="Settings").click()
    overlay = page.get_by_role("slider", name="Overlay (%)")
    for key, says in (("ArrowRight", "overlay=65"), ("ArrowLeft", "")):
        overlay.focus()
        page.keyboard.press(key)
        expect(page).to_have_url(f"{visitor.address}/relevance{'?' * bool(says)}{says}")
        visitor.settle()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Next").click()
    visitor.settle()
    assert not page.get_by_test_id("stException").count()
    assert "overlay" not in page.url
    expect(page.get_by_role("button", name="Settings").first).not_to_contain_text("1")


def test_a_test_is_opened_by_keyboard(visitor):
    visitor.open("relevance")
    before = finding(visitor)
    visitor.page.get_by_role("button", name="Next").focus()
    visitor.page.keyboard.press("Enter")
    visitor.settle()
    assert finding(visitor) != before


@pytest.mark.slow
def test_arrow_keys_step_through_the_tests(visitor):
    visitor.open("relevance")
    first = finding(visitor)
    visitor.page.keyboard.press("ArrowRight")
    visitor.settle()
    second = finding(visitor)
    assert second != first
    # In a row of tabs, a choice and a slider the same keys mean something else: the test stays.
    for part in (
        visitor.page.get_by_role("tab", name="One test"),
        visitor.page.get_by_test_id("stButtonGroup").first.get_by_role("radio", checked=True),
        visitor.page.get_by_test_id("stSidebar").get_by_role("slider"),
    ):
        part.focus()
        visitor.page.keyboard.press("ArrowRight")
        visitor.settle()
        assert finding(visitor) == second, part
    visitor.page.get_by_role("heading", level=1).click()
    visitor.page.keyboard.press("ArrowLeft")
    visitor.settle()
    assert finding(visitor) == first
    assert visitor.faults() == []


@pytest.mark.rare
def test_heatmaps_can_be_taken_away(visitor):
    visitor.open("relevance?input=17&second=class+8")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="Heatmaps (npz)").click()
    content = np.load(io.BytesIO(download.value.path().read_bytes()), allow_pickle=False)
    assert content["test"] == 17
    assert content["first_input"].shape == content["second_input"].shape == (1, 28, 28)
    np.testing.assert_allclose(content["difference_input"], (content["first_input"] - content["second_input"])[0])
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="Pictures (PNG)").click()
    width, height = Image.open(download.value.path()).size
    assert width == 10 + 5 * (168 + 10)
    assert height > 168, "captions stand below the pictures"


@pytest.mark.rare
def test_words_keep_their_ground_and_number_on_the_page(visitor):
    visitor.open("relevance?model=Text+CNN+on+20+Newsgroups")
    words = visitor.page.get_by_test_id("stHtml").locator("span[title][style]")
    expect(words.first).to_be_visible()
    assert words.first.evaluate("w => getComputedStyle(w).backgroundColor").startswith("rgb(")
    assert words.first.get_attribute("title")[0] in "+\u2212"
