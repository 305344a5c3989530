"""Figures of the Clusters page: the states of each important neuron."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from idc_core.analysis.cluster_choices import ClusterChoice
from idc_core.clustering.kmeans import Clusters
from idc_core.figures.palette import Palette, palette
from idc_core.figures.style import finish, finish_panels, panels, spread
from idc_core.figures.wording import percent

_BINS = 40
"""Bars a histogram has."""

_TOP = 170.0  # height of the centroids' diamonds, in per cent on a logarithmic axis
_MARK_BELOW = 0.35  # height of a test's star, as a share of theirs


def histograms(
    clusters: Sequence[Clusters],
    train: NDArray[np.floating],
    test: NDArray[np.floating],
    neurons: Sequence[str],
    title: str,
    *,
    numbers: Sequence[int] | None = None,
    selected: tuple[int, int] | None = None,
    marked: NDArray[np.floating] | None = None,
    together: NDArray[np.floating] | None = None,
    logarithmic: bool = True,
    clickable: bool = True,
    dark: bool = False,
) -> go.Figure:
    """Draw how often each activation occurs, with centroids and the boundaries between clusters.

    Bars are the training inputs, `train` (n, m), an outline the tests, `test` (t, m). Bars and the diamonds at the top
    of the centroids carry, as `customdata`, the neuron, by default its place, and the cluster. `selected` is the panel
    and the cluster to frame; `marked` (m,) the activations of one test, drawn as stars; `together` (k, m) those of
    tests that are selected together, drawn as a line. `logarithmic` is of the shares; `clickable` says so.
    """
    colours = palette(dark)
    figure, places = panels(neurons)
    names = range(len(clusters)) if numbers is None else numbers
    edges_of = [bin_edges(train[:, index], test[:, index]) for index in range(len(clusters))]
    top = _TOP
    if not logarithmic:
        shares = [bin_shares(part[:, index], edges) for index, edges in enumerate(edges_of) for part in (train, test)]
        top = 1.1 * float(np.nanmax(shares))
    for index, (groups, where) in enumerate(zip(clusters, places, strict=True)):
        edges = edges_of[index]
        panel = _Panel(figure, where, colours, groups, int(names[index]), index == 0, top)
        panel.shares(train[:, index], test[:, index], edges)
        if together is not None and len(together):
            panel.together(together[:, index], edges)
        # Lines are traces rather than shapes, so that the legend can name them.
        panel.lines(groups.centroids, "centroid", colours.error, "solid", "skip")  # the diamonds tell, and take clicks
        panel.lines(groups.boundaries, "boundary", colours.ink, "dot", "all")
        panel.handles(clickable)
        if marked is not None:
            panel.star(float(marked[index]))
        if selected is not None and selected[0] == index:
            panel.shade(selected[1], edges)
    figure.update_layout(bargap=0)
    if not logarithmic:
        figure.update_yaxes(range=[0, 1.08 * top])
        return finish_panels(figure, places, "activation", "share of inputs (%)", title, colours)
    floor = 50.0 / max(len(train), len(test), 1)  # half an input: below every bar that is drawn
    figure.update_yaxes(type="log", tickvals=[0.001, 0.01, 0.1, 1, 10, 100], range=[np.log10(floor), 2.45])
    return finish_panels(figure, places, "activation", "share of inputs (%)", title, colours)


@dataclass(frozen=True)
class _Panel:
    """The panel of one neuron in a figure of histograms."""

    figure: go.Figure
    where: dict[str, int]
    colours: Palette
    clusters: Clusters
    neuron: int
    legend: bool
    top: float  # height of the centroids' diamonds

    def shares(self, train: NDArray[np.floating], test: NDArray[np.floating], edges: NDArray[np.float64]) -> None:
        """Draw how often activations occur: bars for the training inputs, an outline for the tests."""
        middles = (edges[1:] + edges[:-1]) / 2
        cluster = np.searchsorted(self.clusters.boundaries, middles)
        self.figure.add_bar(
            x=middles,
            y=bin_shares(train, edges),
            width=np.diff(edges),
            name="training inputs",
            legendgroup="train",
            showlegend=self.legend,
            marker={"color": self.colours.accent, "opacity": 0.55, "line": {"width": 0}},
            customdata=np.stack([np.full_like(cluster, self.neuron), cluster], axis=1),
            hovertemplate="activation %{x:.3g}, cluster %{customdata[1]}<br>%{y:.1f} % of training inputs"
            "<extra></extra>",
            **self.where,
        )
        self.figure.add_scatter(
            x=middles,
            y=bin_shares(test, edges),
            mode="lines",
            name="tests",
            legendgroup="test",
            showlegend=self.legend,
            line={"shape": "hvh", "color": self.colours.tests, "width": 1.4},
            hovertemplate="activation %{x:.3g}<br>%{y:.1f} % of tests<extra></extra>",
            **self.where,
        )

    def together(self, values: NDArray[np.floating], edges: NDArray[np.float64]) -> None:
        """Draw how often activations of tests that are selected together occur."""
        self.figure.add_scatter(
            x=(edges[1:] + edges[:-1]) / 2,
            y=bin_shares(values, edges),
            mode="lines+markers",
            name=f"selected tests ({len(values)})",
            legendgroup="together",
            showlegend=self.legend,
            line={"shape": "hvh", "color": self.colours.error, "width": 2.4},
            marker={"symbol": "circle", "size": 5, "color": self.colours.error},
            hovertemplate="activation %{x:.3g}<br>%{y:.1f} % of the selected tests<extra></extra>",
            **self.where,
        )

    def lines(self, places: NDArray[np.float64], name: str, colour: str, dash: str, hover: str) -> None:
        """Draw vertical lines as one trace."""
        self.figure.add_scatter(
            x=np.repeat(places, 3),
            y=np.tile([1e-6, self.top, np.nan], len(places)),
            mode="lines",
            name=name,
            line={"color": colour, "dash": dash, "width": 2},
            legendgroup=name,
            showlegend=self.legend,
            hoverinfo=hover,
            hovertemplate=f"{name} %{{x:.4g}}<extra></extra>" if hover == "all" else None,
            **self.where,
        )

    def handles(self, clickable: bool) -> None:
        """Draw a diamond on top of every centroid: a bar can be too low to be clicked."""
        click = "<br>click to select it" if clickable else ""
        self.figure.add_scatter(
            x=self.clusters.centroids,
            y=np.full(self.clusters.k, self.top),
            mode="markers",
            showlegend=False,
            customdata=[[self.neuron, cluster] for cluster in range(self.clusters.k)],
            marker={
                "symbol": "diamond",
                "size": 11,
                "color": self.colours.error,
                "line": {"color": self.colours.ink, "width": 1},
            },
            hovertemplate=f"cluster %{{customdata[1]}}, centroid %{{x:.4g}}{click}<extra></extra>",
            **self.where,
        )

    def star(self, activation: float) -> None:
        """Mark the activation of the selected test."""
        self.figure.add_scatter(
            x=[activation],
            y=[_MARK_BELOW * self.top],
            mode="markers",
            name="selected test",
            legendgroup="marked",
            showlegend=self.legend,
            hovertemplate="selected test, activation %{x:.4g}<extra></extra>",
            marker={
                "symbol": "star",
                "size": 14,
                "color": self.colours.ground,
                "line": {"color": self.colours.ink, "width": 2},
            },
            **self.where,
        )

    def shade(self, cluster: int, edges: NDArray[np.float64]) -> None:
        """Shade and frame a cluster."""
        ends = np.concatenate((edges[:1], self.clusters.boundaries, edges[-1:]))
        self.figure.add_vrect(
            x0=ends[cluster],
            x1=ends[cluster + 1],
            fillcolor=self.colours.muted,
            opacity=0.25,
            layer="below",
            line={"color": self.colours.ink, "width": 2},
            **self.where,
        )


def bin_edges(train: NDArray[np.floating], test: NDArray[np.floating]) -> NDArray[np.float64]:
    """Bin edges that hold the activations of both, even where all are equal."""
    values = train if len(test) == 0 else np.concatenate([train, test])
    low, high = float(values.min()), float(values.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, _BINS + 1)


def bin_shares(values: NDArray[np.floating], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per cent of the values in each bin."""
    counts = np.histogram(values, edges)[0]
    # An empty bin has no place on a logarithmic axis.
    return np.where(counts > 0, 100.0 * counts / max(1, len(values)), np.nan)


def silhouettes(clusters: Sequence[Clusters], neurons: Sequence[str], title: str, *, dark: bool = False) -> go.Figure:
    """Draw the silhouette of every number of clusters tried, the chosen number with a large mark.

    A neuron for which none was tried, since it is constant or its number was set by hand, has no line.
    """
    colours = palette(dark)
    dashes = ("solid", "dot", "dash", "longdash", "dashdot", "longdashdot")
    figure = go.Figure()
    for index, (groups, name) in enumerate(zip(clusters, neurons, strict=True)):
        if not (tried := sorted(groups.silhouettes)):
            continue
        figure.add_scatter(
            x=tried,
            y=[groups.silhouettes[k] for k in tried],
            mode="lines+markers",
            name=name,
            line={"color": colours.lines[index % len(colours.lines)], "dash": dashes[index % len(dashes)]},
            showlegend=False,
            marker={
                "symbol": ["star" if k == groups.k else "circle" for k in tried],
                "size": [14 if k == groups.k else 6 for k in tried],
            },
            hovertemplate=f"{name}<br>%{{x}} clusters<br>silhouette %{{y:.3f}}<extra></extra>",
        )
    figure.update_xaxes(title="number of clusters k", dtick=1)
    figure.update_yaxes(title="mean silhouette (\u22121 to 1)")
    _name_ends(figure, colours)
    finish(figure, title, colours, height=390)
    return figure.update_layout(margin={"r": 24 + 7 * max(map(len, neurons)), "b": 60})


def _name_ends(figure: go.Figure, colours: Palette) -> None:
    """Write the names of lines behind their ends."""
    values = [value for line in figure.data for value in line.y]
    low, high = min(values), max(values)
    heights = spread([line.y[-1] for line in figure.data], low, high, 0.06)
    for line, height in zip(figure.data, heights, strict=True):
        name = f'<span style="color:{line.line.color}">\u25cf</span> {escape(line.name)}'
        place = {"x": line.x[-1], "y": height, "xanchor": "left", "xshift": 10}
        figure.add_annotation(text=name, showarrow=False, font={"size": 12, "color": colours.ink}, **place)


_SYMBOLS = ("circle", "square", "diamond", "triangle-up")
"""Marks of the ways to cluster, in the order in which they are drawn."""


def choices(
    found: Sequence[ClusterChoice], labels: Mapping[str, str], title: str, present: ClusterChoice, *, dark: bool = False
) -> go.Figure:
    """Draw how many cells there are, and which share is covered, for every choice of clusters.

    Marks carry their place in `found` as `customdata`; `labels` says what each way to cluster is called.
    """
    colours = palette(dark)
    figure = make_subplots(1, 2, subplot_titles=["cells in all", "covered cells (IDC)"], horizontal_spacing=0.1)
    places = {id(choice): place for place, choice in enumerate(found)}
    for index, name in enumerate(dict.fromkeys(choice.clustering for choice in found)):
        for dropped in (False, True):
            line = [choice for choice in found if choice.clustering == name and choice.drop_zeros == dropped]
            label = f"{labels[name]}, zeros {'dropped' if dropped else 'kept'}"
            symbol = _SYMBOLS[index % len(_SYMBOLS)] + ("-open" if dropped else "")
            colour = (colours.accent, colours.error, colours.ink, colours.muted)[index % 4]
            # No line leads from an automatic choice to a number, or to another index's.
            first = [one for choice in line if choice.k is None for one in (choice, None)]
            apart = [*first, *(choice for choice in line if choice.k is not None)]
            for column, value in ((1, _cells), (2, _covered)):
                found_here = [None if one is None else places[id(one)] for one in apart]
                figure.add_scatter(
                    x=[_choice(None if one is None else one.k) for one in apart],
                    y=[None if one is None else float(value(one)) for one in apart],
                    name=label,
                    mode="lines+markers",
                    legendgroup=label,
                    showlegend=column == 1,
                    line={"color": colour, "dash": "dot" if dropped else "solid", "width": 1.5},
                    marker={"symbol": symbol, "size": 10, "color": colour, "line": {"width": 1.5, "color": colour}},
                    customdata=found_here,
                    text=["" if one is None else _spoken(one) for one in apart],
                    hovertemplate=f"{label}, %{{x}}<br>%{{text}}<br>click to use it<extra></extra>",
                    row=1,
                    col=column,
                )
    for column, value in ((1, _cells), (2, _covered)):
        figure.add_scatter(
            x=[_choice(present.k)],
            y=[value(present)],
            mode="markers",
            name="this setup",
            legendgroup="present",
            showlegend=column == 1,
            hoverinfo="skip",
            row=1,
            col=column,
            marker={"symbol": "circle-open", "size": 20, "color": colours.ink, "line": {"width": 2}},
        )
    figure.update_xaxes(title="number of clusters k", type="category", categoryarray=["auto", *map(str, range(2, 9))])
    figure.update_yaxes(title="cells", range=_decades(list(map(_cells, found))), tickformat=",d", row=1, col=1)
    figure.update_yaxes(title="covered (%)", range=_decades(list(map(_covered, found))), tickformat="~g", row=1, col=2)
    figure.update_yaxes(type="log", dtick=1)
    finish(figure, title, colours, height=450)
    figure.update_annotations(font={"size": 13, "color": colours.ink})
    figure.update_layout(margin={"t": figure.layout.margin.t + 22})  # room between the title and the panels' titles
    return figure


def _cells(choice: ClusterChoice) -> float:
    return choice.total


def _covered(choice: ClusterChoice) -> float:
    return 100 * choice.score


def _spoken(choice: ClusterChoice) -> str:
    by = f", chosen by {choice.index}" if choice.k is None else ""
    return f"{choice.covered:,} of {choice.total:,} cells, IDC {percent(choice.score)}{by}"


def _decades(values: Sequence[float]) -> list[int]:
    """Return a logarithmic range of whole decades, so that it has a tick at either end."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [low, max(high, low + 1)]


def _choice(k: int | None) -> str:
    return "auto" if k is None else str(k)
