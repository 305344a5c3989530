"""Charts: drawn once, clicked, read with one sentence, and saved from the line below them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import streamlit as st

from idc_core.figures.palette import palette
from studio.engine.results import View
from studio.state.setup import Setup

if TYPE_CHECKING:
    import plotly.graph_objects as go

Modes = Sequence[Literal["points", "box", "lasso"]]
Clicked = Callable[[list[dict[str, Any]]], None]

ASSETS = Path(__file__).parents[2] / "assets"
_follow = st.components.v2.component("idc_theme", js=(ASSETS / "theme" / "follow.js").read_text(encoding="utf-8"))


def component(name: str, folder: str, file: str) -> Any:
    """Return a part of a page that the browser draws itself, from its three files in the assets."""
    parts = {kind: (ASSETS / folder / f"{file}.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")}
    return st.components.v2.component(name, html=parts["html"], css=parts["css"], js=parts["js"])


_pictures = component("idc_saving", "saving", "buttons")


def is_dark() -> bool:
    """Whether the page is shown on a dark ground."""
    return st.context.theme.type == "dark"


def follow_theme() -> None:
    """Run the page again as soon as its ground is another one: Streamlit recolours all but what pages draw."""
    _follow(key="theme", data={"dark": is_dark()}, on_ground_change=lambda: None)


def chart(
    view: View,
    key: str,
    build: Callable[[bool], go.Figure],
    alt: str,
    read: str = "",
    depends: Hashable = (),
    clicked: Clicked | None = None,
    modes: Modes = ("points",),
) -> None:
    """Draw a plotly figure with the sentence on how to read it and buttons that save it.

    `key` names the figure on its page; `build` makes it, called with whether the ground is dark, from the view and
    `depends`. `alt` is the finding, for who cannot see the figure. `read` is empty where title, axes and legend say it.
    `clicked` is called with the points that were clicked or selected (in one of `modes`), as plotly gives them: `x`,
    `y`, `customdata`, `curve_number`, `point_index`. It runs before the page is drawn again, and never without a point:
    a choice stays until another one is made.
    """
    figure, drawn = _figure(key, view.setup, depends, is_dark(), clicked is not None, build)
    plot(key, figure, alt, read, (view.line,), clicked, modes, drawn)


@st.cache_resource(max_entries=64, show_spinner=False)
def _figure(
    key: str, setup: Setup, depends: Hashable, dark: bool, clickable: bool, _build: Callable[[bool], go.Figure]
) -> tuple[go.Figure, go.Figure]:
    """Build a figure once, as it is saved and as it is drawn: plotly takes longer to check it than its numbers take."""
    figure = _build(dark)
    return figure, drawn_once(figure, clickable=clickable)


def plot(
    key: str,
    figure: go.Figure,
    alt: str,
    read: str = "",
    lines: tuple[str, ...] = (),
    clicked: Clicked | None = None,
    modes: Modes = ("points",),
    drawn: go.Figure | None = None,
) -> None:
    """Draw a plotly figure that is there already, as `chart` does."""
    # The figures bring their own colours for either ground; the theme would replace some of them.
    settings: dict[str, Any] = {"key": key, "alt": alt, "config": {"displaylogo": False}, "theme": None}
    if clicked is not None:
        settings |= {"on_select": lambda: _tell(key, clicked), "selection_mode": modes}
    st.plotly_chart(figure if drawn is None else drawn, **settings)
    save_row(key, key, alt, read, lambda: figure, lines)


def drawn_once(figure: go.Figure, *, clickable: bool = False) -> go.Figure:
    """Return a copy that the page's second rendering of a chart leaves as it is; `clickable` where marks can be.

    Streamlit hands every figure to plotly twice, as two copies. Plotly compares them part by part and draws everything
    again where they differ. So a revision says that the data are the same, numbers are sent as lists, as the compact
    arrays of plotly's own are decoded anew each time and never the same, and what Streamlit would change for clicks
    is set already.
    """
    import plotly.graph_objects as go

    traces = [_lists(trace.to_plotly_json()) for trace in figure.data]
    copy = go.Figure(traces, _lists(figure.layout.to_plotly_json()))
    # Plotly takes every template for a new one; the figures have none of their own.
    copy.layout.template = None
    if clickable:
        drag = copy.layout.dragmode or "pan"
        click = "event" if drag in ("lasso", "select") else "event+select"
        copy.update_layout(dragmode=drag, clickmode=click, hovermode=copy.layout.hovermode or "closest")
    return copy.update_layout(datarevision=zlib.crc32(copy.to_json().encode()))


def _lists(part: Any) -> Any:
    """Write arrays of one dimension as lists; pictures stay compact, and plotly reads their rows as a list."""
    if isinstance(part, dict):
        return {name: _lists(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_lists(value) for value in part]
    return part.tolist() if isinstance(part, np.ndarray) and part.ndim == 1 else part


def _tell(key: str, clicked: Clicked) -> None:
    """Hand over what was selected in a chart; the chart forgets it as soon as its figure changes."""
    if points := st.session_state[key].selection.points:
        clicked(list(points))


def grid_chart(
    key: str,
    option: dict[str, Any],
    height: int,
    alt: str,
    read: str,
    line: str,
    clicked: Callable[[int], None] | None = None,
    name: str = "grid",
) -> None:
    """Draw a grid of combinations, an option of `coverage_grid`, as `chart` does.

    `line` is the setup in one line; `clicked` is called with the position of a cell that was clicked, counted row by
    row; `name` is the chart's in the files' names.
    """
    # Drawn as SVG, not on a canvas: that is what is saved.
    settings: dict[str, Any] = {"height": height, "key": key, "alt": alt, "renderer": "svg"}
    if clicked is not None:
        settings["on_select"] = lambda: _tell_cell(key, clicked)
    st.echarts_chart(option, **settings)
    dark = is_dark()

    def figure() -> go.Figure:
        from idc_core.figures.web import grid_figure

        return grid_figure(option, height, dark=dark)

    save_row(key, name, alt, read, figure, (line,))


def _tell_cell(key: str, clicked: Callable[[int], None]) -> None:
    """Hand over which cell was clicked; only the first series has cells."""
    groups = st.session_state[key].selection.selected
    places = [int(i) for group in groups if group["series_index"] == 0 for i in group["data_indices"]]
    if places:
        clicked(places[0])


def how_to_read(text: str) -> None:
    """Say how to read the picture above."""
    st.caption(_sentence(text))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def save_row(
    key: str, name: str, title: str, read: str, figure: Callable[[], go.Figure], lines: tuple[str, ...] = ()
) -> None:
    """Draw one line under a chart: how to read it, and buttons that save it.

    PNG and SVG are made by the browser that has drawn the chart, HTML by `figure` when it is asked for, with `lines`
    below.
    """
    file, dark = f"idc-{name}", is_dark()
    said = (_sentence(read),) if read else ()

    def page() -> str:
        from idc_core.figures.web import web_page

        return web_page(figure(), title, (*lines, *said), dark=dark)

    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key=f"save-{key}"):
        st.caption(said[0] if said else "", width="stretch")
        data = {"chart": key, "file": file, "title": title, "ground": palette(dark).ground}
        _pictures(key=f"pictures-{key}", width="content", data=data)
        st.download_button(
            "HTML",
            page,
            file_name=f"{file}.html",
            mime="text/html",
            on_click="ignore",
            key=f"html-{key}",
            help="Save the chart as one HTML file that stays interactive and needs no network.",
        )
