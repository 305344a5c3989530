"""Everything that can be used with a mouse can be reached with the Tab key alone, and shows that it is reached."""

import pytest

from pages.common.registry import PAGES

pytestmark = pytest.mark.browser

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


@pytest.mark.parametrize("name", PAGES)
def test_tab_reaches_everything(visitor, name):
    visitor.open(name if name != "overview" else "")
    names = visitor.page.evaluate(MARK)
    assert len(names) > 8
    reached = set()
    visitor.page.evaluate("() => document.activeElement.blur()")
    for _ in range(3 * len(names) + 60):
        visitor.page.keyboard.press("Tab")
        reached.add(visitor.page.evaluate(FOCUSED))
        if len(reached - {None}) == len(names):
            break
    missed = [label for index, label in enumerate(names) if str(index) not in reached]
    assert missed == []


def test_arrows_move_within_a_choice(visitor):
    visitor.open("coverage")
    chosen = visitor.page.get_by_test_id("stButtonGroup").first.get_by_role("radio", checked=True)
    before = chosen.inner_text()
    chosen.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.keyboard.press("Enter")
    visitor.settle()
    assert chosen.inner_text() != before
