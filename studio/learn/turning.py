"""Going on from chapter to chapter: by the buttons below each, and by addresses from before chapters were tabs."""

from __future__ import annotations

import streamlit as st

from studio.learn.chapters import CHAPTERS
from studio.shell import tabs
from studio.state.choices import named
from studio.widgets.charts import ASSETS

_TURNS = "learn-turns"
"""How often the reader went on to another chapter; the browser then shows its beginning."""

_top = st.components.v2.component("idc_learn_top", js=(ASSETS / "learn" / "top.js").read_text(encoding="utf-8"))


def turn(to: str) -> None:
    """Open a chapter; for callbacks."""
    tabs.open_at("learn", to)
    st.session_state[_TURNS] = st.session_state.get(_TURNS, 0) + 1


def open_former() -> None:
    """Open the chapter that an address from before the tabs names."""
    if title := st.query_params.get("chapter"):
        chapter = named(title, {name: chapter[0] for name, chapter in CHAPTERS.items()})
        del st.query_params["chapter"]
        if chapter is not None:
            tabs.open_at("learn", chapter)


def begin_at_top() -> None:
    """Let the browser show a chapter that was just opened from its beginning."""
    _top(key="learn-top", data={"turns": st.session_state.get(_TURNS, 0)})
