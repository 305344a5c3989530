"""Figures of the Criteria page: scores of suites, growth over random subsets, and faults detected by several orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.coverage.prioritisation import FaultDetection
from idc_core.figures.palette import palette
from idc_core.figures.style import band, bar_panels, finish, finish_panels, logarithmic_x, named_rows, panels
from idc_core.worth.pooling import Mean

_ACROSS = 4
"""Panels in a row: every row repeats the suites' names."""

_STYLES = ("solid", "dash", "dot")
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
    """Draw a panel per criterion with a bar per suite, the first of which stands out.

    Each row of `scores` (criteria, suites) has its own unit; NaN leaves a bar out; `written` is how scores are written.
    """
    colours = palette(dark)
    fills = [colours.accent] + [colours.counts[2]] * (len(suites) - 1)
    marker = {"color": fills, "line": {"width": 0}}
    return bar_panels(dict(zip(criteria, scores, strict=True)), written, suites, marker, title, colours, _ACROSS)


def growth_panels(
    sizes: NDArray[np.int64],
    growth: NDArray[np.float64],
    criteria: Sequence[str],
    shares: Sequence[bool],
    title: str,
    *,
    logarithmic: bool = False,
    dark: bool = False,
) -> go.Figure:
    """Draw a panel per criterion with its score over growing random subsets: the mean, and a band from least to most.

    `growth` (criteria, orders, s) has a score for each number of tests in `sizes` (s,); `shares` are in per cent;
    `logarithmic` is of the number of tests.
    """
    colours = palette(dark)
    figure, places = panels(criteria)
    for name, curves, share, place in zip(criteria, growth, shares, places, strict=True):
        values = curves * (100.0 if share else 1.0)
        unit = " %" if share else ""
        band(figure, sizes, values.min(0), values.max(0), colours.counts[1], opacity=0.5, showlegend=False, **place)
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
    if logarithmic:
        logarithmic_x(figure)
    finish_panels(figure, places, "tests", "", title, colours)
    return figure.update_layout(margin_b=56)


def fault_curves(
    detection: FaultDetection,
    labels: Mapping[str, str],
    marked: Sequence[str],
    title: str,
    *,
    logarithmic: bool = False,
    dark: bool = False,
) -> go.Figure:
    """Draw the share of the misclassified tests among the first tests of every order.

    At most `_STYLES` orders, named by their keys in `marked`, stand out; the others are drawn thin. `logarithmic` is of
    the number of tests.
    """
    colours = palette(dark)
    figure = go.Figure()
    label = f"{len(detection.random)} random orders"
    low, high = 100 * detection.low, 100 * detection.high
    band(figure, detection.tests, low, high, colours.counts[1], opacity=0.5, name=label)
    thin = [key for key in detection.curves if key not in marked]
    for place, key in enumerate(thin):
        figure.add_scatter(
            x=detection.tests,
            y=100 * detection.curves[key],
            mode="lines",
            line={"color": colours.muted, "width": 1},
            opacity=0.5,
            name="other orders",
            legendgroup="others",
            showlegend=place == 0,
            text=[labels[key]],
            hovertemplate=f"{labels[key]}<br>%{{x:,}} tests: %{{y:.3g}} %<extra></extra>",
        )
    inks = (colours.accent, colours.ink, colours.error)
    for key, dash, ink in zip(marked, _STYLES, inks, strict=False):
        figure.add_scatter(
            x=detection.tests,
            y=100 * detection.curves[key],
            mode="lines",
            line={"color": ink, "width": 2.5, "dash": dash},
            name=f"{labels[key]} (APFD {100 * detection.apfd[key]:.1f} %)",
            hovertemplate=f"{labels[key]}<br>%{{x:,}} tests: %{{y:.3g}} %<extra></extra>",
        )
    figure.update_xaxes(title="tests run", rangemode="tozero", tickformat=",d")
    figure.update_yaxes(title="misclassified tests detected (%)", range=[0, 102])
    if logarithmic:
        logarithmic_x(figure)
    finish(figure, title, colours, height=420)
    return figure.update_layout(margin_b=110)


def worth_marks(rankings: Sequence[str], more: Sequence[Mean], title: str, *, dark: bool = False) -> go.Figure:
    """Draw by how much more each ranking's selection finds than random tests: a mark with its interval, in points.

    The first is on top; filled marks stand out.
    """
    colours = palette(dark)
    values, low, high = (100 * np.array([getattr(one, name) for one in more]) for name in ("value", "low", "high"))
    figure = go.Figure(
        go.Scatter(
            x=values.tolist(),
            y=list(range(len(rankings))),
            mode="markers",
            error_x={
                "array": (high - values).tolist(),
                "arrayminus": (values - low).tolist(),
                "color": colours.muted,
                "thickness": 1.5,
                "width": 4,
            },
            marker={
                "size": 10,
                "color": colours.accent,
                "symbol": ["circle" if one.is_certain else "circle-open" for one in more],
                "line": {"color": colours.accent, "width": 1.5},
            },
            text=[
                f"{name}<br>{value:+.1f} points{f' ({a:.1f} to {b:.1f})' if one.networks > 1 else ''}"
                for name, value, a, b, one in zip(rankings, values, low, high, more, strict=True)
            ],
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
        )
    )
    figure.add_vline(x=0, line={"color": colours.line, "width": 1})
    figure.update_xaxes(title="more found than by random tests, points", zeroline=False)
    figure.update_yaxes(**named_rows(list(rankings)))
    finish(figure, title, colours, height=150 + 24 * max(4, len(rankings)))
    longest = max(map(len, rankings), default=0)
    return figure.update_layout(margin={"l": 24 + 7 * longest, "b": 56})
