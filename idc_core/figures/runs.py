"""Figures of runs: side by side, and over the successive versions of a network."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from idc_core.figures.palette import palette
from idc_core.figures.style import finish

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")


def side_by_side(
    values: Sequence[Sequence[float | None]],
    texts: Sequence[Sequence[str]],
    labels: Sequence[str],
    runs: Sequence[str],
    title: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw a panel per figure with a bar per run, the first run on top; each panel has a scale of its own.

    `values` and `texts`, as a person reads them, have a sequence per figure, named by `labels`, with an entry per run;
    a run without that figure has None.
    """
    colours = palette(dark)
    figure = make_subplots(1, len(values), subplot_titles=list(labels), shared_yaxes=True, horizontal_spacing=0.05)
    for column, (row, said) in enumerate(zip(values, texts, strict=True), start=1):
        # The first run is what the others are compared with.
        ground = [colours.muted, *[colours.accent] * (len(runs) - 1)]
        figure.add_bar(
            x=list(row), y=list(runs), text=list(said), orientation="h", marker_color=ground, row=1, col=column
        )
    figure.update_traces(
        textposition="outside",
        textangle=0,
        textfont_size=12,
        constraintext="none",
        cliponaxis=False,
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed", type="category")
    # The numbers stand at the bars, and need room behind the longest.
    for column, row in enumerate(values, start=1):
        most = max((abs(value) for value in row if value is not None), default=0.0) or 1.0
        figure.update_xaxes(range=[0, 1.6 * most], showticklabels=False, showgrid=False, row=1, col=column)
    figure.update_layout(showlegend=False)
    finish(figure, title, colours, height=96 + 32 * len(runs))
    figure.update_annotations(font={"size": 12, "color": colours.muted})
    return figure


def over_versions(
    values: Sequence[Sequence[float]],
    versions: Sequence[Sequence[str]],
    labels: Sequence[str],
    axis: str,
    title: str,
    *,
    share: bool = False,
    dark: bool = False,
) -> go.Figure:
    """Draw a line per choice of settings over the versions of a network, the oldest on the left.

    `values` and `versions` have an entry per line, `share` says whether values are shares of one.
    """
    colours = palette(dark)
    factor, ending = (100.0, " %") if share else (1.0, "")
    order = list(dict.fromkeys(name for line in sorted(versions, key=len, reverse=True) for name in line))
    figure = go.Figure()
    for place, (line, names, label) in enumerate(zip(values, versions, labels, strict=True)):
        figure.add_scatter(
            x=list(names),
            y=[factor * value for value in line],
            mode="lines+markers",
            name=label,
            line={"color": (colours.accent, colours.error, colours.muted)[place % 3], "dash": _DASHES[place % 6]},
            marker={"symbol": _SYMBOLS[place % 6], "size": 9},
            showlegend=len(values) > 1,
            hovertemplate=f"%{{x}}: %{{y:.4g}}{ending}<extra></extra>",
        )
    figure.update_xaxes(title="version: day measured, fingerprint of the weights", categoryarray=order, type="category")
    figure.update_yaxes(title=f"{axis}{' (%)' if share else ''}", rangemode="tozero")
    return finish(figure, title, colours, height=340)
