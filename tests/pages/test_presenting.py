"""Presentation mode: every view in turn, and back; the address keeps it."""

from studio.shell import presenting, tabs
from studio.shell.pages import PAGES
from tests.pages.reading import TABS, open_page, text


def test_every_tab_is_a_view_once():
    slides = presenting._slides()
    assert len(set(slides)) == len(slides)
    assert len(slides) == sum(PAGES[name].presented for name, _ in TABS)
    assert "Clusters: Map of the tests" in [one.title for one in slides]


def test_next_and_previous_turn_pages():
    app = open_page("learn", present="1", tab="empty")
    assert not app.exception
    app.button(key="present-PageDown").click().run()
    assert app.title[0].value == PAGES["relevance"].question
    app = open_page("relevance", present="1")
    app.button(key="present-PageUp").click().run()
    assert app.title[0].value == PAGES["learn"].question


def test_the_end_shows_the_page_as_before():
    app = open_page("layers", present="1")
    app.button(key="present-end").click().run()
    assert presenting.PRESENT not in app.query_params
    assert not [button for button in app.button if (button.key or "").startswith("present-Page")]


def test_tabs_are_turned_within_a_page():
    app = open_page("clusters", present="1")
    assert "Clusters: Histograms" in text(app)
    app.button(key="present-PageDown").click().run()
    assert app.query_params[tabs.TAB] == "number"
    assert "Clusters: Number of clusters" in text(app)
