"""What every page owes: it fits a narrow window, the Tab key reaches all of it, and axe-core finds no serious fault."""

import itertools
import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from studio.shell.pages import PAGES

pytestmark = pytest.mark.browser

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
STATES = ("?tour=1", "coverage?tour=7", "learn?chapter=4+Clusters", "learn?chapter=6+Empty+cells", "clusters?pin=m%3D3")
"""Addresses that show what no page shows at first."""
RETRAINED = "robustness?epochs=1&seeds=2"
"""What the page makes of few epochs, so that it is soon complete."""

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
        && !one.closest('.js-plotly-plot, [aria-hidden="true"], [data-testid="stElementToolbar"]')
        && one.getAttribute('tabindex') !== '-1' && one.type !== 'file');
    // The keys of a choice of several move within it, so that it is one stop.
    const stops = usable.filter((one, index) => {
        const group = one.closest('[data-testid="stButtonGroup"]');
        return !group || usable.findIndex(other => group.contains(other)) === index;
    });
    stops.forEach((one, index) =>
        (one.closest('[data-testid="stButtonGroup"]') ?? one).dataset.keyboard = index);
    return stops.map(one => one.getAttribute('aria-label') || one.innerText || one.outerHTML.slice(0, 120));
}"""

FOCUSED = """() => {
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    return one?.closest('[data-keyboard]')?.dataset.keyboard ?? null;
}"""


@pytest.fixture(scope="module", params=[*PAGES, *STATES])
def opened(request, visit):
    """A page, or a state of one, opened once for all that is asked of it."""
    with visit() as visitor:
        visitor.open(RETRAINED if request.param == "robustness" else request.param)
        if request.param == "robustness":
            visitor.page.locator('[data-testid="stImage"] img').nth(1).wait_for(timeout=90_000)
            expect(visitor.page.get_by_role("button", name="Stop", exact=True)).to_have_count(0, timeout=90_000)
            visitor.settle()
        yield visitor


def serious_violations(page) -> list[str]:
    """Names of the serious rules that a page breaks, with the elements that do."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 10, "the checker looked at hardly anything"
    return [
        f"{rule['id']} ({rule['impact']}): {json.dumps([node['html'][:200] for node in rule['nodes'][:3]])}"
        for rule in found["violations"]
        if rule["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_violation(opened, scheme):
    opened.show(scheme)
    assert serious_violations(opened.page) == []


def test_the_last_chart_can_be_saved(opened):
    rows = opened.page.locator('[class*="st-key-save-"]').count()
    if opened.page.url.endswith("/learn"):  # begins with a network to play with, which is no chart
        assert rows == 0
        return
    assert rows
    for form, start in {"PNG": b"\x89PNG", "SVG": b"<svg", "HTML": b"<!DOCTYPE html>"}.items():
        _, content = opened.save(form, rows - 1)
        assert content.startswith(start)


def test_tab_reaches_everything(opened):
    page = opened.page
    names = page.evaluate(MARK)
    assert len(names) > 8
    reached = set()
    page.evaluate("() => document.activeElement.blur()")
    for _ in range(3 * len(names) + 60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(FOCUSED))
        if len(reached - {None}) == len(names):
            break
    missed = [label for index, label in enumerate(names) if str(index) not in reached]
    assert missed == []


def test_nothing_scrolls_sideways_in_a_narrow_window(opened):
    opened.page.set_viewport_size({"width": 800, "height": 900})
    opened.settle()
    main = opened.page.get_by_test_id("stMain")
    assert main.evaluate("m => m.scrollWidth - m.clientWidth") <= 1
    levels = opened.page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_arrows_move_within_a_choice(visitor):
    visitor.open("coverage")
    chosen = visitor.page.get_by_test_id("stButtonGroup").first.get_by_role("radio", checked=True)
    before = chosen.inner_text()
    chosen.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.keyboard.press("Enter")
    visitor.settle()
    assert chosen.inner_text() != before


def test_no_serious_violation_while_networks_are_retrained(visitor):
    visitor.open("robustness?epochs=2&seeds=2")
    assert serious_violations(visitor.page) == []


def test_charts_follow_the_theme(visitor):
    visitor.open("clusters")
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
