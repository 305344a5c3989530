"""Coverage: the grid of combinations, what is in a cell, how coverage grows with the tests, and what would do."""

import pandas as pd
import streamlit as st

from idc_core.coverage.cell_table import widest_gap
from idc_core.coverage.growth import growth
from idc_core.coverage.overlap import overlap
from idc_core.figures import colourings
from idc_core.figures import coverage as figures
from idc_core.figures.coverage import growth_curve
from idc_core.figures.grid import Grid, default_axes, lay_out
from studio.coverage import cell_details
from studio.engine import cell_search
from studio.engine.results import View
from studio.shell import pins
from studio.shell.frame import current_view
from studio.shell.selection import Selection, select, selected
from studio.widgets import grid_axes, layout
from studio.widgets.text import cell_name, count, parse_cell, percent, plural, state

view = current_view()
analysis, table, names, sizes = view.analysis, view.table, view.neurons, view.sizes
classes = view.test.class_names
errors_only = view.errors_only


def sentence() -> str:
    """Put the finding into words."""
    covered, score = count(table.covered), percent(table.covered / table.total)
    parts = [f"**{covered} of {plural(table.total, 'cell')} are covered (IDC {score}).**"]
    if view.correct is not None:
        number = count(len(errors_only)) if len(errors_only) else "None"
        parts.append(f"{number} of them only by misclassified tests.")
    gap = widest_gap(table)
    if gap is not None:
        where = f"{names[gap.position]} is in its {state(gap.cluster, sizes[gap.position])}"
        reached = f"{count(gap.covered)} of {plural(gap.total, 'cell')}"
        parts.append(f"Coverage is thinnest where {where}: {reached}.")
    return " ".join(parts)


def clicked(grid: Grid, tile: int) -> None:
    """Look into a tile: select its cell, or hold its neurons in their clusters."""
    if tile < grid.tiles:
        clusters = grid.clusters(tile)
        if grid.folded:
            grid_axes.fix(view, clusters)
        else:
            select(cell=cell_name(list(clusters.values())))


def only_selected(held: grid_axes.Zoom) -> None:
    """Offer to show only the cells in which the selected neuron is in the selected cluster."""
    chosen = selected()
    important = analysis.important.tolist()
    if chosen.neuron not in important or chosen.cluster is None:
        return
    rank = important.index(chosen.neuron)
    if chosen.cluster < sizes[rank] and held.fixed.get(rank) != chosen.cluster:
        st.button(
            f"Show only cells with neuron {chosen.neuron} in cluster {chosen.cluster}",
            key="only-selected",
            on_click=grid_axes.fix,
            args=(view, {**held.fixed, rank: chosen.cluster}),
            help="Hold the selected neuron in the selected cluster.",
        )


def small_names(one: View) -> list[str]:
    """Return the neurons' names without the word, for the axes."""
    return [name.removeprefix("neuron ") for name in one.neurons]


st.markdown(sentence())

st.header("The grid of combinations", anchor=False)
held = grid_axes.read_zoom(view)
with st.container(horizontal=True, vertical_alignment="bottom"):
    offered = [
        key
        for key in colourings.COLOURINGS
        if (key != "class" or view.is_classifier) and (key != "errors" or view.correct is not None)
    ]
    colouring = st.segmented_control(
        "Colour by",
        offered,
        default="covered",
        required=True,
        format_func=lambda key: colourings.COLOURINGS[key].label,
        key="colour",
        bind="query-params",
        help="What the colour and the mark of a tile say; default whether it is covered.",
    )
    only_selected(held)
grid_axes.controls(view, held)
grid_axes.crumbs(view, held)

grid = lay_out(table, small_names(view), held.axes, held.fixed)
left, right = st.columns([5, 3], gap="medium")
with right:
    cell = cell_details.choose_cell(view, grid)
    cell_details.draw_cell(view, grid, cell)
with left:
    title = grid_axes.finding(view, grid)
    click = "Click a tile to look into it." if grid.folded else "Click a cell to see its tests."
    option = figures.coverage_grid(
        grid, table, colouring, title, class_names=classes, selected=grid.place(cell), dark=layout.is_dark()
    )
    layout.grid_chart(
        f"grid-{hash((view.bench, held.axes, tuple(held.fixed.items())))}",
        option,
        figures.grid_height(grid),
        f"Grid of combinations: {title}",
        f"{grid_axes.reading(view, grid, colouring)} {click}",
        view.line,
        lambda tile: clicked(grid, tile),
    )
    cell_details.closest_tests(view, cell)

cell_search.draw(view, cell)

st.header("Covered cells", anchor=False)
cell_details.covered_cells(view, grid)

st.header("How coverage grows with the tests", anchor=False)
grown = growth(analysis.codes[view.chosen])
title = (
    f"The first {plural(grown.half, 'test')} reach half of the {plural(table.covered, 'covered cell')}; "
    f"the best {count(-(-table.covered // 2))} would do"
)
layout.chart(
    view,
    "growth",
    lambda dark: growth_curve(grown, table.total, title, dark=dark),
    alt=title,
    read="a curve that still rises at its end says that more tests of this kind would reach more cells. The solid "
    f"line takes the tests in their order; the dashed one is the mean of {grown.orders} shuffled orders "
    f"(seed {grown.seed}), in the band from the fewest to the most cells; the dotted one always takes the test that "
    "adds most. A test reaches one cell, so it adds one cell a test until all are covered.",
)

st.header("The smallest set of tests that covers as much", anchor=False)
cell_details.smallest(view)


def beside() -> None:
    """Show the grids of this and of the pinned bench; where their cells are the same, what they share."""
    pinned = pins.open_pinned()
    if pinned is None:
        return
    common = overlap(table, pinned.view.table) if pins.same_cells(view, pinned.view) else None

    def draw(one: View, chosen: Selection, key: str) -> None:
        fixed, axes = (held.fixed, held.axes) if common is not None else ({}, default_axes(one.sizes))
        laid = lay_out(one.table, small_names(one), axes, fixed)
        found = grid_axes.finding(one, laid)
        place = parse_cell(chosen.cell, one.sizes)
        shared = None if common is None else common.first if key == "this" else common.second
        coloured = colouring if shared is None else colourings.SHARED
        drawn = figures.coverage_grid(
            laid,
            one.table,
            coloured,
            found,
            class_names=one.test.class_names,
            shared=shared,
            selected=None if place is None else laid.place(place),
            clickable=False,
            dark=layout.is_dark(),
        )
        read = grid_axes.reading(one, laid, coloured)
        height = figures.grid_height(laid)
        layout.grid_chart(f"grid-{key}", drawn, height, f"Grid of combinations: {found}", read, one.line, name=key)

    pins.beside(view, draw)


beside()

layout.computed(
    view,
    "Each test falls into one cell: the combination of the clusters that the activations of the m important "
    "neurons fall into. Importance-driven coverage (IDC) is the share of all combinations that hold at least "
    "one test.",
    "The smallest set of tests takes one test a cell, the closest to the cell's centroids. Distances are Euclidean, "
    "each neuron in units of its standard deviation over the training inputs.",
)
covered = pd.DataFrame(
    {
        "cell": [cell_name(one) for one in table.cells.tolist()],
        "tests": table.counts,
        "misclassified": table.wrong,
        **{f"class_{name}": table.by_class[:, i] for i, name in enumerate(classes)},
    }
)
curve = pd.DataFrame(
    {
        "tests": grown.tests,
        "given_order": grown.given,
        "shuffled_mean": grown.mean,
        "shuffled_low": grown.low,
        "shuffled_high": grown.high,
        "greedy_order": grown.greedy,
    }
)
layout.take_away({"covered-cells": covered, "coverage-growth": curve})
