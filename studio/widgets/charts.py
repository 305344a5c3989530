"""Charts: drawn once, clicked, read with one sentence, and saved from the line below them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from studio.engine.results import View
from studio.shell.bench import Bench
from studio.shell.theme import is_dark
from studio.widgets.draw_once import drawn_once
from studio.widgets.save_chart import save_row

if TYPE_CHECKING:
    import plotly.graph_objects as go


def chart(
    view: View,
    key: str,
    build: Callable[[bool], go.Figure],
    alt: str,
    read: str,
    depends: Hashable = (),
    clicked: Callable[[list[dict[str, Any]]], None] | None = None,
    modes: Sequence[Literal["points", "box", "lasso"]] = ("points",),
) -> None:
    """Draw a plotly figure with the sentence on how to read it and buttons that save it.

    Parameters
    ----------
    view : View
        The bench, on which the figure depends.
    key : str
        Name of the figure on its page.
    build : callable
        Makes the figure; called with whether the ground is dark.
    alt : str
        The finding, for who cannot see the figure.
    read : str
        How to read it.
    depends : hashable
        What else the figure depends on.
    clicked : callable, optional
        Called with the points that were clicked or drawn around, as plotly tells of them: `x`, `y`,
        `customdata`, `curve_number`, `point_index`. It runs before the page is drawn again, and never
        without a point: a choice stays until another one is made.
    modes : sequence of str
        How points can be chosen.
    """
    figure, drawn = _figure(key, view.bench, depends, is_dark(), clicked is not None, build)
    plot(key, figure, alt, read, (view.line,), clicked, modes, drawn)


@st.cache_resource(max_entries=64, show_spinner=False)
def _figure(
    key: str, bench: Bench, depends: Hashable, dark: bool, clickable: bool, _build: Callable[[bool], go.Figure]
) -> tuple[go.Figure, go.Figure]:
    """Build a figure once, as it is saved and as it is drawn: plotly takes longer to check it than its numbers take."""
    figure = _build(dark)
    return figure, drawn_once(figure, clickable=clickable)


def plot(
    key: str,
    figure: go.Figure,
    alt: str,
    read: str,
    lines: tuple[str, ...] = (),
    clicked: Callable[[list[dict[str, Any]]], None] | None = None,
    modes: Sequence[Literal["points", "box", "lasso"]] = ("points",),
    drawn: go.Figure | None = None,
) -> None:
    """Draw a plotly figure that is there already, as `chart` does.

    Parameters
    ----------
    key, alt, read, clicked, modes
        As in `chart`.
    figure : plotly.graph_objects.Figure
        Drawn for the page's ground.
    lines : tuple of str
        What a saved page says below the figure.
    drawn : plotly.graph_objects.Figure, optional
        From `drawn_once`, where the figure is kept; default the figure itself.
    """
    drawn = figure if drawn is None else drawn
    config = {"displaylogo": False}
    # The figures bring their own colours for either ground; the theme would replace some of them.
    if clicked is None:
        st.plotly_chart(drawn, key=key, alt=alt, config=config, theme=None)
    else:
        st.plotly_chart(
            drawn,
            key=key,
            alt=alt,
            config=config,
            theme=None,
            on_select=lambda: _tell(key, clicked),
            selection_mode=modes,
        )
    save_row(key, key, alt, read, lambda: figure, lines, dark=is_dark())


def _tell(key: str, clicked: Callable[[list[dict[str, Any]]], None]) -> None:
    """Hand over what was chosen in a chart; the chart forgets it as soon as its figure changes."""
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
    """Draw a grid of combinations with the sentence on how to read it and buttons that save it.

    Parameters
    ----------
    key : str
        Key of the chart on its page.
    option : dict
        From `idc_core.figures.coverage.coverage_grid`.
    height : int
        Height in pixels.
    alt : str
        The finding, for who cannot see the chart.
    read : str
        How to read it.
    line : str
        The bench in one line.
    clicked : callable, optional
        Called with the position of a cell that was clicked, counted row by row.
    name : str
        Name of the chart in the files' names.
    """
    # Drawn as SVG, not on a canvas: that is what is saved.
    settings: dict[str, Any] = {"height": height, "key": key, "alt": alt, "renderer": "svg"}
    if clicked is None:
        st.echarts_chart(option, **settings)
    else:
        st.echarts_chart(option, on_select=lambda: _tell_cell(key, clicked), **settings)
    dark = is_dark()

    def figure() -> go.Figure:
        from idc_core.figures.web import grid_figure

        return grid_figure(option, height, dark=dark)

    save_row(key, name, alt, read, figure, (line,), dark=dark)


def _tell_cell(key: str, clicked: Callable[[int], None]) -> None:
    """Hand over which cell was clicked; only the first series has cells."""
    groups = st.session_state[key].selection.selected
    places = [int(i) for group in groups if group["series_index"] == 0 for i in group["data_indices"]]
    if places:
        clicked(places[0])


def how_to_read(text: str) -> None:
    """Say in one sentence how to read the chart above."""
    st.caption(f"How to read this: {text}")
