"""The guided tour as a person takes it: offered, declined, remembered, opened again, and by keyboard alone."""

import re

import pytest

from studio.shell.pages import PAGES
from studio.shell.tour_steps import STEPS
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser

FOCUSED = "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"


def offer(visitor):
    return visitor.page.get_by_role("region", name="Guided tour").get_by_role("button", name="Take the tour")


def panel(visitor):
    return visitor.page.locator(".st-key-tour-panel")


def remembered(visitor):
    return visitor.page.evaluate("() => localStorage.getItem('idc-studio-tour')")


def at_step(visitor, number):
    expect(panel(visitor).get_by_role("heading")).to_have_text(re.compile(f"^Tour, step {number} of {len(STEPS)}: "))
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(PAGES[STEPS[number - 1].page].question)
    visitor.settle()
    expect(panel(visitor)).to_be_focused()


def tab_to(visitor, name):
    """Press the tabulator until a button has the focus; from the panel it takes a few steps."""
    for _ in range(6):
        visitor.page.keyboard.press("Tab")
        if re.match(name, visitor.page.evaluate(FOCUSED) or ""):
            return
    pytest.fail(f"the tabulator did not reach {name!r}; it is on {visitor.page.evaluate(FOCUSED)!r}")


def walk(visitor, number):
    """Go on from a step by keyboard."""
    at_step(visitor, number)
    assert visitor.page.get_by_test_id("stMain").evaluate("main => main.scrollTop") == 0, "the step begins at its top"
    tab_to(visitor, f"Next: {PAGES[STEPS[number].page].title}" if number < len(STEPS) else "Finish")
    visitor.page.keyboard.press("Enter")


@pytest.mark.slow
def test_a_new_visitor_may_decline_and_is_not_asked_again(visitor):
    visitor.open()
    expect(offer(visitor)).to_have_text("Take the tour: 7 steps, about three minutes")
    assert "83 of 192" in visitor.text(), "the offer hides nothing"
    visitor.page.get_by_role("button", name="Not now").click()
    expect(offer(visitor)).to_be_hidden()
    expect(visitor.page.get_by_role("heading", level=1)).to_be_focused()
    assert remembered(visitor) == "declined"
    visitor.page.reload()
    visitor.settle()
    expect(visitor.page.get_by_test_id("stMetric").first).to_be_visible()
    expect(offer(visitor)).to_be_hidden()
    expect(panel(visitor)).to_have_count(0)
    assert visitor.errors == []


@pytest.mark.rare
def test_skipped_remembered_and_opened_again(visitor):
    visitor.open()
    offer(visitor).focus()
    visitor.page.keyboard.press("Enter")
    walk(visitor, 1)
    at_step(visitor, 2)
    expect(visitor.page).to_have_url(re.compile(r"/relevance\?.*tour=2"))
    visitor.page.get_by_role("button", name="Skip the tour").click()
    expect(panel(visitor)).to_have_count(0)
    visitor.settle()
    expect(visitor.page.get_by_role("heading", level=1)).to_be_focused()
    assert remembered(visitor) == "skipped"
    visitor.open()
    expect(visitor.page.get_by_test_id("stMetric").first).to_be_visible()
    expect(offer(visitor)).to_be_hidden()
    visitor.page.get_by_role("button", name="Tour", exact=True).click()
    at_step(visitor, 1)
    assert visitor.errors == []


@pytest.mark.parametrize(
    "first", [pytest.param(1, marks=pytest.mark.rare), pytest.param(len(STEPS) - 1, marks=pytest.mark.slow)]
)
def test_by_keyboard_alone_to_the_finding(visitor, first):
    """The way from the offer over the first step is above, those from later steps are slow or rare."""
    if first == 1:
        visitor.open()
        offer(visitor).focus()
        visitor.page.keyboard.press("Enter")
    else:
        visitor.open(f"{STEPS[first - 1].page}?tour={first}")
        panel(visitor).focus()  # opened by its address, a page leaves the focus where it was
    for number in range(first, len(STEPS) + 1):
        walk(visitor, number)
    expect(panel(visitor)).to_have_count(0)
    visitor.settle()
    assert remembered(visitor) == "finished"
    assert "Tests closest to cell " in visitor.text()
    assert visitor.faults() == []


@pytest.mark.slow
def test_the_panel_stays_in_view_beside_what_it_tells_to_look_at(visitor):
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    visitor.open("clusters?tour=4")
    expect(panel(visitor)).to_be_in_viewport(ratio=1)
    heading = visitor.page.get_by_role("heading", name=re.compile("^Cluster 0"))
    heading.evaluate("one => one.scrollIntoView({block: 'end'})")
    expect(heading).to_be_in_viewport(ratio=0.9)
    expect(panel(visitor)).to_be_in_viewport(ratio=1)
    over, under = panel(visitor).bounding_box(), visitor.page.get_by_test_id("stHeader").bounding_box()
    assert over["y"] >= under["y"] + under["height"] - 1


@pytest.mark.rare
def test_a_copied_address_opens_the_step_for_someone_else(visitor, stranger):
    visitor.open("clusters?tour=4")
    expect(visitor.page).to_have_url(re.compile("neuron="))
    copied, words = visitor.page.url, panel(visitor).inner_text()
    stranger.page.goto(copied)
    expect(stranger.page.get_by_role("button", name="Skip the tour")).to_be_visible()
    assert panel(stranger).inner_text() == words
