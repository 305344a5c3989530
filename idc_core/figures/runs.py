"""A figure of runs over the successive versions of a network."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from idc_core.figures.palette import palette
from idc_core.figures.style import finish

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")


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
