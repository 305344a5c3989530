"""Going on from chapter to chapter: by the buttons below each, and by addresses from before chapters were tabs."""

from __future__ import annotations

from functools import partial

import streamlit as st

from studio.learn.chapters import CHAPTERS
from studio.shell import presenting, tabs
from studio.state.choices import named
from studio.widgets.charts import ASSETS

_WIDTH = 900  # pixels: lines of text stay readable, and the network above the fold

_TURNS = "learn-turns"
"""How often the reader went on to another chapter; the browser then shows its beginning."""

_top = st.components.v2.component("idc_learn_top", js=(ASSETS / "learn" / "top.js").read_text(encoding="utf-8"))


def draw() -> None:
    """Draw the chapters, each a tab."""
    _open_former()
    with st.container(width="stretch" if presenting.is_on() else _WIDTH):
        tabs.draw("learn", {name: partial(_draw_chapter, name) for name in CHAPTERS})
    _begin_at_top()


def _draw_chapter(name: str) -> None:
    """Show a chapter, and lead to the one before and the next."""
    CHAPTERS[name][1]()
    if presenting.is_on():
        return  # its own buttons turn the chapters
    names = list(CHAPTERS)
    place = names.index(name)
    with st.container(horizontal=True):
        for label, to in (("Previous", place - 1), ("Next", place + 1)):
            if 0 <= to < len(CHAPTERS):
                st.button(label, on_click=_turn, args=(names[to],), help=f"Chapter {CHAPTERS[names[to]][0]}.")


def _turn(to: str) -> None:
    """Open a chapter; for callbacks."""
    tabs.open_at("learn", to)
    st.session_state[_TURNS] = st.session_state.get(_TURNS, 0) + 1


def _open_former() -> None:
    """Open the chapter that an address from before the tabs names."""
    if title := st.query_params.get("chapter"):
        chapter = named(title, {name: chapter[0] for name, chapter in CHAPTERS.items()})
        del st.query_params["chapter"]
        if chapter is not None:
            tabs.open_at("learn", chapter)


def _begin_at_top() -> None:
    """Let the browser show a chapter that was just opened from its beginning."""
    _top(key="learn-top", data={"turns": st.session_state.get(_TURNS, 0)})
