"""The tabs of a page: the open one alone is drawn, the address holds it, and it is open again on return."""

import pytest

from studio.shell import tabs
from studio.shell.pages import PAGES
from tests.pages.reading import open_page

TABBED = [name for name, page in PAGES.items() if page.tabs]


def alternatives(app):
    """What the charts of a page find, for who cannot see them."""
    return [one.proto.alt for one in app.get("plotly_chart")]


def test_only_the_open_tab_is_drawn():
    app = open_page("clusters")
    assert [one.label for one in app.tabs] == list(PAGES["clusters"].tabs.values())
    assert [bool(one.children) for one in app.tabs] == [True, False, False, False]
    assert tabs.TAB not in app.query_params


def test_the_address_opens_a_tab_and_it_stays_open():
    app = open_page("clusters", tab="map")
    assert ["Tests whose nearest neighbour" in alt for alt in alternatives(app)] == [True]
    app.run()
    assert app.query_params[tabs.TAB] == "map"


def test_a_page_is_left_and_found_as_it_was():
    app = open_page("clusters", tab="cells")
    drawn = alternatives(app)
    for name in ("layers", "clusters"):
        app.query_params.clear()  # as a browser does at a change of page
        app.switch_page(str(PAGES[name].file)).run()
    assert app.query_params[tabs.TAB] == "cells"
    assert alternatives(app) == drawn


def test_changed_settings_are_counted_at_once_on_return():
    app = open_page("relevance", overlay="90", colours="orange and purple")
    for name in ("layers", "relevance"):
        app.query_params.clear()  # as a browser does at a change of page
        app.switch_page(str(PAGES[name].file)).run()
    assert "Settings (2)" in [one.proto.popover.label for one in app.get("popover")]


@pytest.mark.parametrize("name", ["nothing", "", "MAP", "map,cells"])
def test_an_unknown_tab_is_the_first(name):
    app = open_page("clusters", tab=name)
    assert not app.exception
    assert bool(app.tabs[0].children)


def test_an_address_without_a_tab_opens_the_one_with_its_control():
    app = open_page("clusters", **{"plane-colour": "cell"})
    assert app.query_params[tabs.TAB] == "map"


def test_the_first_tab_is_named_where_a_control_of_another_is_in_the_address():
    app = open_page("clusters", tab="histograms", **{"plane-colour": "cell"})
    assert app.query_params[tabs.TAB] == "histograms"
    assert bool(app.tabs[0].children)


@pytest.mark.parametrize("page", TABBED)
def test_every_tab_of_the_list_is_there_and_controls_are_in_one(page):
    entry = PAGES[page]
    assert 2 <= len(entry.tabs) <= (6 if page == "learn" else 5)
    assert set(entry.controls.values()) <= set(entry.tabs)
