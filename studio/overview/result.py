"""Show a result at a glance: findings in words, three numbers, and the small grid."""

from __future__ import annotations

import numpy as np
import streamlit as st

from idc_core.analysis.overview import Overview
from idc_core.coverage.cell_table import widest_gap
from idc_core.figures import coverage as figures
from idc_core.figures.grid import default_axes, lay_out
from studio.engine.overview import summarise
from studio.engine.results import View
from studio.state.selection import Selection
from studio.text import cell_name, cluster_name, count, percent, plural
from studio.widgets.layout import grid_chart, is_dark

SMALL = 1024
"""Tiles of the small grid at most."""


def headline(result: Overview) -> str:
    """Say how many combinations the tests miss."""
    table = result.table
    if missed := table.total - table.covered:
        of = f"{count(missed)} of {plural(table.total, 'combination')} of the important neurons' clusters"
        return f"**{of} are not covered by these {plural(result.tests, 'test')}.**"
    return f"**These {plural(result.tests, 'test')} cover every combination of the important neurons' clusters.**"


def findings(result: Overview) -> dict[str, str]:
    """Return the findings in words, by the page that shows them."""
    table = result.table
    names = [f"neuron {neuron}" for neuron in result.important]
    lonely = np.flatnonzero(result.errors_only)
    if result.accuracy is None:
        coverage = f"{count(table.covered)} of {plural(table.total, 'cell')} are covered."
    elif len(lonely):
        others = f" and {plural(len(lonely) - 1, 'other')}" if len(lonely) > 1 else ""
        verb = "are" if len(lonely) > 1 else "is"
        coverage = f"Cell {cell_name(table.cells[lonely[0]])}{others} {verb} reached only by misclassified tests."
    else:
        coverage = "Every covered cell contains a correctly classified test."
    gap = widest_gap(table)
    if gap is not None:
        where = f"{names[gap.position]} is in its {cluster_name(gap.cluster, table.sizes[gap.position])}"
        reached = f"{count(gap.covered)} of {plural(gap.total, 'cell')}"
        coverage += f" Coverage is lowest where {where}: {reached}."
    rank, cluster, rare = result.rarest
    return {
        "coverage": coverage,
        "clusters": f"The least covered cluster is the {cluster_name(cluster, table.sizes[rank])} of "
        f"{names[rank]}: {plural(rare, 'test')} of {result.tests:,}.",
        "neurons": f"{names[0].capitalize()} alone carries {percent(result.first_share)} of the positive relevance of "
        f"layer {result.layer}; the {plural(len(names), 'important neuron')} of {result.neurons} carry "
        f"{percent(result.together_share)}.",
    }


def numbers(result: Overview) -> None:
    """Show the three numbers."""
    quality, idc, lonely = st.columns(3)
    if result.accuracy is not None:
        text = "Share of the tests that are classified correctly."
        quality.metric("Accuracy", percent(result.accuracy), border=True, help=text)
    elif result.rmse is not None:
        text = "Root mean square error, in the unit of the target."
        quality.metric("RMSE", f"{result.rmse:.3f}", border=True, help=text)
    else:
        text = "Accuracy is not defined: the tests' classes are not the network's."
        quality.metric("Accuracy", "not defined", border=True, help=text)
    text = "Importance-driven coverage: share of the combinations of clusters that at least one test reaches."
    idc.metric("IDC", percent(result.table.covered / result.table.total), border=True, help=text)
    text = "Covered cells in which every test is misclassified."
    found = "not defined" if result.accuracy is None else count(int(result.errors_only.sum()))
    lonely.metric("Cells reached only by misclassified tests", found, border=True, help=text)


def small_grid(result: Overview, line: str, name: str = "grid") -> None:
    """Show the grid of combinations without clicks."""
    table = result.table
    grid = lay_out(table, [str(neuron) for neuron in result.important], default_axes(table.sizes, most=SMALL))
    errors = result.accuracy is not None
    title = f"{count(table.covered)} of {plural(table.total, 'cell')} are covered"
    option = figures.coverage_grid(
        grid, table, "errors" if errors else "covered", title, clickable=False, dark=is_dark()
    )
    if grid.folded:
        read = (
            f"Each tile is a combination of clusters of {len(table.sizes) - len(grid.folded)} important neurons and "
            f"stands for {plural(grid.cells_per_tile, 'cell')}. Empty tiles are not covered. Open Coverage to zoom in."
        )
    else:
        filled = " Colour and mark: share of misclassified tests." if errors else ""
        read = f"Each cell is a combination of clusters of the important neurons.{filled} Empty cells are not covered."
    height = min(420, figures.grid_height(grid))
    grid_chart(f"overview-{name}", option, height, f"Grid of combinations: {title}", read, line, name=name)


def draw_side(shown: View, chosen: Selection, key: str) -> None:
    """Show the numbers and the grid of one of two setups."""
    result = summarise(shown)
    numbers(result)
    small_grid(result, shown.line, f"grid-{key}")
