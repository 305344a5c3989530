"""The figure of a verification: how far apart units change, the chosen ones among random sets."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.figures.palette import palette
from idc_core.figures.style import finish
from idc_core.figures.wording import signed

_BINS = 40
"""Columns in which dots are piled up."""


def among_random(
    random: NDArray[np.float64], chosen: float, label: str, title: str, *, dark: bool = False
) -> go.Figure:
    """Draw one dot per random set's silhouette (sets,), piled up where alike, and the chosen units as a diamond."""
    colours = palette(dark)
    low, high = float(min(random.min(), chosen)), float(max(random.max(), chosen))
    width = (high - low) / _BINS or 1.0
    order = np.sort(random)
    columns = np.floor((order - low) / width).astype(np.int64)
    # Sorted, so that a dot's height is how many of its column came before it.
    heights = np.arange(len(order)) - np.searchsorted(columns, columns) + 1
    top = float(heights.max()) + 1
    figure = go.Figure()
    figure.add_scatter(
        x=order,
        y=heights,
        mode="markers",
        name="random sets",
        showlegend=False,
        marker={"color": colours.muted, "size": 7, "opacity": 0.75},
        hovertemplate="a random set<br>silhouette %{x:.3f}<extra></extra>",
    )
    figure.add_scatter(
        x=[chosen, chosen],
        y=[0, top],
        mode="lines",
        showlegend=False,
        hoverinfo="skip",
        line={"color": colours.accent, "width": 2},
    )
    figure.add_scatter(
        x=[chosen],
        y=[top],
        mode="markers",
        name=label,
        showlegend=False,
        marker={"color": colours.accent, "size": 12, "symbol": "diamond"},
        hovertemplate=f"{label}<br>silhouette %{{x:.3f}}<extra></extra>",
    )
    right = chosen > (low + high) / 2
    figure.add_annotation(
        x=chosen,
        y=top,
        text=f"{label}: {signed(chosen, '.3f')}",
        showarrow=False,
        xshift=-12 if right else 12,
        xanchor="right" if right else "left",
        font={"color": colours.accent},
    )
    margin = 0.06 * (high - low) or 1.0
    figure.update_xaxes(
        title="silhouette of changes, hypothesis kept true against made false",
        zeroline=False,
        range=[low - margin, high + margin],
    )
    figure.update_yaxes(title="random sets", rangemode="tozero", range=[0, 1.15 * top], tickformat="d", zeroline=False)
    finish(figure, title, colours, height=260)
    return figure.update_layout(margin_b=48)
