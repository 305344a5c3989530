"""The tabs of a page: one question each. Only the open one is computed; the address holds its name.

Streamlit can bind tabs to the address itself, but by their titles, and not beyond a change of page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from studio.shell.pages import PAGES
from studio.state import address, visitor

TAB = "tab"
"""Name in the address: the open tab; absent where it is the page's first one."""


def draw(page: str, contents: Mapping[str, Callable[[], None]]) -> None:
    """Draw the tabs of a page, and what the open one holds.

    `contents` draws each tab, by the names that the page is registered with.
    """
    titles = PAGES[page].tabs
    now = opened(page)
    open_at(page, now)
    visitor.arrive(page, now)
    st.session_state[_widget(page)] = titles[now]
    places = st.tabs(list(titles.values()), key=_widget(page), on_change=_take, args=(page,))
    with places[list(titles).index(now)]:
        contents[now]()
    # What was drawn may have put a control into the address.
    _write(page, now)


def opened(page: str) -> str:
    """Return the name of a page's open tab.

    It is the one that the address names, else the one that was open before, else the one with a control that the
    address holds, as those of runs name none, else the first.
    """
    entry = PAGES[page]
    tab = address.clean(st.query_params.get(TAB, ""))
    if tab in entry.tabs:
        return tab
    if not address.went_back() and (kept := st.session_state.get(_kept(page))) in entry.tabs:
        return str(kept)
    return _held(page)


def open_at(page: str, tab: str) -> None:
    """Open a page's tab, now or when the page is shown; for callbacks."""
    st.session_state[_kept(page)] = tab
    _write(page, tab)


def _write(page: str, tab: str) -> None:
    """Make the address name a tab; not the first one, unless a control of another tab would open that one."""
    if tab == _held(page) == next(iter(PAGES[page].tabs)):
        st.query_params.pop(TAB, None)
    elif st.query_params.get(TAB) != tab:
        st.query_params[TAB] = tab


def _held(page: str) -> str:
    """Return the tab that an address opens without naming it."""
    entry = PAGES[page]
    return next((tab for name, tab in entry.controls.items() if name in st.query_params), next(iter(entry.tabs)))


def _take(page: str) -> None:
    """Keep which tab was clicked."""
    title = st.session_state[_widget(page)]
    open_at(page, next(name for name, shown in PAGES[page].tabs.items() if shown == title))


def _widget(page: str) -> str:
    return f"tabs-{page}"


def _kept(page: str) -> str:
    return f"{address.KEPT}{TAB}-{page}"
