"""Buttons that save a chart: as PNG and SVG in the browser that has drawn it, as HTML from the figure itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.figures.palette import palette

if TYPE_CHECKING:
    import plotly.graph_objects as go

FOLDER = Path(__file__).parents[2] / "assets" / "saving"

_pictures = st.components.v2.component(
    "idc_saving", **{kind: (FOLDER / f"buttons.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")}
)


def save_row(
    key: str,
    name: str,
    title: str,
    read: str,
    figure: Callable[[], go.Figure],
    lines: tuple[str, ...] = (),
    *,
    dark: bool = False,
) -> None:
    """Draw one line under a chart: how to read it, and buttons that save it.

    Parameters
    ----------
    key : str
        Key of the chart on its page.
    name : str
        Name of the chart in the files' names.
    title : str
        What the chart shows, in words.
    read : str
        How to read it.
    figure : callable
        Makes the figure that is saved as HTML, when that is asked for.
    lines : tuple of str
        What else the HTML file says below the figure.
    dark : bool
        Whether the chart is drawn for a dark ground.
    """
    file = f"idc-{name}"
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key=f"save-{key}"):
        st.caption(f"How to read this: {read}", width="stretch")
        _pictures(
            key=f"pictures-{key}",
            width="content",
            data={"chart": key, "file": file, "title": title, "ground": palette(dark).ground},
        )
        st.download_button(
            "HTML",
            lambda: _page(figure, title, (*lines, f"How to read this: {read}"), dark),
            file_name=f"{file}.html",
            mime="text/html",
            on_click="ignore",
            key=f"html-{key}",
            help="Save the chart as one HTML file that stays interactive and needs no network.",
        )


def _page(figure: Callable[[], go.Figure], title: str, lines: tuple[str, ...], dark: bool) -> str:
    from idc_core.figures.web import web_page

    return web_page(figure(), title, lines, dark=dark)
