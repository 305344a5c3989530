"""What every page owes: it fits a narrow window, the Tab key reaches all of it, axe-core finds no serious fault in it,
and its charts are saved from their buttons, without a network, as files that are what they say."""

import io
import itertools
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from idc_core.figures.palette import palette
from studio.shell.pages import PAGES

pytestmark = pytest.mark.browser

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
COLOURS = ["color-contrast", "link-in-text-block"]
"""Rules that look at colours, of those that are in force."""
SVG = "{http://www.w3.org/2000/svg}"
CHARTS = {"classes": "distances", "clusters": "histograms", "coverage": "grid", "overview": "grid"}
"""Pages whose first chart's files are looked into."""
STATES = ("?tour=1", "coverage?tour=7", "learn?chapter=4+Clusters", "learn?chapter=6+Empty+cells", "clusters?pin=m%3D3")
"""Addresses that show what no page shows at first."""
OPENED = [*CHARTS, *(name for name in PAGES if name not in CHARTS), *STATES]
IN_DARK = {*CHARTS, "learn", "relevance", "coverage?tour=7"}
"""What is always looked at in the dark theme: between them, all kinds of content; the others are slow."""
RETRAINED = "robustness?epochs=1&seeds=2&added=2&perturbed-by=noise&classes=3&classes=8"
"""What the page makes of little, so that it is soon complete: one epoch, few additions, and tests of two classes."""

# What can be used: not switched off, seen, and not one of the charts' own drawings, which have no focus; what
# a click on a chart does is offered by fields, tables and buttons as well.
MARK = """() => {
    const wanted = 'button, a[href], input, select, textarea, [role="slider"], [role="combobox"], summary';
    const within = root => [
        ...root.querySelectorAll(wanted),
        ...[...root.querySelectorAll('*')].filter(one => one.shadowRoot).flatMap(one => within(one.shadowRoot)),
    ];
    const usable = within(document).filter(one =>
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


@pytest.fixture(
    scope="module",
    # Retraining networks takes long, even few of them.
    params=[pytest.param(name, marks=pytest.mark.slow) if name == "robustness" else name for name in OPENED],
)
def opened(request, visit):
    """The name or address of a page, and a visit to it, opened once for all that is asked of it."""
    with visit() as visitor:
        visitor.open(RETRAINED if request.param == "robustness" else request.param)
        if request.param == "robustness":
            visitor.page.locator('[data-testid="stImage"] img').nth(1).wait_for(timeout=90_000)
            expect(visitor.page.get_by_role("button", name="Stop", exact=True)).to_have_count(0, timeout=90_000)
            visitor.settle()
        yield request.param, visitor


def title_of(visitor):
    """What the first line of buttons says it saves."""
    group = visitor.page.locator('[class*="st-key-save-"]').first.get_by_role("group")
    return group.get_attribute("aria-label").removeprefix("Save the chart ")


def texts(root):
    """All writing of an SVG, line breaks as spaces."""
    return " ".join(" ".join(part.itertext()) for part in root.iter(f"{SVG}text"))


def serious_violations(page, colours_only=False) -> list[str]:
    """Names of the serious rules that a page breaks, with the elements that do."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    rules = {"runOnly": {"type": "rule", "values": COLOURS}} if colours_only else {}
    found = page.evaluate("rules => axe.run(document, {resultTypes: ['violations'], ...rules})", rules)
    assert len(found["passes"]) > (0 if colours_only else 10), "the checker looked at hardly anything"
    return [
        f"{rule['id']} ({rule['impact']}): {json.dumps([node['html'][:200] for node in rule['nodes'][:3]])}"
        for rule in found["violations"]
        if rule["impact"] in SERIOUS
    ]


def test_it_opens_without_an_error_and_without_the_network(opened):
    name, visitor = opened
    assert visitor.page.get_by_test_id("stException").count() == 0
    if name in PAGES:
        assert PAGES[name].title in visitor.page.title()
        if name != "learn":  # it brings a network of its own
            assert "LeNet-5 · digits · layer fc2 · m = 6 · " in visitor.setup()
    assert visitor.faults() == []


def test_no_serious_violation(opened):
    assert serious_violations(opened[1].page) == []


@pytest.mark.parametrize(
    "opened",
    [name if name in IN_DARK else pytest.param(name, marks=pytest.mark.slow) for name in OPENED],
    indirect=True,
)
def test_no_serious_violation_in_the_dark(opened):
    """The dark theme has other colours, and nothing else that the checker looks at."""
    visitor = opened[1]
    visitor.show("dark")
    assert serious_violations(visitor.page, colours_only=True) == []


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("opened", CHARTS, indirect=True)
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
    assert file == f"idc-{CHARTS[name]}.png"
    assert picture.format == "PNG"
    assert (pixels[..., 3] == 255).all(), "nothing shines through"
    assert len(np.unique(pixels.view(np.uint32))) > 20
    file, content = visitor.save("SVG")
    assert file == f"idc-{CHARTS[name]}.svg"
    root = ElementTree.fromstring(content)
    assert root.tag == f"{SVG}svg"
    size = [float(root.get(side)) for side in ("width", "height")]
    assert picture.size == pytest.approx([2 * length for length in size], abs=2), "twice as fine as on the screen"
    finding = title_of(visitor).removeprefix("Grid of combinations: ")
    if name == "clusters":
        finding = "The activations of the important neurons form"
    assert finding in re.sub(r"\s+", " ", texts(root))


# The grids of the overview and of Coverage are one drawing.
@pytest.mark.parametrize(
    "opened",
    [pytest.param(name, marks=pytest.mark.slow) if name == "overview" else name for name in CHARTS],
    indirect=True,
)
def test_saved_pages_stay_interactive_without_a_network(opened, browser, tmp_path):
    name, visitor = opened
    title = title_of(visitor)
    file, content = visitor.save("HTML")
    assert file == f"idc-{CHARTS[name]}.html"
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
    said = visitor.page.locator('[class*="st-key-save-"]').first.get_by_test_id("stCaptionContainer").inner_text()
    assert said in text
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


def test_the_last_chart_can_be_saved(opened):
    name, visitor = opened
    rows = visitor.page.locator('[class*="st-key-save-"]').count()
    if name == "learn":  # begins with a network to play with, which is no chart
        assert rows == 0
        return
    assert rows
    for form, start in {"PNG": b"\x89PNG", "SVG": b"<svg", "HTML": b"<!DOCTYPE html>"}.items():
        _, content = visitor.save(form, rows - 1)
        assert content.startswith(start)


def test_tab_reaches_everything(opened):
    page = opened[1].page
    names = page.evaluate(MARK)
    assert len(names) > 8
    page.evaluate("() => document.activeElement.blur()")
    for pressed in range(1, 3 * len(names) + 61):
        page.keyboard.press("Tab")
        if pressed % 10 == 0 and page.evaluate(MISSED, len(names)) == []:
            break
    assert [names[index] for index in page.evaluate(MISSED, len(names))] == []


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


def test_arrows_move_within_a_choice(visitor):
    visitor.open("learn")
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
    assert serious_violations(visitor.page) == []


@pytest.mark.slow
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


def test_the_checker_sees_a_violation(visitor):
    visitor.open("learn")
    visitor.page.evaluate("() => document.querySelector('h1').insertAdjacentHTML('afterend', '<img src=\"data:,\">')")
    assert any(text.startswith("image-alt") for text in serious_violations(visitor.page))
