"""Figures of the Criteria page: scores of suites, growth over random subsets, and mistakes met in several orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.coverage.prioritisation import Finding
from idc_core.figures.palette import palette
from idc_core.figures.style import bar_panels, finish, finish_panels, panels

STYLES = ("solid", "dash", "dot")
"""Dashes of the orders that stand out, first to last."""


def suite_scores(
    scores: NDArray[np.float64],
    criteria: Sequence[str],
    suites: Sequence[str],
    written: Sequence[Sequence[str]],
    title: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw a panel a criterion with a bar a suite.

    Parameters
    ----------
    scores : ndarray of float64 (criteria, suites)
        Each row in its own unit; NaN leaves a bar out.
    criteria, suites : sequence of str
        Labels; the first suite stands out.
    written : sequence of sequences of str
        Every score as it is written beside its bar.
    title : str
        The finding.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    fills = [colours.accent] + [colours.counts[2]] * (len(suites) - 1)
    marker = {"color": fills, "line": {"width": 0}}
    return bar_panels(dict(zip(criteria, scores, strict=True)), written, suites, marker, title, colours)


def growth_panels(
    sizes: NDArray[np.int64],
    growth: NDArray[np.float64],
    criteria: Sequence[str],
    shares: Sequence[bool],
    title: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw a panel a criterion with its score over growing random subsets: the mean, and a band from least to most.

    Parameters
    ----------
    sizes : ndarray of int64 (s,)
        Numbers of tests.
    growth : ndarray of float64 (criteria, orders, s)
        Scores.
    criteria : sequence of str
        Labels.
    shares : sequence of bool
        Whether each criterion's score is a share, drawn in per cent.
    title : str
        The finding.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    figure, places = panels(criteria)
    for name, curves, share, place in zip(criteria, growth, shares, places, strict=True):
        values = curves * (100.0 if share else 1.0)
        unit = " %" if share else ""
        figure.add_scatter(
            x=np.concatenate([sizes, sizes[::-1]]),
            y=np.concatenate([values.max(0), values.min(0)[::-1]]),
            fill="toself",
            fillcolor=colours.counts[1],
            opacity=0.5,
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            **place,
        )
        figure.add_scatter(
            x=sizes,
            y=values.mean(0),
            mode="lines+markers",
            line={"color": colours.accent, "width": 2},
            marker={"size": 4},
            showlegend=False,
            hovertemplate=f"{name}<br>%{{x:,}} tests: %{{y:.4g}}{unit} on average<extra></extra>",
            **place,
        )
        figure.update_yaxes(ticksuffix=unit, exponentformat="none", **place)
    figure.update_xaxes(rangemode="tozero", tickformat=",d")
    figure.update_yaxes(rangemode="tozero", tickformat="~s", nticks=5)
    finish_panels(figure, places, "number of tests", "", title, colours)
    return figure.update_layout(margin_b=56)


def mistakes(
    finding: Finding, labels: Mapping[str, str], marked: Sequence[str], title: str, *, dark: bool = False
) -> go.Figure:
    """Draw which share of the misclassified tests the first ones of every order hold.

    Parameters
    ----------
    finding : Finding
        Curves of the orders and of random ones.
    labels : mapping of str to str
        Names of the orders, by key.
    marked : sequence of str
        Keys of the orders that stand out, at most as many as `STYLES`; the others are drawn thin.
    title : str
        The finding.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    figure = go.Figure()
    figure.add_scatter(
        x=np.concatenate([finding.tests, finding.tests[::-1]]),
        y=100 * np.concatenate([finding.high, finding.low[::-1]]),
        fill="toself",
        fillcolor=colours.counts[1],
        opacity=0.5,
        line={"width": 0},
        hoverinfo="skip",
        name=f"{len(finding.random)} random orders",
    )
    thin = [key for key in finding.curves if key not in marked]
    for place, key in enumerate(thin):
        figure.add_scatter(
            x=finding.tests,
            y=100 * finding.curves[key],
            mode="lines",
            line={"color": colours.muted, "width": 1},
            opacity=0.5,
            name="the other orders",
            legendgroup="others",
            showlegend=place == 0,
            text=[labels[key]],
            hovertemplate=f"{labels[key]}<br>%{{x:,}} tests: %{{y:.3g}} %<extra></extra>",
        )
    inks = (colours.accent, colours.ink, colours.error)
    for key, dash, ink in zip(marked, STYLES, inks, strict=False):
        figure.add_scatter(
            x=finding.tests,
            y=100 * finding.curves[key],
            mode="lines",
            line={"color": ink, "width": 2.5, "dash": dash},
            name=f"{labels[key]} (APFD {finding.apfd[key]:.3f})",
            hovertemplate=f"{labels[key]}<br>%{{x:,}} tests: %{{y:.3g}} %<extra></extra>",
        )
    figure.update_xaxes(title="tests run, in the order", rangemode="tozero", tickformat=",d")
    figure.update_yaxes(title="misclassified tests met (%)", range=[0, 102])
    finish(figure, title, colours, height=420)
    return figure.update_layout(margin_b=110)
