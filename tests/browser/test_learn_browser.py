"""The Learn page as a person uses it: dragging, arrow keys, and an address to pass on."""

import re

import pytest

from studio.shell.pages import PAGES
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser

RELEVANCE = "2 Relevance"


def open_learn(visitor, chapter=RELEVANCE):
    """Open a chapter by its address."""
    visitor.open(f"learn?tab={next(name for name, title in PAGES['learn'].tabs.items() if title == chapter)}")
    expect(visitor.page.get_by_role("tab", name=chapter)).to_have_attribute("aria-selected", "true")


def slider(visitor, name):
    return visitor.page.get_by_role("slider", name=name, exact=True)


def drawn_sums(visitor):
    """Relevance of every layer as the browser adds it up."""
    texts = visitor.page.locator("[data-sum]").all_text_contents()
    return [float(re.search(r"[\u2212]?\d+\.\d\d$", text)[0].replace("\u2212", "-")) for text in texts]


def engine_sums(visitor):
    """Relevance of every layer as the engine adds it up."""
    return [float(text) for text in visitor.page.get_by_test_id("stMetricValue").all_text_contents()]


def drag(visitor, target, up, *, drop=True):
    """Press on a line or an input, move upwards by so many pixels, and let go."""
    page = visitor.page
    # A point of the line that no other one crosses, or of the input's frame.
    x, y = target.locator(".hit, .shape").first.evaluate(
        """shape => {
            const point = shape.getPointAtLength(0.4 * shape.getTotalLength()).matrixTransform(shape.getScreenCTM());
            return [point.x, point.y];
        }"""
    )
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - up, steps=5)
    if drop:
        page.mouse.up()
        visitor.settle()


def expect_the_engine_to_agree(visitor):
    """Wait until the engine's sums, to three digits, are the drawn ones, to two."""
    (drawn,) = set(drawn_sums(visitor))
    near = "|".join(f"{drawn + thousandths / 1000:.3f}" for thousandths in range(-5, 6))
    expect(visitor.page.get_by_test_id("stMetricValue")).to_have_text([re.compile(f"^({near})$")] * 4)
    assert len(set(engine_sums(visitor))) == 1


def test_dragging_a_weight_changes_relevance_and_it_still_adds_up(visitor):
    visitor.open()
    visitor.follow("learn")
    visitor.page.get_by_role("tab", name=RELEVANCE).click()
    expect(visitor.page.get_by_role("tab", name=RELEVANCE)).to_have_attribute("aria-selected", "true")
    visitor.settle()
    target = slider(visitor, "weight from top to a1")
    before, weight = drawn_sums(visitor), float(target.get_attribute("aria-valuenow"))
    formula = visitor.page.locator(".katex").first.text_content()
    drag(visitor, target, 60, drop=False)
    while_dragging = drawn_sums(visitor)
    assert while_dragging[0] > before[0] + 0.1
    assert len(set(while_dragging)) == 1
    assert engine_sums(visitor)[0] == pytest.approx(before[0], abs=0.01)  # it waits for the hand to let go
    visitor.page.mouse.up()
    visitor.settle()
    assert float(target.get_attribute("aria-valuenow")) == pytest.approx(weight + 0.65)
    assert drawn_sums(visitor) == while_dragging
    expect_the_engine_to_agree(visitor)
    assert visitor.page.locator(".katex").first.text_content() != formula
    assert visitor.errors == []


@pytest.mark.slow
def test_dragging_an_input_changes_the_answer(visitor):
    open_learn(visitor, "1 A network")
    expect(visitor.page.get_by_text("Predicted: seven")).to_be_visible()
    drag(visitor, slider(visitor, "ink at the top"), -120)
    expect(slider(visitor, "ink at the top")).to_have_attribute("aria-valuenow", "0.00")
    expect(visitor.page.get_by_text("Predicted: one")).to_be_visible()
    assert visitor.faults() == []


@pytest.mark.slow
def test_arrow_keys_do_the_same(visitor):
    open_learn(visitor)
    target = slider(visitor, "weight from a1 to b1")
    before = drawn_sums(visitor)
    target.focus()
    for _ in range(4):
        visitor.page.keyboard.press("ArrowUp")
    visitor.settle()
    expect(target).to_have_attribute("aria-valuenow", "1.20")
    after = drawn_sums(visitor)
    assert after[0] > before[0]
    expect_the_engine_to_agree(visitor)
    expect(target).to_be_focused()
    visitor.page.keyboard.press("End")
    visitor.settle()
    expect(target).to_have_attribute("aria-valuenow", "2.00")
    visitor.page.keyboard.press("ArrowUp")
    expect(target).to_have_attribute("aria-valuenow", "2.00")
    visitor.page.get_by_text("The equation", exact=True).click()
    expect(visitor.page.get_by_text("Relevance of the line from a1 to b1")).to_be_visible()
    assert visitor.faults() == []


@pytest.mark.rare
def test_every_line_and_input_can_be_reached_with_the_keyboard(visitor):
    open_learn(visitor)
    visitor.page.get_by_role("slider", name="weight from top to a1", exact=True).focus()
    names = []
    for _ in range(22):
        names.append(
            visitor.page.evaluate(
                "() => {let e = document.activeElement;"
                "while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;"
                "return e.getAttribute('aria-label');}"
            )
        )
        visitor.page.keyboard.press("Tab")
    assert len(set(names)) == 22
    assert sum(name.startswith("weight from") for name in names) == 19
    assert sum(name.startswith("ink at the") for name in names) == 3


@pytest.mark.rare
def test_a_copied_address_shows_the_same_network(visitor, stranger):
    open_learn(visitor)
    drag(visitor, slider(visitor, "weight from a2 to b1"), 90)
    expect(visitor.page).to_have_url(re.compile("line=a2-b1"))
    visitor.settle()
    sums, address = drawn_sums(visitor), visitor.page.url
    stranger.open(address.removeprefix(visitor.address).lstrip("/"))
    expect(slider(stranger, "weight from a2 to b1")).to_have_attribute("aria-valuenow", "1.10")
    assert drawn_sums(stranger) == sums
    stranger.page.get_by_text("The equation", exact=True).click()
    expect(stranger.page.get_by_text("Relevance of the line from a2 to b1")).to_be_visible()


@pytest.mark.slow
def test_the_network_outlives_chapters_and_pages_and_can_be_put_back(visitor):
    open_learn(visitor)
    drag(visitor, slider(visitor, "ink at the middle"), 45)
    expect(slider(visitor, "ink at the middle")).to_have_attribute("aria-valuenow", "1.00")
    visitor.page.get_by_role("tab", name="1 A network").click()
    visitor.settle()
    expect(slider(visitor, "ink at the middle")).to_have_attribute("aria-valuenow", "1.00")
    for name in ("overview", "learn"):
        visitor.follow(name)
    expect(slider(visitor, "ink at the middle")).to_have_attribute("aria-valuenow", "1.00")
    assert "net=90_100_40_" in visitor.page.url
    visitor.page.get_by_role("button", name="Reset", exact=True).click()
    visitor.settle()
    expect(slider(visitor, "ink at the middle")).to_have_attribute("aria-valuenow", "0.50")
    assert "net=" not in visitor.page.url
    assert visitor.faults() == []


@pytest.mark.parametrize(
    "first", [pytest.param("", marks=pytest.mark.rare), pytest.param("learn", marks=pytest.mark.slow)]
)
def test_the_setup_waits_on_the_other_pages(visitor, first):
    visitor.open(f"{first}?m=3")
    for name in ("learn", "coverage"):
        visitor.follow(name)
    assert "m = 3" in visitor.setup()
    assert "m=3" in visitor.page.url


@pytest.mark.slow
def test_next_begins_at_the_top_of_the_chapter(visitor):
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    open_learn(visitor, "1 A network")
    main = visitor.page.get_by_test_id("stMain")
    for heading in ("Which input decided?", "Which neurons matter?"):
        network = visitor.page.locator(".network svg")
        assert main.evaluate("one => one.scrollTop") == 0
        box = network.bounding_box()
        assert box["y"] + box["height"] <= 720, "the whole network is above the fold"
        visitor.page.get_by_role("button", name=re.compile("^Next")).click()
        visitor.page.wait_for_function(
            "text => document.activeElement.matches('h2') && document.activeElement.innerText === text", arg=heading
        )
        visitor.settle()
    assert main.evaluate("one => one.scrollTop") == 0
    assert visitor.faults() == []


@pytest.mark.parametrize(
    "chapter",
    [pytest.param(name, marks=() if index < 2 else pytest.mark.rare) for index, name in enumerate(PAGES["learn"].tabs)],
)
def test_a_presented_chapter_is_on_one_screen(visitor, chapter):
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    visitor.open(f"learn?story=lesson&tab={chapter}")
    main = visitor.page.get_by_test_id("stMain")
    assert main.evaluate("it => [it.scrollHeight <= it.clientHeight, it.scrollWidth <= it.clientWidth]") == [True] * 2
