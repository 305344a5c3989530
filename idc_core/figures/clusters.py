"""Figures of the Clusters page: the states of each important neuron."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.clustering import Clusters
from idc_core.figures.palette import palette
from idc_core.figures.style import finish, finish_panels, panels

BINS = 40
"""Bars a histogram has."""


def histograms(
    clusters: Sequence[Clusters],
    train: NDArray[np.floating],
    test: NDArray[np.floating],
    neurons: Sequence[str],
    title: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw how often each activation occurs, with centroids and the boundaries between clusters.

    Parameters
    ----------
    clusters : sequence of Clusters, m
        Clusters of each neuron.
    train, test : ndarray of float (n, m)
        Activations of the training inputs (bars) and of the tests (outline).
    neurons : sequence of str
        Titles of the m panels.
    title : str
        The finding.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    figure, places = panels(neurons)
    for index, (one, where) in enumerate(zip(clusters, places, strict=True)):
        edges = _edges(train[:, index], test[:, index])
        middles = (edges[1:] + edges[:-1]) / 2
        bars = _share(train[:, index], edges)
        outline = _share(test[:, index], edges)
        figure.add_bar(
            x=middles, y=bars, width=np.diff(edges), name="training inputs", legendgroup="train",
            showlegend=index == 0, marker={"color": colours.accent, "opacity": 0.55, "line": {"width": 0}},
            hovertemplate="activation %{x:.3g}<br>%{y:.1f} % of training inputs<extra></extra>", **where,
        )  # fmt: skip
        figure.add_scatter(
            x=middles, y=outline, mode="lines", line={"shape": "hvh", "color": colours.tests, "width": 1.4},
            name="tests", legendgroup="test", showlegend=index == 0,
            hovertemplate="activation %{x:.3g}<br>%{y:.1f} % of tests<extra></extra>", **where,
        )  # fmt: skip
        # Lines are traces rather than shapes, so that the legend can name them.
        _lines(figure, one.centroids, "centroid", colours.error, "solid", index == 0, where)
        _lines(figure, one.boundaries, "boundary", colours.ink, "dot", index == 0, where)
    figure.update_layout(bargap=0)
    floor = 50.0 / max(len(train), len(test), 1)  # half an input: below every bar that is drawn
    figure.update_yaxes(type="log", tickvals=[0.001, 0.01, 0.1, 1, 10, 100], range=[np.log10(floor), 2.1])
    return finish_panels(figure, places, "activation", "share of inputs (%)", title, colours)


def _edges(train: NDArray[np.floating], test: NDArray[np.floating]) -> NDArray[np.float64]:
    """Bin edges that hold the activations of both, even where all are equal."""
    values = train if len(test) == 0 else np.concatenate([train, test])
    low, high = float(values.min()), float(values.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, BINS + 1)


def _share(values: NDArray[np.floating], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per cent of the values in each bin."""
    counts = np.histogram(values, edges)[0]
    # An empty bin has no place on a logarithmic axis.
    return np.where(counts > 0, 100.0 * counts / max(1, len(values)), np.nan)


def _lines(
    figure: go.Figure,
    places: NDArray[np.float64],
    name: str,
    colour: str,
    dash: str,
    legend: bool,
    where: dict[str, int],
) -> None:
    """Add vertical lines as one trace."""
    x = np.repeat(places, 3)
    y = np.tile([1e-6, 100.0, np.nan], len(places))
    figure.add_scatter(
        x=x, y=y, mode="lines", line={"color": colour, "dash": dash, "width": 2}, name=name, legendgroup=name,
        showlegend=legend, hovertemplate=name + " %{x:.4g}<extra></extra>", **where,
    )  # fmt: skip


def silhouettes(clusters: Sequence[Clusters], neurons: Sequence[str], title: str, *, dark: bool = False) -> go.Figure:
    """Draw the silhouette of every number of clusters tried, the chosen number with a large mark.

    Parameters
    ----------
    clusters : sequence of Clusters, m
    neurons : sequence of str
        Names of the m neurons.
    title : str
        The finding.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    dashes = ("solid", "dot", "dash", "longdash", "dashdot", "longdashdot")
    figure = go.Figure()
    for index, (one, name) in enumerate(zip(clusters, neurons, strict=True)):
        tried = sorted(one.silhouettes)
        figure.add_scatter(
            x=tried,
            y=[one.silhouettes[k] for k in tried],
            mode="lines+markers",
            name=name,
            line={
                "color": colours.accent if index % 2 == 0 else colours.ink,
                "dash": dashes[index % len(dashes)],
            },
            marker={
                "symbol": ["star" if k == one.k else "circle" for k in tried],
                "size": [14 if k == one.k else 6 for k in tried],
            },
            hovertemplate=f"{name}<br>%{{x}} clusters<br>silhouette %{{y:.3f}}<extra></extra>",
        )
    figure.update_xaxes(title="number of clusters k", dtick=1)
    figure.update_yaxes(title="mean silhouette (-1 to 1)")
    return finish(figure, title, colours, height=390)
