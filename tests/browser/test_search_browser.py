"""The search by keyboard alone: to a tab, a test and a term, and the list of shortcuts."""

import re

import pytest

from idc_core.base.files import SHIPPED
from studio.shell.pages import PAGES
from tests.browser.waiting import expect

pytestmark = pytest.mark.browser

# As Streamlit does: the function runs again with new data, and what a run returns is called at once where newer came.
MOUNT = """async ([html, script]) => {
    const root = document.body.attachShadow({mode: "open"});
    root.append(document.createRange().createContextualFragment(html));
    const { default: draw } = await import(URL.createObjectURL(new Blob([script], {type: "text/javascript"})));
    const terms = ["Boundary", "Silhouette", "Surprise"];
    const entries = terms.map((label) => ({kind: "term", label, says: `${label} means.`}));
    const data = {entries, keys: [["?", "Show this list"]], tests: null, searchable: false};
    window.draw = (more = {}) => draw({data: {...data, ...more}, parentElement: root, setTriggerValue() {}});
    window.draw();
    window.find = (what) => root.querySelector(what);
    window.press = (key) => (root.activeElement ?? document.documentElement).dispatchEvent(
        new KeyboardEvent("keydown", {key, bubbles: true, composed: true}));
}"""


@pytest.fixture
def alone(browser):
    """A page that holds the search and nothing else."""
    page = browser.new_page()
    page.set_content("<body></body>")
    page.evaluate(MOUNT, [(SHIPPED / "assets/search" / f"search.{kind}").read_text("utf-8") for kind in ("html", "js")])
    yield page
    page.close()


def test_a_key_counts_before_the_browser_has_painted_that_the_search_is_closed(alone):
    alone.keyboard.press("/")
    pressed = """() => {
        find(".search").close();
        const hidden = find("input").matches(":focus");
        press("?");
        return [hidden, find(".keys").open];
    }"""
    assert alone.evaluate(pressed) == [True, True]


def test_a_key_counts_where_the_data_change_while_the_page_still_draws_older_ones(alone):
    assert alone.evaluate("() => { draw()(); press('/'); return find('.search').open; }")
    assert alone.evaluate("() => { const end = draw(); document.body.remove(); end(); return find('.search').open; }")
    assert not alone.evaluate("() => { find('.search').close(); press('/'); return find('.search').open; }")


def test_new_data_leave_open_what_is_open_and_marked_and_said(alone):
    alone.keyboard.press("/")
    alone.keyboard.type("s")
    for key in ("ArrowDown", "Enter"):
        alone.keyboard.press(key)
    expect(alone.get_by_role("status")).to_have_text("Surprise: Surprise means.")
    alone.evaluate("() => { draw({keys: []}); }")
    expect(alone.get_by_role("option", selected=True)).to_contain_text("Surprise")
    expect(alone.get_by_role("status")).to_have_text("Surprise: Surprise means.")
    alone.keyboard.press("Escape")
    alone.keyboard.press("?")
    alone.evaluate("() => { draw(); }")
    expect(alone.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def search(visitor, key, text):
    """Open the search by a key, write, and return its window."""
    visitor.page.keyboard.press(key)
    window = visitor.page.get_by_role("dialog", name="Search")
    expect(window).to_be_visible()
    visitor.page.keyboard.type(text)
    return window


def test_tabs_tests_and_terms_are_found_by_keyboard(visitor):
    visitor.open("layers")
    search(visitor, "Control+k", "map of the tests")
    visitor.page.keyboard.press("Enter")
    expect(visitor.page).to_have_url(re.compile(r"/clusters\?.*tab=map"))
    visitor.settle()
    window = search(visitor, "/", "silhouette")
    visitor.page.keyboard.press("Enter")
    expect(window.get_by_role("status")).to_contain_text("Silhouette: How well values fit")
    visitor.page.keyboard.press("Escape")
    expect(window).to_be_hidden()
    visitor.page.keyboard.press("?")
    keys = visitor.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("Ctrl K or /")
    visitor.page.keyboard.press("Escape")
    window = search(visitor, "/", "3 \u2192 5")
    expect(window.get_by_role("option")).to_have_text(re.compile("Tests with \u201c3 \u2192 5\u201d"))
    visitor.page.keyboard.press("Enter")
    expect(window.get_by_role("status")).to_contain_text("test with \u201c3 \u2192 5\u201d.")
    expect(window.get_by_role("option")).to_contain_text("Test 519: 3 \u2192 5")
    # A page that is drawn anew may take the focus from the field: keys still count.
    window.get_by_role("combobox").blur()
    visitor.page.keyboard.press("Enter")
    expect(visitor.page).to_have_url(re.compile(r"/relevance\?.*input=519"))
    visitor.settle()
    assert visitor.faults() == []


def test_pages_that_do_not_apply_are_marked(visitor):
    visitor.open("learn?model=textcnn-20newsgroups")
    pages = visitor.page.get_by_test_id("stSidebarNavLink")
    marked = [text for text in pages.all_inner_texts() if "·" in text]
    assert marked == [f"{PAGES[name].title} · no pictures" for name in ("adversarial", "robustness", "differential")]
    reason = re.compile("by noise, which is defined for pictures")
    expect(pages.filter(has_text="Robustness")).to_have_accessible_description(reason)
    window = search(visitor, "/", "differential search")
    expect(window.get_by_role("option")).to_contain_text("no pictures")
    expect(window.get_by_role("status")).to_contain_text("The search changes pictures, and these tests are none.")
    visitor.page.keyboard.press("Escape")
