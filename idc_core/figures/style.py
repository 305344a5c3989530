"""What all plotly figures share: a wrapped title that states the finding, margins, quiet axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from idc_core.figures.palette import Palette
from idc_core.figures.wording import balanced, typeset

FONT = "'Source Sans', 'Source Sans 3', 'Segoe UI', Helvetica, Arial, sans-serif"

PANELS_A_ROW = 3
BAR_PIXELS = 24

SHORT = 5
"""Characters up to which the labels of a column stand upright below it."""


def finish(figure: go.Figure, title: str, colours: Palette, *, height: int, wrap: int = 78) -> go.Figure:
    """Give a figure its title, margins and axis lines."""
    lines = balanced(typeset(title), wrap)
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
        # The ground of the page: a saved figure stands alone.
        paper_bgcolor=colours.ground,
        plot_bgcolor=colours.ground,
        font={"color": colours.ink, "size": 13, "family": FONT},
        template="none",
        hoverlabel={"bgcolor": colours.ground, "font": {"color": colours.ink}},
        legend={"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
    )
    quiet = {"tickfont": {"size": 11, "color": colours.muted}, "title_font": {"size": 12, "color": colours.muted}}
    figure.update_xaxes(**quiet)
    figure.update_yaxes(**quiet)
    for trace in figure.select_traces({"type": "heatmap"}):
        trace.update(colorbar={"tickfont": quiet["tickfont"], "title": {"font": quiet["title_font"]}})
    figure.update_xaxes(gridcolor=colours.line, linecolor=colours.line, zerolinecolor=colours.line, automargin=True)
    figure.update_yaxes(gridcolor=colours.line, linecolor=colours.line, zerolinecolor=colours.line, automargin=True)
    return figure


def panels(titles: Sequence[str]) -> tuple[go.Figure, list[dict[str, int]]]:
    """Make a figure of small panels, three a row; return it and each panel's place as plotly's methods take it."""
    columns = min(PANELS_A_ROW, len(titles))
    rows = -(-len(titles) // columns)
    figure = make_subplots(
        rows, columns, subplot_titles=list(titles), vertical_spacing=0.34 / rows, horizontal_spacing=0.07
    )
    return figure, [{"row": i // columns + 1, "col": i % columns + 1} for i in range(len(titles))]


def finish_panels(
    figure: go.Figure, places: list[dict[str, int]], x: str, y: str, title: str, colours: Palette
) -> go.Figure:
    """Finish a figure of panels, with axis titles in the last row and the first column."""
    rows = places[-1]["row"]
    figure.update_xaxes(title=x, title_standoff=8, row=rows)
    figure.update_yaxes(title=y, title_standoff=8, col=1)
    finish(figure, title, colours, height=140 + 210 * rows)
    figure.update_annotations(font={"size": 13, "color": colours.ink})
    # The margins are wide enough for these axes; measuring every label of every panel is half of the drawing.
    figure.update_xaxes(automargin=False)
    figure.update_yaxes(automargin=False)
    return figure


def band(figure: go.Figure, x: NDArray[Any], low: NDArray[Any], high: NDArray[Any], colour: str, **look: Any) -> None:
    """Fill what lies between two curves."""
    figure.add_scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        fill="toself",
        fillcolor=colour,
        line={"width": 0},
        hoverinfo="skip",
        **look,
    )


def named_rows(names: Sequence[str], room: float = 0.5) -> dict[str, Any]:
    """Return a vertical axis with a name at each row, the first on top, and some room above and below."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "range": [len(names) - 1 + room, -room],
        "zeroline": False,
    }


def bar_panels(
    values: Mapping[str, NDArray[np.floating]],
    written: Sequence[Sequence[str]],
    labels: Sequence[str],
    marker: dict[str, Any],
    title: str,
    colours: Palette,
) -> go.Figure:
    """Draw one panel per measure, in each the same bars from top to bottom with their numbers behind them.

    `values` holds (bars,) by the panel's title, each in its own unit, NaN for no bar; `written` is how each is written.
    """
    columns = min(PANELS_A_ROW, len(values))
    rows = -(-len(values) // columns)
    height = 90 + rows * (54 + BAR_PIXELS * len(labels))
    figure = make_subplots(
        rows,
        columns,
        subplot_titles=list(values),
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=50 / height if rows > 1 else 0,
    )
    for index, ((name, row), texts) in enumerate(zip(values.items(), written, strict=True)):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        figure.add_bar(
            x=row,
            y=list(range(len(labels))),
            orientation="h",
            text=list(texts),
            textposition="outside",
            textangle=0,
            cliponaxis=False,
            constraintext="none",
            showlegend=False,
            marker=marker,
            textfont={"size": 11, "color": colours.ink},
            hovertext=[f"{name}<br>{label}" for label in labels],
            hovertemplate="%{hovertext}: %{text}<extra></extra>",
            **place,
        )
        # Room for the number behind the longest bar.
        most = 1.4 * float(np.nanmax(row, initial=0.0)) or 1.0
        figure.update_xaxes(range=[0, most], showgrid=False, showticklabels=False, fixedrange=True, **place)
    figure.update_yaxes(**named_rows(labels, 0.6), showgrid=False, fixedrange=True)
    finish(figure, title, colours, height=height)
    figure.update_layout(margin_b=12, bargap=0.25)
    return figure.update_annotations(font={"size": 13, "color": colours.ink})
