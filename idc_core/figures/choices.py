"""The figure of other choices of clusters: how many cells each makes, and how many of them are covered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from idc_core.alternatives import Outcome
from idc_core.figures.palette import palette
from idc_core.figures.style import finish

SYMBOLS = ("circle", "square", "diamond", "triangle-up")
"""Marks of the ways to cluster, in the order in which they are drawn."""


def choices(
    found: Sequence[Outcome], labels: Mapping[str, str], title: str, present: Outcome, *, dark: bool = False
) -> go.Figure:
    """Draw how many cells there are, and which share is covered, for every choice of clusters.

    Parameters
    ----------
    found : sequence of Outcome
        One a choice; marks carry their place in it as `customdata`.
    labels : mapping of str to str
        What each way to cluster is called.
    title : str
        The finding.
    present : Outcome
        The choice that holds; it is framed.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    figure = make_subplots(1, 2, subplot_titles=["cells in all", "covered cells (IDC)"], horizontal_spacing=0.1)
    places = {id(one): place for place, one in enumerate(found)}
    for index, name in enumerate(dict.fromkeys(one.clustering for one in found)):
        for dropped in (False, True):
            line = [one for one in found if one.clustering == name and one.drop_zeros == dropped]
            label = f"{labels[name]}, zeros {'dropped' if dropped else 'kept'}"
            symbol = SYMBOLS[index % len(SYMBOLS)] + ("-open" if dropped else "")
            colour = (colours.accent, colours.error, colours.ink, colours.muted)[index % 4]
            for column, values in ((1, [one.total for one in line]), (2, [100 * one.score for one in line])):
                figure.add_scatter(
                    x=[_choice(one.k) for one in line], y=[float(value) for value in values], name=label,
                    mode="lines+markers", legendgroup=label, showlegend=column == 1,
                    line={"color": colour, "dash": "dot" if dropped else "solid", "width": 1.5},
                    marker={"symbol": symbol, "size": 10, "color": colour, "line": {"width": 1.5, "color": colour}},
                    customdata=[places[id(one)] for one in line], text=[_told(one) for one in line],
                    hovertemplate=f"{label}, %{{x}}<br>%{{text}}<br>click to choose it<extra></extra>",
                    row=1, col=column,
                )  # fmt: skip
    for column, value in ((1, float(present.total)), (2, 100 * present.score)):
        figure.add_scatter(
            x=[_choice(present.k)], y=[value], mode="markers", name="this bench", legendgroup="present",
            showlegend=column == 1, hoverinfo="skip", row=1, col=column,
            marker={"symbol": "circle-open", "size": 20, "color": colours.ink, "line": {"width": 2}},
        )  # fmt: skip
    figure.update_xaxes(title="number of clusters k", type="category", categoryarray=["auto", *map(str, range(2, 9))])
    figure.update_yaxes(
        title="cells", range=_decades([one.total for one in found]), exponentformat="power", row=1, col=1
    )
    figure.update_yaxes(
        title="covered (%)", range=_decades([100 * one.score for one in found]), tickformat="~g", row=1, col=2
    )
    figure.update_yaxes(type="log", dtick=1)
    finish(figure, title, colours, height=450)
    figure.update_annotations(font={"size": 13, "color": colours.ink})
    figure.update_layout(margin={"t": figure.layout.margin.t + 22})  # room between the title and the panels' titles
    return figure


def _decades(values: Sequence[float]) -> list[int]:
    """Return a logarithmic range of whole decades, so that it has a tick at either end."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [low, max(high, low + 1)]


def _choice(k: int | None) -> str:
    return "auto" if k is None else str(k)


def _told(one: Outcome) -> str:
    return f"{one.covered:,} of {one.total:,} cells, IDC {100 * one.score:.3g} %"
