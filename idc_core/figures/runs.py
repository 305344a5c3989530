"""Figures of runs: side by side, and over the successive versions of a network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from idc_core.figures.palette import palette
from idc_core.figures.style import bar_panels, finish

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
    # The first run is what the others are compared with.
    marker = {"color": [colours.muted, *[colours.accent] * (len(runs) - 1)]}
    panels = {label: np.array(row, dtype=float) for label, row in zip(labels, values, strict=True)}
    return bar_panels(panels, texts, runs, marker, title, colours, across=4)


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
