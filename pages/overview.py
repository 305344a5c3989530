"""Overview: the result at a glance, and where to look next."""

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.analysis.overview import Overview
from idc_core.coverage.cell_table import widest_gap
from idc_core.figures import coverage as figures
from idc_core.figures.grid import default_axes, lay_out
from studio.engine.overview import summarise
from studio.engine.results import View
from studio.shell import pins
from studio.shell.frame import default_line, enter
from studio.shell.pages import PAGES
from studio.shell.selection import Selection
from studio.widgets.layout import explain, grid_chart, is_dark, take_away
from studio.widgets.text import cell_name, count, percent, plural, state

SMALL = 1024
"""Tiles of the small grid at most."""

NEXT = {
    "learn": "Learn: how the method works, on a network of ten neurons",
    "coverage": "Coverage: click an empty cell to see which tests come closest to it",
    "relevance": "Relevance: what the network looked at when it was wrong",
    "layers": "Layers: whether the tests are weaker elsewhere in the network",
}
"""Where to go from here, by page."""


def findings(result: Overview) -> dict[str, str]:
    """Put the findings into words, by the page that shows them."""
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
        coverage = "Every covered cell holds a correctly classified test."
    gap = widest_gap(table)
    if gap is not None:
        where = f"{names[gap.position]} is in its {state(gap.cluster, table.sizes[gap.position])}"
        reached = f"{count(gap.covered)} of {plural(gap.total, 'cell')}"
        coverage += f" Coverage is thinnest where {where}: {reached}."
    rank, cluster, rare = result.rarest
    return {
        "coverage": coverage,
        "clusters": f"The state that the tests reach least often is the {state(cluster, table.sizes[rank])} of "
        f"{names[rank]}: {plural(rare, 'test')} of {result.tests:,}.",
        "neurons": f"{names[0].capitalize()} alone carries {percent(result.first_share)} of the positive "
        f"relevance of layer {result.layer}; the {plural(len(names), 'important neuron')} of "
        f"{result.neurons} carry {percent(result.together_share)}.",
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
        text = "The tests' classes are not the ones that the network answers with."
        quality.metric("Accuracy", "not defined", border=True, help=text)
    text = "Importance-driven coverage: share of the combinations of clusters that at least one test reaches."
    idc.metric("IDC", percent(result.table.covered / result.table.total), border=True, help=text)
    text = "Combinations that are reached, but only by misclassified tests."
    found = "not defined" if result.accuracy is None else count(int(result.errors_only.sum()))
    lonely.metric("Cells only errors reach", found, border=True, help=text)


def small_grid(result: Overview, line: str, name: str = "grid") -> None:
    """Show the grid of combinations without clicks."""
    table, dark = result.table, is_dark()
    axes = default_axes(table.sizes, most=SMALL)
    grid = lay_out(table, [str(neuron) for neuron in result.important], axes)
    errors = result.accuracy is not None
    colouring = "errors" if errors else "covered"
    title = f"{count(table.covered)} of {plural(table.total, 'cell')} are covered"
    option = figures.coverage_grid(grid, table, colouring, title, clickable=False, dark=dark)
    height = min(420, figures.grid_height(grid))
    if grid.folded:
        read = (
            f"a tile is a combination of clusters of the first {len(table.sizes) - len(grid.folded)} important neurons "
            f"and stands for {plural(grid.cells_per_tile, 'cell')}, all combinations of the other neurons; an empty "
            "tile is behaviour that no test exercised. The Coverage page looks into a tile."
        )
    else:
        filled = "colour and mark say how many of its tests are misclassified" if errors else "a filled one holds tests"
        read = (
            f"a cell is a combination of clusters of the important neurons; {filled}, an empty one is behaviour that "
            "no test exercised."
        )
    grid_chart(f"overview-{name}", option, height, f"Grid of combinations: {title}", read, line, name=name)


def draw_side(shown: View, chosen: Selection, key: str) -> None:
    """Show the numbers and the grid of one of two benches."""
    numbers(summarise(shown))
    small_grid(summarise(shown), shown.line, f"grid-{key}")


shown = enter()
st.markdown(
    "IDC Studio shows which behaviour of a neural network its tests have not exercised. It finds the neurons "
    "that decide, splits the activations of each into clusters, and shows which combinations of clusters the "
    "tests reach and which they miss."
)
if isinstance(shown, View):
    result, line = summarise(shown), shown.line
else:
    result, line = shown, default_line(shown)
missed = result.table.total - result.table.covered
st.markdown(
    f"**{count(missed)} of {plural(result.table.total, 'combination')} of the important neurons' states were not "
    f"exercised by these {plural(result.tests, 'test')}.**"
    if missed
    else f"**These {plural(result.tests, 'test')} exercised every combination of the important neurons' states.**"
)
numbers(result)
small_grid(result, line)

st.header("What to look at", anchor=False)
for name, sentence in findings(result).items():
    st.page_link(PAGES[name].file, label=sentence, icon=PAGES[name].icon, help=PAGES[name].help)

st.header("Where to go next", anchor=False)
st.markdown("Choose another network, other tests, another layer or more neurons in the sidebar: every page follows.")
for name, sentence in NEXT.items():
    st.page_link(PAGES[name].file, label=sentence, icon=PAGES[name].icon, help=PAGES[name].help)
if isinstance(shown, View):
    pins.beside(shown, draw_side)
explain(
    "The important neurons of a layer are those with the largest relevance, summed over the network's training "
    "inputs. Each one's activations over the training inputs are split into clusters; a cell is one cluster of "
    "every important neuron. IDC is the share of cells that hold a test. The pages under **Explore** show every "
    "step and what it was computed from.",
    "Source: Gerasimou, Eniser, Sen, Cakan, Importance-Driven Deep Learning System Testing, ICSE 2020.",
)
cells = pd.DataFrame(
    {
        "cell": [cell_name(cell) for cell in result.table.cells],
        "tests": result.table.counts,
        "misclassified": result.table.wrong,
    }
)
take_away({"covered-cells": cells})
