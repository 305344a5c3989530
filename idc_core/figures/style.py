"""What all plotly figures share: a wrapped title that states the finding, margins, quiet axes."""

from __future__ import annotations

import textwrap

import plotly.graph_objects as go

from idc_core.figures.palette import Palette

FONT = "'Source Sans', 'Source Sans 3', 'Segoe UI', Helvetica, Arial, sans-serif"


def finish(figure: go.Figure, title: str, colours: Palette, *, height: int, wrap: int = 78) -> go.Figure:
    """Give a figure its title, margins and axis lines.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        Changed in place.
    title : str
        The finding, in a sentence; wrapped.
    colours : Palette
        Colours of the theme.
    height : int
        Height in pixels.
    wrap : int
        Characters a line of the title.

    Returns
    -------
    plotly.graph_objects.Figure
        The same figure.
    """
    lines = textwrap.wrap(title, wrap)
    figure.update_layout(
        title={
            "text": "<br>".join(lines),
            "x": 0.008,
            "xanchor": "left",
            "xref": "container",
            # Plotly anchors the last line of a title.
            "y": 1 - (6 + 20 * (len(lines) - 1)) / height,
            "yanchor": "top",
            "yref": "container",
            "font": {"size": 15, "color": colours.ink, "weight": "normal"},
        },
        height=height,
        margin={"l": 56, "r": 12, "t": 34 + 20 * len(lines), "b": 92},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": colours.ink, "size": 13, "family": FONT},
        template="none",
        hoverlabel={"bgcolor": colours.ground, "font": {"color": colours.ink}},
        legend={"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
    )  # fmt: skip
    quiet = {"tickfont": {"size": 11, "color": colours.muted}, "title_font": {"size": 12, "color": colours.muted}}
    figure.update_xaxes(**quiet)
    figure.update_yaxes(**quiet)
    figure.update_xaxes(gridcolor=colours.line, linecolor=colours.line, zerolinecolor=colours.line, automargin=True)
    figure.update_yaxes(gridcolor=colours.line, linecolor=colours.line, zerolinecolor=colours.line, automargin=True)
    return figure
