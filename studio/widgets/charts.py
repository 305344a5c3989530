"""Charts: drawn once, clicked, read with one sentence, and saved from the line below them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import streamlit as st

from idc_core.base.files import SHIPPED
from idc_core.base.spreadsheets import csv
from idc_core.figures.palette import palette, recoloured
from studio.jobs.results import View
from studio.state import address, visitor
from studio.state.choices import choose_one
from studio.state.selection import Point
from studio.state.setup import Setup
from studio.widgets import exports
from studio.widgets.headlines import Headline
from studio.widgets.storytelling import add_chart

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    from streamlit.components.v2.types import ComponentRenderer

    from idc_core.figures.tile_contents import TileContents

_Modes = Sequence[Literal["points", "box", "lasso"]]
_Clicked = Callable[[Sequence[Point]], None]
_Themed: TypeAlias = "Callable[[bool], go.Figure]"  # called with whether the ground is dark
_Option: TypeAlias = "dict[str, Any]"  # of ECharts, nested
_Table: TypeAlias = "pd.DataFrame | Callable[[], pd.DataFrame]"

_SCALES = {"linear": "linear", "log": "log"}
"""Scales that an axis can be switched to: name and label."""

ASSETS = SHIPPED / "assets"
_follow = st.components.v2.component("idc_theme", js=(ASSETS / "theme" / "follow.js").read_text(encoding="utf-8"))


def component(name: str, folder: str, file: str, before: Sequence[str] = ()) -> ComponentRenderer:
    """Return a part of a page that the browser draws itself, from its three files in the assets.

    Its script can use what the scripts of the names in `before` define: a component cannot import.
    """
    files = [*(f"{script}.js" for script in before), f"{file}.js", f"{file}.html", f"{file}.css"]
    *scripts, html, css = ((ASSETS / folder / name).read_text(encoding="utf-8") for name in files)
    return st.components.v2.component(name, html=html, css=css, js="\n".join(scripts))


_pictures = component("idc_saving", "saving", "buttons")
_tiles = component("idc_grid", "grid", "tiles", before=("growing",))


def is_dark() -> bool:
    """Whether the page is shown on a dark ground."""
    return st.context.theme.type == "dark"


def follow_theme() -> None:
    """Run the page again as soon as its ground is another one: Streamlit recolours all but what pages draw."""
    _follow(key="theme", data={"dark": is_dark()}, on_ground_change=lambda: None)


def chart(
    view: View,
    key: str,
    build: Callable[..., go.Figure],
    alt: Headline,
    read: str = "",
    depends: Hashable = (),
    clicked: _Clicked | None = None,
    modes: _Modes = ("points",),
    table: _Table | None = None,
    scale: str = "",
    more: str = "",
) -> None:
    """Draw a plotly figure with the sentence on how to read it and buttons that save it.

    `key` names the figure on its page; `build` makes it, called with whether the ground is dark, from the view and
    `depends`. `alt` is its title, for who cannot see the figure, with `more` behind it. `read` is empty where title,
    axes and legend say it.
    `table` is the data behind the figure, to be saved as CSV; a function where it takes long to put together.
    `clicked` is called with the points that were clicked or selected (in one of `modes`), as plotly gives them: `x`,
    `y`, `customdata`, `curve_number`, `point_index`. It runs before the page is drawn again, and never without a point:
    a choice stays until another one is made.
    `scale` is a key of `_SCALES`, the default of an axis whose scale can be switched; `build` is then also called with
    whether it is logarithmic.
    """
    clickable, file = clicked is not None, exports.stem(key, view.setup)
    # A network or data entered again under the same name are others, while the setup is the same.
    on = (view.key, tuple(view.names.items()), depends)
    if not scale:
        figure, drawn = _figure(key, view.setup, on, is_dark(), clickable, build)
        _draw(key, drawn, alt, clicked, modes, more)
        _save_row(key, file, alt, read, _in_either(figure, build), (view.line,), table)
        return
    # The switch is among the buttons below the chart, and read before the chart is built.
    place = st.container()
    built: list[_Themed] = []
    log = _save_row(key, file, alt, read, lambda dark: built[0](dark), (view.line,), table, scale) == "log"
    figure, drawn = _figure(key, view.setup, (*on, log), is_dark(), clickable, lambda dark: build(dark, log))
    built.append(_in_either(figure, lambda dark: build(dark, log)))
    with place:
        _draw(key, drawn, alt, clicked, modes, more)


def _in_either(figure: go.Figure, build: _Themed) -> _Themed:
    """Return what gives a figure for either ground: of the present one it is there already."""
    now = is_dark()
    return lambda dark: figure if dark == now else build(dark)


@st.cache_resource(max_entries=64, show_spinner=False)
def _figure(
    key: str, setup: Setup, depends: Hashable, dark: bool, clickable: bool, _build: Callable[[bool], go.Figure]
) -> tuple[go.Figure, go.Figure]:
    """Build a figure once, as it is saved and as it is drawn: plotly takes longer to check it than its numbers take."""
    from idc_core.figures.drawn import drawn_once

    figure = _build(dark)
    return figure, drawn_once(figure, clickable=clickable)


def plot(key: str, build: _Themed, alt: Headline, read: str = "", lines: tuple[str, ...] = ()) -> None:
    """Draw a plotly figure of no setup, as `chart` does."""
    figure = build(is_dark())
    _draw(key, figure, alt, None, (), "")
    _save_row(key, exports.stem(key), alt, read, _in_either(figure, build), lines)


def _draw(key: str, figure: go.Figure, alt: str, clicked: _Clicked | None, modes: _Modes, more: str) -> None:
    # The figures bring their own colours for either ground; the theme would replace some of them.
    alt = f"{alt}. {more}" if more else str(alt)
    settings: dict[str, Any] = {"key": key, "alt": alt, "config": {"displaylogo": False}, "theme": None}
    if clicked is not None:
        settings |= {"on_select": lambda: _tell(key, clicked), "selection_mode": modes}
    st.plotly_chart(figure, **settings)


def _tell(key: str, clicked: _Clicked) -> None:
    """Hand over what was selected in a chart; the chart forgets it as soon as its figure changes."""
    if points := st.session_state[key].selection.points:
        clicked(list(points))


def grid_chart(
    key: str,
    option: _Option,
    size: tuple[int, int],
    alt: Headline,
    read: str,
    line: str,
    clicked: Callable[[int], None] | None = None,
    name: str = "grid",
    table: _Table | None = None,
    setup: Setup | None = None,
    layer: Mapping[str, object] | None = None,
    contents: Callable[[bool], TileContents | None] = lambda dark: None,
) -> None:
    """Draw a grid of combinations, an option of `coverage_grid` in its size, as `chart` does.

    `line` is the setup in one line; `clicked` is called with the position of a cell that was clicked, counted row by
    row; `name` is the chart's in the files' names, beside the `setup`, by default the page's; `layer` is what lies
    above the tiles (`tile_layer`), and `contents` gives what they show for files and slides, on either ground.
    """
    width, height = size
    drawn = {**option, "series": [series for series in option["series"] if series["name"] != "selected"]}
    with st.container(key=f"tiles-{key}"):
        inner = option["grid"]
        place = {
            "grid": key,
            "margins": {edge: inner[edge] for edge in ("left", "right", "top", "bottom")},
            "rows": len(option["yAxis"][0]["data"]),
            "columns": len(option["xAxis"][0]["data"]),
        }
        place["side"] = (height - inner["top"] - inner["bottom"]) / place["rows"]
        _draw_layer(place, layer or {}, clicked)
        # Drawn as SVG, not on a canvas: that is what is saved.
        st.echarts_chart(drawn, width=width, height=height, key=key, alt=f"Grid of combinations. {alt}", renderer="svg")
        for series in option["series"][len(drawn["series"]) :]:
            _frame(key, option, series)
    now = is_dark()

    def figure(dark: bool) -> go.Figure:
        from idc_core.figures.web import grid_figure

        coloured = option if dark == now else recoloured(option, dark)
        return grid_figure(coloured, height, contents=contents(dark), dark=dark)

    _save_row(key, exports.stem(name, setup), alt, read, figure, (line,), table)


def _frame(key: str, option: _Option, framed: _Option) -> None:
    """Frame the selected tile above the chart: with a frame of its own the whole chart is drawn anew at every click."""
    column, row, _ = framed["data"][0]["value"]
    inner, width = option["grid"], framed["itemStyle"]["borderWidth"]
    place = {}
    for axis, label, side, opposite, extent in (
        ("xAxis", column, "left", "right", "width"),
        ("yAxis", row, "top", "bottom", "height"),
    ):
        labels = option[axis][0]["data"]
        tile = f"(100% - {inner[side] + inner[opposite]}px) / {len(labels)}"
        place[side] = f"calc({inner[side] - width / 2}px + {labels.index(label)} * {tile})"
        place[extent] = f"calc({tile} + {width}px)"
    rules = "; ".join(f"{name}: {value}" for name, value in place.items())
    st.html(
        f'<style>.st-key-{key} [data-testid="stEChartsChart"]::after {{ content: ""; position: absolute; '
        f"box-sizing: border-box; pointer-events: none; border: {width}px solid {framed['itemStyle']['borderColor']}; "
        f"{rules} }}</style>"
    )


def _draw_layer(place: dict[str, Any], layer: Mapping[str, object], clicked: Callable[[int], None] | None) -> None:
    """Draw what lies above the tiles of a grid, and hand over which tile is clicked."""
    key = f"clicks-{place['grid']}"

    def tell() -> None:
        tile = st.session_state[key].tile
        if clicked is not None and isinstance(tile, int) and 0 <= tile < place["rows"] * place["columns"]:
            clicked(tile)

    _tiles(key=key, data={**place, **layer, "clickable": clicked is not None}, on_tile_change=tell)


def how_to_read(text: str) -> None:
    """Say how to read the picture above: open on the visitor's first visit and in the tour, else behind a button.

    Nothing where pages are presented: who presents says it.
    """
    if address.read(address.STORY):
        return
    with st.expander(
        "How to read this", expanded=visitor.is_first_visit() or bool(address.read("tour")), type="compact"
    ):
        st.caption(_sentence(text))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _save_row(
    key: str,
    file: str,
    title: str,
    read: str,
    figure: _Themed,
    lines: tuple[str, ...] = (),
    table: _Table | None = None,
    scale: str = "",
) -> str:
    """Draw one line under a chart: how to read it, its `scale` where it has one, and the menu of what is done with it.

    Returns the scale that is chosen. PNG and SVG are made by the browser that has drawn the chart, HTML by `figure`
    when it is asked for, with `lines` below.
    """
    dark = is_dark()
    sentence = (_sentence(read),) if read else ()

    def page() -> str:
        from idc_core.figures.web import web_page

        return web_page(figure(dark), title, (*lines, *sentence, exports.origin()), dark=dark)

    with st.container(horizontal=True, vertical_alignment="top", gap="xsmall", key=f"save-{key}"):
        with st.container():
            if read:
                how_to_read(read)
        if scale:
            scale = _choose_scale(key, scale)
        add_chart(key, title, figure, lines[0] if lines else "")
        with st.popover("Export", type="tertiary", key=f"menu-{key}", help="Save the chart or its data."):
            _draw_exports(key, file, title, exports.origin(lines[0] if lines else ""), page, table)
    return scale


def _draw_exports(key: str, file: str, title: str, origin: str, page: Callable[[], str], table: _Table | None) -> None:
    """Offer a chart as files; `origin` is what pictures say of where they are from."""
    ground = palette(is_dark()).ground
    data = {"chart": key, "file": file, "title": title, "origin": origin, "ground": ground}
    _pictures(key=f"pictures-{key}", data=data)
    st.download_button(
        "HTML",
        page,
        file_name=f"{file}.html",
        mime="text/html",
        on_click="ignore",
        key=f"html-{key}",
        width="stretch",
        help="One interactive file that needs no network.",
    )
    if table is not None:
        st.download_button(
            "CSV",
            lambda: _rows(table),
            file_name=f"{file}.csv",
            mime="text/csv",
            on_click="ignore",
            key=f"data-{key}",
            width="stretch",
        )


def _choose_scale(key: str, default: str) -> str:
    return choose_one(
        st.segmented_control,
        "Scale",
        _SCALES,
        default,
        f"{key}-scale",
        required=True,
        label_visibility="collapsed",
        help=f"Scale of the axis: linear or logarithmic. Default {_SCALES[default]}.",
    )


def _rows(table: _Table) -> str:
    return csv(table() if callable(table) else table)
