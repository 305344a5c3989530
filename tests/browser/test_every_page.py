"""What every page owes: it fits a narrow window, the Tab key reaches all of it, axe-core finds no serious fault in it,
and its charts are saved from their buttons, without a network, as files that are what they say."""

import io
import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from idc_core.figures.palette import palette
from studio.shell.pages import PAGES
from tests.browser.violations import MAIN, PANEL, serious_violations
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"
CHARTS = {"classes": "confusion-matrix", "clusters": "histograms", "coverage": "grid", "overview": "grid"}
"""Pages whose first chart's files are looked into."""
STATES = ("?tour=1", "coverage?tour=7", "learn?tab=clusters", "learn?tab=empty", "clusters?pin=m%3D3")
"""Addresses that show what no page shows at first."""
OPENED = [*CHARTS, *(name for name in PAGES if name not in CHARTS), *STATES]
ALWAYS = {"overview", "coverage", "library"}
"""What `make test` looks at: charts, controls, tables and uploads; the other pages are slow."""
RARE = {name for name, page in PAGES.items() if page.tabs and name not in {*ALWAYS, "clusters", "learn"}}
RARE |= {"coverage?tour=7", "learn?tab=empty", "learn?tab=clusters"}
"""Pages whose kinds of content others have too, and further steps: every tab of theirs is looked at more briefly."""
WHOLE = ("overview", "clusters?pin=m%3D3")
"""Where navigation and sidebar are looked at too: the other pages have the same, without or with a pinned setup."""
RETRAINED = "robustness?epochs=1&seeds=2&added=2&perturbed-by=noise&classes=3&classes=8"
"""What the page makes of little, so that it is soon complete: one epoch, few additions, and tests of two classes."""

TABBED = [name for name, page in PAGES.items() if page.tabs]
MIXED = ("learn", "clusters")
"""Pages whose tabs hold most of what the tabs of the others are made of: a network, words, pictures, charts, tables."""
WIDE, NARROW = {"width": 1440, "height": 1200}, {"width": 800, "height": 900}

TALLEST = 1_800
"""Pixels of a tab at most, at 1440 x 1200: two screens, and what explains it on the first visit."""

# What can be used: not switched off, seen, and not one of the charts' own drawings, which have no focus; what
# a click on a chart does is offered by fields, tables and buttons as well.
MARK = """where => {
    const wanted = 'button, a[href], input, select, textarea, [role="slider"], [role="combobox"], summary';
    const within = root => [
        ...root.querySelectorAll(wanted),
        ...[...root.querySelectorAll('*')].filter(one => one.shadowRoot).flatMap(one => within(one.shadowRoot)),
    ];
    const usable = within(document.querySelector(where)).filter(one =>
        !one.disabled && one.checkVisibility({visibilityProperty: true, opacityProperty: false})
        && !one.closest('.js-plotly-plot, .plotly-notifier, [aria-hidden="true"], [data-testid="stElementToolbar"]')
        && one.getAttribute('tabindex') !== '-1' && one.type !== 'file');
    // The keys of a choice of several move within it, so that it is one stop.
    const stops = usable.filter((one, index) => {
        const group = one.closest('[data-testid="stButtonGroup"]');
        return !group || usable.findIndex(other => group.contains(other)) === index;
    });
    stops.forEach((one, index) =>
        (one.closest('[data-testid="stButtonGroup"]') ?? one).dataset.keyboard = index);
    // Noted as it happens: what moves within a shadow root is not told outside it.
    const reached = window.reached = new Set();
    const note = event => reached.add(event.composedPath()[0].closest('[data-keyboard]')?.dataset.keyboard);
    const listen = root => {
        root.addEventListener('focusin', note);
        root.querySelectorAll('*').forEach(one => one.shadowRoot && listen(one.shadowRoot));
    };
    listen(document);
    return stops.map(one => one.getAttribute('aria-label') || one.innerText || one.outerHTML.slice(0, 120));
}"""

MISSED = "all => [...Array(all).keys()].filter(index => !window.reached.has(String(index)))"


# The grids of the overview and of Coverage are one drawing.
MOST_CHARTS = [
    "coverage",
    pytest.param("clusters", marks=pytest.mark.slow),
    *(pytest.param(name, marks=pytest.mark.rare) for name in ("overview", "classes")),
]
AS_OPENED = [
    pytest.param(name, marks=() if name in ALWAYS else pytest.mark.rare if name in RARE else pytest.mark.slow)
    for name in OPENED
]


@pytest.fixture(scope="module", params=AS_OPENED)
def opened(request, visit):
    """The name or address of a page, and a visit to it, opened once for all that is asked of it."""
    with visit() as visitor:
        enter(visitor, RETRAINED if request.param == "robustness" else request.param)
        if request.param == "robustness":
            visitor.page.get_by_role("button", name="Start", exact=True).click()
            visitor.page.locator(".js-plotly-plot").first.wait_for()
            expect(visitor.page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
            visitor.settle()
        yield request.param, visitor


def enter(visitor, name):
    """Open a page or an address; Runs once there is a run."""
    if name == "runs":
        visitor.open("coverage")
    visitor.open(name)


def own_part(name) -> str:
    """What of a page no other page has: all of it, its main area, or the tour's panel over a page that is there too."""
    return PANEL if "tour=" in name else "html" if name in WHOLE else MAIN


def title_of(visitor):
    """What the first line of buttons says it saves."""
    visitor.export()
    group = visitor.page.get_by_test_id("stPopoverBody").get_by_role("group", name="Save the chart")
    return group.get_attribute("aria-label").removeprefix("Save the chart ")


def texts(root):
    """All writing of an SVG, line breaks as spaces."""
    return " ".join(" ".join(part.itertext()) for part in root.iter(f"{SVG}text"))


def test_it_opens_without_an_error_and_without_the_network(opened):
    name, visitor = opened
    assert visitor.page.get_by_test_id("stException").count() == 0
    if name in PAGES:
        assert PAGES[name].title in visitor.page.title()
        if PAGES[name].setup != "none":
            assert "LeNet-5 · digits · layer fc2 · m = 6 · " in visitor.setup()
    assert visitor.faults() == []


def test_no_serious_violation(opened):
    name, visitor = opened
    assert serious_violations(visitor.page, own_part(name)) == []


def test_no_serious_violation_in_the_dark(opened):
    """The dark theme has other colours, and nothing else that the checker looks at."""
    name, visitor = opened
    visitor.show("dark")
    assert serious_violations(visitor.page, own_part(name), colours_only=True) == []


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("opened", MOST_CHARTS, indirect=True)
def test_pictures_have_their_own_ground_and_the_whole_chart(opened, scheme):
    name, visitor = opened
    visitor.show(scheme)
    wanted = tuple(int(palette(scheme == "dark").ground[i : i + 2], 16) for i in (1, 3, 5))
    for _ in range(20):  # the server draws the chart anew for the other theme, which takes a while beside other work
        file, content = visitor.save("PNG")
        picture = Image.open(io.BytesIO(content))
        pixels = np.asarray(picture.convert("RGBA"))
        corners = {tuple(map(int, corner)) for corner in pixels[[2, 2, -3, -3], [2, -3, 2, -3], :3]}
        if corners == {wanted}:
            break
        visitor.page.wait_for_timeout(250)
    assert corners == {wanted}
    assert re.fullmatch(rf"idc-{CHARTS[name]}_lenet5-digits_digits_fc2_m6_[\d-]{{10}}\.png", file)
    assert picture.format == "PNG"
    assert (pixels[..., 3] == 255).all(), "nothing shines through"
    assert len(np.unique(pixels.view(np.uint32))) > 20
    file, content = visitor.save("SVG")
    assert re.fullmatch(rf"idc-{CHARTS[name]}_.*\.svg", file)
    root = ElementTree.fromstring(content)
    assert root.tag == f"{SVG}svg"
    size = [float(root.get(side)) for side in ("width", "height")]
    assert picture.size == pytest.approx([2 * length for length in size], abs=2), "twice as fine as on the screen"
    assert title_of(visitor) in re.sub(r"\s+", " ", texts(root))


@pytest.mark.parametrize("opened", MOST_CHARTS, indirect=True)
def test_saved_pages_stay_interactive_without_a_network(opened, browser, tmp_path):
    name, visitor = opened
    title = title_of(visitor)
    file, content = visitor.save("HTML")
    assert re.fullmatch(rf"idc-{CHARTS[name]}_.*\.html", file)
    (tmp_path / file).write_bytes(content)
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / file).as_uri())
    assert page.title() == title
    expect(page.locator(".js-plotly-plot .gtitle")).to_be_visible()
    text = page.locator("body").inner_text()
    assert "LeNet-5 · digits · layer fc2 · m = 6 · 540 tests" in text
    row = visitor.page.locator('[class*="st-key-save-"]').first
    assert row.get_by_test_id("stCaptionContainer").inner_text() in text
    # What lies under the pointer is said: the figure is alive.
    box = page.locator(".nsewdrag").first.bounding_box()
    for step in range(1, 40):
        page.mouse.move(box["x"] + step * box["width"] / 40, box["y"] + box["height"] * (0.9 - 0.01 * step))
        page.wait_for_timeout(30)
        if page.locator(".hovertext").count():
            break
    assert page.locator(".hovertext").count()
    buttons = "() => document.querySelector('.js-plotly-plot')._fullLayout._modeBar.buttons.flat().map(one => one.name)"
    offered = page.evaluate(buttons)
    assert "toImage" in offered
    assert not [button for button in offered if "Cloud" in button], "nothing is sent away"
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert errors == []
    page.close()


@pytest.mark.parametrize("opened", [one for one in AS_OPENED if "tour=" not in str(one)], indirect=True)
def test_the_last_chart_can_be_saved(opened):
    name, visitor = opened
    rows = visitor.page.locator('[class*="st-key-save-"]').count()
    # They begin with a network to play with, a list, cards, and pictures of tests.
    if name in ("learn", "library", "runs", "stories", "neurons", "relevance", "adversarial", "differential"):
        assert rows == 0
        return
    assert rows
    for form, start in {"PNG": b"\x89PNG", "SVG": b"<svg", "HTML": b"<!DOCTYPE html>"}.items():
        _, content = visitor.save(form, rows - 1)
        assert content.startswith(start)


def test_tab_reaches_everything(opened):
    part, page = own_part(opened[0]), opened[1].page
    names = page.evaluate(MARK, part)
    assert len(names) > (8 if part == "html" else 1)
    # Half the presses would go through the charts' own buttons, which are all alike; on whole pages they do.
    style = page.add_style_tag(content=f".js-plotly-plot {{visibility: {'hidden' if part == MAIN else 'inherit'}}}")
    # Tab goes on from here.
    page.evaluate("() => document.activeElement.blur()")
    page.locator(part).focus()
    for pressed in range(1, 3 * len(names) + 61):
        page.keyboard.press("Tab")
        if pressed % 5 == 0 and page.evaluate(MISSED, len(names)) == []:
            break
    assert [names[index] for index in page.evaluate(MISSED, len(names))] == []
    style.evaluate("one => one.remove()")


def test_nothing_scrolls_sideways_in_a_narrow_window(opened):
    name, visitor = opened
    visitor.page.set_viewport_size({"width": 800, "height": 900})
    visitor.settle()
    main = visitor.page.get_by_test_id("stMain")
    assert main.evaluate("m => m.scrollWidth - m.clientWidth") <= 1
    levels = visitor.page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    if name == "overview":
        expect(visitor.page.get_by_role("region", name="Guided tour").get_by_role("button").first).to_be_visible()
    if "tour=" in name:
        expect(visitor.page.locator(".st-key-tour-panel")).to_be_visible()
    assert visitor.faults() == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in MIXED else pytest.mark.rare) for name in TABBED]
)
def test_every_tab_is_short_and_sound(visitor, name):
    """Two screens at most; no error, no serious violation, and nothing wider than the window, wide or narrow."""
    enter(visitor, name)
    main = visitor.page.get_by_test_id("stMain")
    for place, title in enumerate(PAGES[name].tabs.values()):
        open_tab(visitor, name, title)
        # Every other tab is opened in the narrow window: so that its charts change their size once.
        for size in (WIDE, NARROW)[:: -1 if place % 2 else 1]:
            if visitor.page.viewport_size != size:
                visitor.page.set_viewport_size(size)
                visitor.settle()
            assert main.evaluate("m => m.scrollWidth - m.clientWidth") <= 1, title
            if size == WIDE:
                assert main.evaluate("m => m.scrollHeight") <= TALLEST, title
                assert serious_violations(visitor.page, MAIN) == [], title
    assert visitor.faults() == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in MIXED else pytest.mark.rare) for name in TABBED]
)
def test_no_tab_has_a_serious_violation_in_the_dark(visitor, name):
    enter(visitor, name)
    visitor.show("dark")
    for title in PAGES[name].tabs.values():
        open_tab(visitor, name, title)
        assert serious_violations(visitor.page, MAIN, colours_only=True) == [], title


def open_tab(visitor, name, title):
    """Click a tab; the address names it unless it is the first."""
    visitor.page.get_by_role("tab", name=title, exact=True).click()
    visitor.settle()
    place, tab = next((place, tab) for place, tab in enumerate(PAGES[name].tabs) if PAGES[name].tabs[tab] == title)
    assert (f"tab={tab}" in visitor.page.url) == (place > 0)
    assert visitor.page.get_by_test_id("stException").count() == 0


@pytest.mark.slow
def test_arrows_move_within_a_choice(visitor):
    visitor.open("learn?tab=relevance")
    chosen = visitor.page.get_by_test_id("stButtonGroup").first.get_by_role("radio", checked=True)
    before = chosen.inner_text()
    chosen.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.keyboard.press("Enter")
    visitor.settle()
    assert chosen.inner_text() != before


@pytest.mark.slow
def test_no_serious_violation_while_networks_are_retrained(visitor):
    visitor.open("robustness?epochs=2&seeds=2")
    visitor.page.get_by_role("button", name="Start", exact=True).click()
    visitor.page.locator(".st-key-retraining-stop").wait_for()
    assert serious_violations(visitor.page) == []


@pytest.mark.rare
def test_charts_follow_the_theme(visitor):
    visitor.open("layers")
    writing = visitor.page.locator(".js-plotly-plot .main-svg .gtitle").first
    light = writing.evaluate("one => getComputedStyle(one).fill")
    visitor.page.get_by_test_id("stMainMenu").click()
    visitor.page.get_by_test_id("stMainMenuItem-theme-Dark").click()
    expect(writing).not_to_have_css("fill", light)
    visitor.settle()
    dark = writing.evaluate("one => getComputedStyle(one).fill")
    visitor.page.reload()
    visitor.settle()
    assert writing.evaluate("one => getComputedStyle(one).fill") == dark


@pytest.mark.slow
def test_the_checker_sees_a_violation(visitor):
    visitor.open("learn")
    visitor.page.evaluate("() => document.querySelector('h1').insertAdjacentHTML('afterend', '<img src=\"data:,\">')")
    assert any(text.startswith("image-alt") for text in serious_violations(visitor.page))
