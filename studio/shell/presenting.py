"""Presentation mode, for the front of a room: larger type, no sidebar, one view after the other."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from studio.shell import tabs
from studio.shell.pages import PAGES, go_to
from studio.state import address
from studio.widgets.charts import ASSETS

PRESENT = "present"
"""Name in the address: 1 while presenting."""


class _Slide(NamedTuple):
    """One view: its page, and the name of its tab, empty where the page has none."""

    page: str
    tab: str
    title: str


def _slides() -> list[_Slide]:
    """Return all views in the order of the navigation."""
    slides = []
    for name, page in PAGES.items():
        if page.presented:
            slides += [_Slide(name, tab, f"{page.title}: {title}") for tab, title in page.tabs.items()] or [
                _Slide(name, "", page.title)
            ]
    return slides


def is_on() -> bool:
    """Whether the pages are presented."""
    return address.read(PRESENT) == "1"


def draw_sidebar() -> None:
    """Offer the presentation at the foot of the sidebar."""
    with st.sidebar:
        st.button(
            "Present",
            key="present-start",
            type="tertiary",
            icon=":material/slideshow:",
            on_click=address.keep,
            args=(PRESENT, "1"),
            help="Larger type, no sidebar, one view after the other: Page Down and Page Up, as clickers send them.",
        )


def draw(page: str) -> None:
    """Draw the line above a presented page: which view it is, the one before, the next, and the end."""
    if not is_on():
        return
    st.html(ASSETS / "styles" / "presenting.css")
    every = _slides()
    at = _place(page, every)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="presenting"):
        st.caption(f"{at + 1} of {len(every)}: {every[at].title}", width="stretch")
        for label, to, key in (("Previous", at - 1, "PageUp"), ("Next", at + 1, "PageDown")):
            inside = 0 <= to < len(every)
            target = every[to] if inside else every[at]
            st.button(label, key=f"present-{key}", shortcut=key, on_click=_show, args=(target,), disabled=not inside)
        st.button("End", key="present-end", type="tertiary", on_click=address.keep, args=(PRESENT, ""))


def _place(page: str, every: list[_Slide]) -> int:
    """Return which of the views is shown."""
    shown = tabs.opened(page) if PAGES[page].tabs else ""
    return next((place for place, view in enumerate(every) if (view.page, view.tab) == (page, shown)), 0)


def _show(slide: _Slide) -> None:
    """Show a view."""
    if slide.tab:
        tabs.open_at(slide.page, slide.tab)
    go_to(slide.page)
