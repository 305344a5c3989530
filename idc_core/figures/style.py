"""What all plotly figures share: a wrapped title that states the finding, margins, quiet axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from idc_core.figures.palette import Palette, Scale, at, ink_on
from idc_core.figures.wording import balanced, typeset

FONT = "'Source Sans', 'Source Sans 3', 'Segoe UI', Helvetica, Arial, sans-serif"

_PANELS_A_ROW = 3
BAR_PIXELS = 24

SHORT = 5
"""Characters up to which the labels of a column stand upright below it."""


def finish(figure: go.Figure, title: str, colours: Palette, *, height: int, wrap: int = 78) -> go.Figure:
    """Give a figure its title, margins and axis lines."""
    lines = [escape(line, quote=False) for line in balanced(typeset(title), wrap)]
    quiet = {"tickfont": {"size": 11, "color": colours.muted}, "title": {"font": {"size": 12, "color": colours.muted}}}
    lined: dict[str, object] = dict.fromkeys(("gridcolor", "linecolor", "zerolinecolor"), colours.line)
    lined |= {"automargin": True, "separatethousands": True}
    style: dict[str, object] = {
        "title": {
            "text": "<br>".join(lines),
            "x": 0.008,
            "xanchor": "left",
            "xref": "container",
            # Plotly puts the top of a single line there, but the foot of the first of several.
            "y": 1 - (6 if len(lines) == 1 else 16) / height,
            "yanchor": "top",
            "yref": "container",
            "font": {"size": 15, "color": colours.ink, "weight": "normal"},
        },
        "height": height,
        "margin": {"l": 56, "r": 12, "t": 34 + 20 * len(lines), "b": 92},
        # The ground of the page: a saved figure stands alone.
        "paper_bgcolor": colours.ground,
        "plot_bgcolor": colours.ground,
        "font": {"color": colours.ink, "size": 13, "family": FONT},
        "template": "none",
        "hoverlabel": {"bgcolor": colours.ground, "font": {"color": colours.ink}},
        "legend": {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
    }
    # Set as a whole: plotly's own updates look every property up and take twenty times as long.
    figure.layout.template = None
    layout = figure.layout.to_plotly_json()
    axes = {"xaxis", "yaxis", *(name for name in layout if name[:5] in ("xaxis", "yaxis"))}
    figure.layout = _merged(layout, style | dict.fromkeys(axes, quiet | lined))
    for trace in figure.select_traces({"type": "heatmap"}):
        trace.update(colorbar=quiet)
    return figure


def _merged(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, object]:
    """Return settings with others on top, those of dictionaries one by one."""
    inner = {
        name: _merged(before, value)
        for name, value in new.items()
        if isinstance(before := old.get(name), dict) and isinstance(value, dict)
    }
    return {**old, **new, **inner}


def panels(titles: Sequence[str]) -> tuple[go.Figure, list[dict[str, int]]]:
    """Make a figure of small panels, three a row; return it and each panel's place as plotly's methods take it."""
    columns = min(_PANELS_A_ROW, len(titles))
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


def numbered(
    figure: go.Figure,
    texts: Sequence[Sequence[str]],
    places: NDArray[np.floating],
    scale: Scale,
    size: int = 11,
    **where: object,
) -> None:
    """Write into the squares of a heatmap, (rows, columns), each in a colour that is read on its own square's.

    `places` are those of the squares on their `scale`, in 0..1; empty texts are left out.
    """
    squares = [(row, column) for row, line in enumerate(texts) for column, text in enumerate(line) if text]
    figure.add_scatter(
        x=[column for _, column in squares],
        y=[row for row, _ in squares],
        mode="text",
        text=[texts[row][column] for row, column in squares],
        textfont={"size": size, "color": [ink_on(at(scale, float(places[square]))) for square in squares]},
        hoverinfo="skip",
        showlegend=False,
        **where,
    )


def spread(heights: Sequence[float], low: float, high: float, apart: float) -> list[float]:
    """Move heights of names apart, in their order, as little as going from below allows.

    `apart` is the least distance of two, in parts of what lies between `low` and `high`.
    """
    gap = apart * (high - low)
    order = sorted(range(len(heights)), key=lambda name: heights[name])
    placed = [0.0] * len(heights)
    floor = low
    for name in order:
        placed[name] = max(heights[name], floor)
        floor = placed[name] + gap
    ceiling = high
    for name in reversed(order):
        placed[name] = min(placed[name], ceiling)
        ceiling = placed[name] - gap
    return placed


def logarithmic_x(figure: go.Figure) -> go.Figure:
    """Make the horizontal axes logarithmic, with ticks at 1, 2 and 5; what lies at 0 is left out."""
    return figure.update_xaxes(type="log", range=None, rangemode=None, dtick="D2")


def rings(number: int, colours: Palette) -> dict[str, object]:
    """Return the look of rings around the marks of so many tests that are selected together."""
    return {
        "mode": "markers",
        "name": f"selected tests ({number})",
        "legendgroup": "together",
        "hoverinfo": "skip",
        "marker": {"symbol": "circle-open", "size": 13, "color": colours.ink, "line": {"width": 1.5}},
    }


def band(
    figure: go.Figure,
    x: NDArray[np.generic],
    low: NDArray[np.generic],
    high: NDArray[np.generic],
    colour: str,
    **look: object,
) -> None:
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


def named_rows(names: Sequence[str], room: float = 0.5) -> dict[str, object]:
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
    marker: Mapping[str, object],
    title: str,
    colours: Palette,
    across: int = _PANELS_A_ROW,
) -> go.Figure:
    """Draw one panel per measure, in each the same bars from top to bottom with their numbers behind them.

    `values` holds (bars,) by the panel's title, each in its own unit, NaN for no bar; `written` is how each is written.
    There are at most `across` panels in a row.
    """
    columns = min(across, len(values))
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
        # Room for the number behind the longest bar, also in a narrow window.
        room = 1.4 if columns <= _PANELS_A_ROW else 1.6
        most = room * float(np.nanmax(row, initial=0.0)) or 1.0
        figure.update_xaxes(range=[0, most], showgrid=False, showticklabels=False, fixedrange=True, **place)
    figure.update_yaxes(**named_rows(labels, 0.6), showgrid=False, fixedrange=True)
    finish(figure, title, colours, height=height)
    figure.update_layout(margin_b=12, bargap=0.25)
    return figure.update_annotations(font={"size": 13, "color": colours.ink})
