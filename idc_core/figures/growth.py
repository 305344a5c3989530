"""The figure of coverage against the number of tests."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from idc_core.coverage.growth import Growth
from idc_core.figures.palette import palette
from idc_core.figures.style import finish


def growth_curve(growth: Growth, total: int, title: str, *, dark: bool = False) -> go.Figure:
    """Draw IDC against the number of tests, in the given order, in shuffled ones and in the best one.

    Parameters
    ----------
    growth : Growth
        Covered cells after the first tests.
    total : int
        Number of cells there are.
    title : str
        The finding.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    share = 100.0 / total
    figure = go.Figure()
    figure.add_scatter(
        x=np.concatenate([growth.tests, growth.tests[::-1]]),
        y=np.concatenate([growth.high, growth.low[::-1]]) * share,
        fill="toself", fillcolor=colours.counts[1], opacity=0.35, line={"width": 0}, hoverinfo="skip",
        name="fewest to most",
    )  # fmt: skip
    figure.add_scatter(
        x=growth.tests, y=growth.mean * share, mode="lines", name=f"mean of {growth.orders} shuffled orders",
        line={"color": colours.accent, "dash": "dash", "width": 2},
        hovertemplate="%{x:,} tests<br>IDC %{y:.3g} % on average<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=growth.tests, y=growth.given * share, mode="lines", name="given order",
        line={"color": colours.tests, "width": 2}, customdata=growth.given,
        hovertemplate="%{x:,} tests<br>%{customdata:,} cells, IDC %{y:.3g} %<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=growth.tests, y=growth.greedy * share, mode="lines", name="greedy order",
        line={"color": colours.muted, "dash": "dot", "width": 2}, customdata=growth.greedy,
        hovertemplate="%{x:,} tests<br>%{customdata:,} cells at best, IDC %{y:.3g} %<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title="number of tests", rangemode="tozero", tickformat=",d")
    figure.update_yaxes(title="IDC (% of cells)", rangemode="tozero", tickformat="~g")
    return finish(figure, title, colours, height=390)
