"""Figures of the Learn page: importance, k-means step by step, and how tests fill cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray
from plotly.subplots import make_subplots

from idc_core.analysis.teaching import LAYERS, NAMES, Floats, Step, Weights, explain
from idc_core.figures.palette import CLASSES, ON_FILL, Palette, palette
from idc_core.figures.style import finish
from idc_core.figures.wording import signed

_SYMBOLS = ("circle", "square", "triangle-up", "diamond")
"""Marks of the clusters, so that colour is not their only sign."""

_TOWARDS = {False: "#b2182b", True: "#f4a582"}
_AGAINST = {False: "#2166ac", True: "#92c5de"}


def relevance_signs(dark: bool) -> dict[str, str]:
    """Return the colours of lines and bars for relevance towards and against an answer."""
    return {"towards": _TOWARDS[dark], "against": _AGAINST[dark]}


def importance(
    activation: NDArray[np.float64], relevance: NDArray[np.float64], neurons: Sequence[str], title: str, *, dark: bool
) -> go.Figure:
    """Draw how active neurons are on average beside their relevance, summed over the same inputs, (m,) each."""
    colours, signs = palette(dark), relevance_signs(dark)
    figure = make_subplots(1, 2, shared_yaxes=True, horizontal_spacing=0.08)
    shares = [signs["towards"] if value >= 0 else signs["against"] for value in relevance]
    for column, (values, colour) in enumerate(((activation, colours.accent), (relevance, shares)), start=1):
        figure.add_bar(
            x=values,
            y=list(neurons),
            orientation="h",
            marker={"color": colour},
            text=[f"{value:.2f}" for value in values],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.3f}<extra></extra>",
            row=1,
            col=column,
        )
        low, high = min(0.0, float(values.min())), max(0.01, float(values.max()))
        room = 0.15 * (high - low)  # for the numbers at the ends of the bars
        figure.update_xaxes(range=[low - room * (low < 0), high + room], row=1, col=column)
    figure.update_xaxes(title="mean activation", col=1)
    figure.update_xaxes(title="summed relevance (unit of a score)", col=2)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_yaxes(title="neuron", col=1)
    finish(figure, title, colours, height=270)
    figure.update_layout(showlegend=False, margin={"b": 52})
    return figure


def kmeans(values: ArrayLike, step: Step, title: str, *, dark: bool) -> go.Figure:
    """Draw values (n,) as dots on a line, with the cluster each belongs to and the centroids."""
    colours = palette(dark)
    places = np.asarray(values, dtype=np.float64)
    heights = _stacked(places)
    figure = go.Figure()
    top = heights.max() + 1
    for index, centroid in enumerate(step.centroids):
        # One above the other, the lowest value on top: they start close together, and each name stands on the right.
        figure.add_scatter(
            x=[centroid, centroid],
            y=[0, top + 1.3 * (len(step.centroids) - 1 - index)],
            mode="lines+text",
            showlegend=index == 0,
            name="centroid",
            line={"color": colours.error, "width": 2},
            text=["", f"{index}: {centroid:.2f}"],
            textposition="top right",
            textfont={"color": colours.ink},
            hovertemplate=f"centroid {index}: %{{x:.3f}}<extra></extra>",
        )
    for index in range(-1, len(step.centroids)):
        own = step.assignment == index
        if own.any():
            figure.add_scatter(
                x=places[own],
                y=heights[own],
                mode="markers",
                name="no cluster yet" if index < 0 else f"cluster {index}",
                marker={
                    "size": 13,
                    "symbol": "circle-open" if index < 0 else _SYMBOLS[index % len(_SYMBOLS)],
                    "color": colours.ink if index < 0 else CLASSES[index],
                    "line": {"color": colours.ink, "width": 1.2},
                },
                hovertemplate="activation %{x:.3f}<extra></extra>",
            )
    figure.update_xaxes(title="activation", range=[places.min() - 0.06, places.max() + 0.06])
    figure.update_yaxes(visible=False, range=[0, top + 1.3 * len(step.centroids)])
    finish(figure, title, colours, height=370)
    figure.update_layout(margin={"l": 12})
    return figure


def _stacked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Heights that put equal or nearly equal values on top of each other."""
    near = (values.max() - values.min()) / 50
    heights = np.ones(len(values))
    order = np.argsort(values, kind="stable")
    base = values[order[0]]
    for before, index in pairwise(order):
        if values[index] - base <= near:
            heights[index] = heights[before] + 1
        else:
            base = values[index]
    return heights


def cells(
    activations: NDArray[np.float64],
    assigned: NDArray[np.uint8],
    boundaries: tuple[NDArray[np.float64], NDArray[np.float64]],
    neurons: tuple[str, str],
    title: str,
    *,
    own: bool = False,
    dark: bool,
) -> go.Figure:
    """Draw tests (n, 2) in the plane of two neurons, which the boundaries of their states cut into cells."""
    colours = palette(dark)
    top = 1.25
    edges = [np.concatenate([[-0.08], bounds, [top]]) for bounds in boundaries]
    shapes, labels = [], []
    for across in range(len(edges[0]) - 1):
        for upwards in range(len(edges[1]) - 1):
            held = int((assigned == (across, upwards)).all(axis=1).sum())
            corner = (edges[0][across], edges[1][upwards], edges[0][across + 1], edges[1][upwards + 1])
            shape, label = _cell(corner, f"cell {across}-{upwards}", held, colours)
            shapes.append(shape)
            labels.append(label)
    # All at once: plotly checks those that are there again for each that is added.
    figure = go.Figure(layout={"shapes": shapes, "annotations": labels})
    given = len(activations) - own
    figure.add_scatter(
        x=activations[:, 0],
        y=activations[:, 1],
        mode="markers+text",
        showlegend=False,
        text=[f"test {index + 1}" for index in range(given)] + ["yours"] * own,
        textposition=["top center"] * given + ["middle right"] * own,
        textfont={"color": ON_FILL, "size": 13},
        marker={
            "opacity": 1,
            "size": [12] * given + [20] * own,
            "symbol": ["circle"] * given + ["star"] * own,
            "color": [colours.tests] * given + [colours.error] * own,
            "line": {"color": ON_FILL, "width": 1},
        },
        hovertemplate=f"{neurons[0]} %{{x:.2f}}, {neurons[1]} %{{y:.2f}}<extra></extra>",
    )
    figure.update_xaxes(title=f"activation of {neurons[0]}", range=[-0.08, top], showgrid=False, zeroline=False)
    figure.update_yaxes(title=f"activation of {neurons[1]}", range=[-0.08, top], showgrid=False, zeroline=False)
    finish(figure, title, colours, height=430)
    figure.update_layout(margin={"b": 52})
    return figure


def _cell(
    corner: tuple[float, float, float, float], name: str, held: int, colours: Palette
) -> tuple[dict[str, object], dict[str, object]]:
    """Draw one cell: filled and counted where a test is in it, empty otherwise."""
    left, bottom, right, upper = corner
    words = f"{held} test{'s' if held > 1 else ''}" if held else "empty"
    shape = {
        "type": "rect",
        "x0": left,
        "y0": bottom,
        "x1": right,
        "y1": upper,
        "layer": "below",
        "line": {"color": colours.muted, "width": 1.5, "dash": "solid" if held else "dot"},
        "fillcolor": colours.counts[0] if held else "rgba(0,0,0,0)",
    }
    label = {
        "x": left,
        "y": upper,
        "xanchor": "left",
        "yanchor": "top",
        "showarrow": False,
        "align": "left",
        "text": f"{name}<br>{words}",
        "font": {"size": 12, "color": ON_FILL if held else colours.ink},
    }
    return shape, label


def network(
    weights: Weights, inputs: Floats, title: str, *, relevance: bool, target: int | None = None, dark: bool
) -> go.Figure:
    """Draw the ten neurons with the value of each: lines show their weights, or the `relevance` that flows back."""
    colours, signs = palette(dark), relevance_signs(dark)
    said = explain(weights, inputs[None], target)
    values, flows = [one[0] for one in said.values], [one[0] for one in said.flows]
    heights = [np.linspace(1, -1, len(layer) + 2)[1:-1] for layer in NAMES]
    figure = go.Figure()
    for depth, lines in enumerate(flows if relevance else weights):
        widest = float(np.abs(lines).max()) or 1.0
        for (start, end), value in np.ndenumerate(lines):
            y = [heights[depth][start], heights[depth + 1][end]]
            style = {"width": 1 + 7 * abs(value) / widest, "dash": "solid" if value >= 0 else "dash"}
            line = style | {"color": signs["towards"] if value >= 0 else signs["against"]}
            figure.add_scatter(x=[depth, depth + 1], y=y, mode="lines", line=line, hoverinfo="skip")
            if abs(value) >= 0.005:
                part = (0.3, 0.5, 0.7)[start % 3]  # numbers of crossing lines do not lie on each other
                figure.add_annotation(
                    text=signed(float(value), ".2f"),
                    x=depth + part,
                    y=y[0] + (y[1] - y[0]) * part,
                    showarrow=False,
                    bgcolor=colours.ground,
                    font_size=13,
                )
    for depth, names in enumerate(NAMES):
        figure.add_scatter(
            x=[depth] * len(names),
            y=heights[depth],
            mode="markers+text",
            text=[f"{name}<br>{signed(float(value), '.2f')}" for name, value in zip(names, values[depth], strict=True)],
            textfont={"size": 13, "color": ON_FILL},
            marker={
                "size": 72,
                "symbol": "circle" if depth else "square",
                "color": colours.counts[0],
                "line": {"color": colours.ink, "width": 1.5},
                "opacity": 1,
            },
            hoverinfo="skip",
        )
    figure.update_xaxes(tickvals=list(range(len(LAYERS))), ticktext=list(LAYERS), showgrid=False, zeroline=False)
    figure.update_yaxes(visible=False, range=[-0.75, 0.75])
    finish(figure, title, colours, height=420)
    return figure.update_layout(showlegend=False, margin={"l": 12, "b": 44}, xaxis_range=[-0.3, len(LAYERS) - 0.7])
