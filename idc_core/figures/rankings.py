"""Figures of the Neurons page: how far rankings agree, and for which classes a neuron speaks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.figures.palette import RELEVANCE, SCHEMES, palette
from idc_core.figures.style import SHORT, finish

WIDE = 120
"""Characters of all labels up to which they fit beside each other."""

MOST_NUMBERS = 16
"""Rankings up to which every correlation is written into its square."""


def agreement(
    correlations: NDArray[np.float64], labels: Sequence[str], title: str, axis: str = "ranking", *, dark: bool = False
) -> go.Figure:
    """Draw the rank correlation of every two rankings as a square.

    Parameters
    ----------
    correlations : ndarray of float64 (k, k)
        In -1..1; NaN leaves a square empty.
    labels : sequence of str
        Names of the k rankings.
    title : str
        The finding.
    axis : str
        What the labels name.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    anchors = SCHEMES["orange-purple"].anchors
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(correlations, np.float32), x=list(labels), y=list(labels), zmin=-1, zmax=1, xgap=1, ygap=1,
            colorscale=[
                (place, f"rgb({','.join(f'{channel:.0f}' for channel in anchor)})")
                for place, anchor in zip(np.linspace(0, 1, len(anchors)), anchors, strict=True)
            ],
            texttemplate="%{z:.2f}" if len(labels) <= MOST_NUMBERS else "", hoverongaps=False,
            hovertemplate="%{y}<br>%{x}<br>rank correlation %{z:.3f}<extra></extra>",
            colorbar={"title": {"text": "rank correlation", "side": "right"}, "thickness": 12, "tickvals": [-1, 0, 1]},
        )
    )  # fmt: skip
    longest = max(map(len, labels), default=0)
    angle = -45 if longest > SHORT else 0
    figure.update_xaxes(title=axis, title_standoff=8, type="category", tickangle=angle, showgrid=False)
    figure.update_yaxes(title=axis, title_standoff=8, type="category", autorange="reversed", showgrid=False)
    finish(figure, title, colours, height=220 + 26 * max(6, len(labels)), wrap=68)
    # Room for the labels: plotly would make it by drawing everything again.
    return figure.update_layout(margin={"l": 40 + 5 * longest, "r": 96, "b": 48 + 4 * longest})


def relevance_by_group(
    values: NDArray[np.float64],
    labels: Sequence[str],
    title: str,
    axis: str,
    *,
    chosen: Sequence[str] = (),
    dark: bool = False,
) -> go.Figure:
    """Draw a neuron's mean relevance over the inputs of each class.

    Parameters
    ----------
    values : ndarray of float64 (classes,)
        NaN for a class without inputs.
    labels : sequence of str
        Names of the classes.
    title : str
        The finding.
    axis : str
        What the labels are.
    chosen : sequence of str
        Labels that get a mark.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
        `customdata` of a bar is its class's index.
    """
    colours = palette(dark)
    known = np.nan_to_num(values)
    figure = go.Figure()
    for name, inside, anchor, pattern in (
        ("for", known >= 0, RELEVANCE[4], ""), ("against", known < 0, RELEVANCE[2], "/"),
    ):  # fmt: skip
        places = np.flatnonzero(inside & np.isfinite(values)).tolist()
        figure.add_bar(
            x=[labels[i] for i in places], y=values[places], customdata=places, name=name,
            marker={
                "color": f"rgb({','.join(f'{channel:.0f}' for channel in anchor)})",
                "line": {"color": colours.ink, "width": 1},
                "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": "#12161a", "size": 7, "solidity": 0.2},
            },
            hovertemplate=f"%{{x}}<br>mean relevance %{{y:.4g}}<extra>{name}</extra>",
        )  # fmt: skip
    marked = [i for i, label in enumerate(labels) if label in chosen]
    if marked:
        figure.add_scatter(
            x=[labels[i] for i in marked], y=values[marked], customdata=marked, mode="markers", name="chosen classes",
            marker={"symbol": "diamond", "size": 10, "color": colours.ink}, hoverinfo="skip",
        )  # fmt: skip
    figure.update_layout(bargap=0.3, barmode="overlay")
    longest = max(map(len, labels), default=0)
    figure.update_xaxes(
        title=axis, type="category", categoryorder="array", categoryarray=list(labels), showgrid=False,
        tickangle=-45 if longest > SHORT or len(labels) * (longest + 1) > WIDE else 0,
    )  # fmt: skip
    figure.update_yaxes(title="mean relevance (score units)")
    return finish(figure, title, colours, height=300, wrap=68)
