"""Figures of experiments on neurons: what silencing them costs, and how far they move when inputs are changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from idc_core.figures.palette import palette
from idc_core.figures.style import band, finish

if TYPE_CHECKING:
    # Both import torch, which a page that only draws does not need.
    from idc_core.experiments.ablation import Ablation
    from idc_core.experiments.rq1 import RQ1, Summary


_MOST_BOXES = 10
"""Draws of random neurons that have a box."""


def ablation_curve(ablation: Ablation, title: str, *, wrap: int = 78, dark: bool = False) -> go.Figure:
    """Draw what a network achieves against how many neurons are silenced: important ones, and random ones."""
    colours = palette(dark)
    share = ablation.task == "classification"
    factor, ending = (100.0, " %") if share else (1.0, "")
    counts = ablation.counts
    drawn = ~np.isnan(ablation.random_mean)
    known = counts[drawn]
    figure = go.Figure()
    low, high = ablation.random_low[drawn] * factor, ablation.random_high[drawn] * factor
    label = f"random, lowest to highest of {len(ablation.seeds)}"
    band(figure, known, low, high, colours.counts[1], mode="lines", opacity=0.35, name=label)
    figure.add_scatter(
        x=known,
        y=ablation.random_mean[drawn] * factor,
        mode="lines+markers",
        name="random, mean",
        line={"color": colours.accent, "dash": "dash", "width": 2},
        marker={"symbol": "circle-open", "size": 7},
        hovertemplate=f"%{{x}} random neurons silenced<br>{ablation.unit} %{{y:.4g}}{ending}<extra></extra>",
    )
    figure.add_scatter(
        x=counts,
        y=ablation.important * factor,
        mode="lines+markers",
        name="most important",
        line={"color": colours.error, "width": 2},
        marker={"symbol": "diamond", "size": 8},
        hovertemplate=f"%{{x}} most important silenced<br>{ablation.unit} %{{y:.4g}}{ending}<extra></extra>",
    )
    figure.add_hline(
        ablation.baseline * factor,
        line={"color": colours.muted, "dash": "dot", "width": 1},
        annotation={"text": "none silenced", "font": {"size": 11, "color": colours.muted}},
    )
    figure.update_xaxes(title=f"neurons silenced, of the layer's {ablation.neurons:,}", rangemode="tozero")
    figure.update_yaxes(title=f"{ablation.unit} on {ablation.tests:,} tests{' (%)' if share else ''}")
    return finish(figure, title, colours, height=390, wrap=wrap)


def rq1_boxes(result: RQ1, title: str, *, scaled: bool = False, wrap: int = 78, dark: bool = False) -> go.Figure:
    """Draw how far neurons moved, a box for the important ones and one for each of the first draws of random ones.

    Boxes reach from the lower to the upper quartile, whiskers from the 5th to the 95th percentile; a dashed line
    shows the mean. With `scaled` each neuron's change is measured in its own standard deviations.
    """
    from idc_core.experiments.rq1 import summarise

    colours = palette(dark)
    own, others = result.distances(scaled)
    names = [f"seed {seed}" for seed in result.seeds[:_MOST_BOXES]]
    figure = go.Figure()
    figure.add_box(
        **_box([summarise(own)], ["important"]),
        name="important neurons",
        fillcolor=colours.error,
        line={"color": colours.ink, "width": 2.5},
        opacity=0.85,
    )
    figure.add_box(
        **_box([summarise(row) for row in others[: len(names)]], names),
        name="random neurons, a box per seed",
        fillcolor=colours.counts[0],
        line={"color": colours.accent, "width": 1.5},
    )
    unit = "standard deviations" if scaled else "units of activation"
    figure.update_xaxes(
        title="neurons", type="category", categoryarray=["important", *names], categoryorder="array", showgrid=False
    )
    figure.update_yaxes(title=f"L2 distance ({unit})", rangemode="tozero")
    return finish(figure, title, colours, height=420, wrap=wrap)


def _box(summaries: list[Summary], names: list[str]) -> dict[str, object]:
    """Return what plotly needs of boxes whose quantiles are known, so that it need not hold every distance."""
    return {
        "x": names,
        "q1": [s.q1 for s in summaries],
        "median": [s.median for s in summaries],
        "q3": [s.q3 for s in summaries],
        "lowerfence": [s.low for s in summaries],
        "upperfence": [s.high for s in summaries],
        "mean": [s.mean for s in summaries],
        "boxmean": True,
        "hoverinfo": "x+y",
    }
