"""The ground that a page is drawn for, and another drawing when a person changes the theme."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

FILE = Path(__file__).parents[2] / "assets" / "theme" / "follow.js"

_follow = st.components.v2.component("idc_theme", js=FILE.read_text(encoding="utf-8"))


def is_dark() -> bool:
    """Whether the page is shown on a dark ground."""
    return st.context.theme.type == "dark"


def follow() -> None:
    """Run the page again as soon as its ground is another one: Streamlit recolours all but what pages draw."""
    _follow(key="theme", data={"dark": is_dark()}, on_ground_change=lambda: None)
