"""The charts of a report: for either theme as plotly draws them, and as a still picture."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from idc_core.figures.clusters import histograms
from idc_core.figures.coverage import coverage_grid, grid_height
from idc_core.figures.grid import default_axes, lay_out
from idc_core.figures.web import grid_figure
from idc_core.figures.wording import count, plural
from idc_core.report.bounds import NEURONS
from idc_core.report.material import Material
from idc_core.report.still_pictures import grid_picture, histogram_picture, panel_title

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TILES = 1024
"""Tiles of the grid at most."""


@dataclass(frozen=True)
class Chart:
    """A chart: the finding that it shows, how to read it, plotly's description for either theme, a still picture."""

    name: str
    title: str
    read: str
    height: int
    light: dict[str, object]
    dark: dict[str, object]
    picture: Markup


def grid_chart(material: Material) -> Chart:
    """Draw the grid of combinations."""
    table, errors = material.table, material.correct is not None
    grid = lay_out(
        table, [str(neuron) for neuron in material.analysis.important], default_axes(table.sizes, most=_TILES)
    )
    title = f"{count(table.covered)} of {plural(table.total, 'cell')} are covered"
    colouring, height = ("errors" if errors else "covered"), min(620, grid_height(grid))

    def draw(dark: bool) -> go.Figure:
        option = coverage_grid(grid, table, colouring, title, clickable=False, dark=dark)
        return grid_figure(option, height, dark=dark)

    if grid.folded:
        read = f"Each tile stands for {plural(grid.cells_per_tile, 'cell')}: one cluster of each neuron on the axes."
    else:
        read = "Each tile is a cell: one cluster of every important neuron. Cluster 0 has the lowest activations."
    read += " Colour and mark: share of misclassified tests." if errors else " Filled tiles hold tests."
    return _chart("grid", title, read, draw(False), draw(True), grid_picture(grid, table, colouring, title))


def histogram_chart(material: Material) -> Chart:
    """Draw one histogram per important neuron."""
    analysis, sizes = material.analysis, material.sizes
    ranks = range(min(analysis.m, NEURONS))
    few, many = min(sizes), max(sizes)
    clusters = plural(few, "cluster") if few == many else f"{few} to {many} clusters"
    title = f"The activations of each important neuron form {clusters}"

    def draw(dark: bool) -> go.Figure:
        return histograms(
            analysis.clusters[: len(ranks)],
            analysis.train_activations[:, : len(ranks)],
            analysis.test_activations[material.chosen][:, : len(ranks)],
            [panel_title(material, rank) for rank in ranks],
            title,
            numbers=analysis.important[: len(ranks)].tolist(),
            clickable=False,
            dark=dark,
        )

    read = (
        "Bars: share of the training inputs per activation (logarithmic); outline: the same for the tests. Dotted "
        "lines are the boundaries between clusters."
    )
    if len(ranks) < analysis.m:
        read += f" The first {len(ranks)} of {analysis.m} important neurons are drawn."
    return _chart("histograms", title, read, draw(False), draw(True), histogram_picture(material, ranks, title))


def _chart(name: str, title: str, read: str, light: go.Figure, dark: go.Figure, picture: Markup) -> Chart:
    in_light, in_dark = (json.loads(figure.to_json()) for figure in (light, dark))
    return Chart(name, title, read, int(light.layout.height), in_light, in_dark, picture)
