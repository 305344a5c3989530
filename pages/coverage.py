"""Coverage: the grid of combinations, what is in a cell, and how coverage grows with the tests."""

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.coverage.growth import growth
from idc_core.coverage.table import members, nearest, widest_gap
from idc_core.figures import coverage as figures
from idc_core.figures.grid import MOST_CELLS, Grid, lay_out
from idc_core.figures.growth import growth_curve
from idc_core.figures.palette import palette
from pages.common import layout
from pages.common.frame import frame, open_bench
from pages.common.text import cell_name, count, parse_cell, percent, plural, state

SHOWN = 12

view = open_bench(frame("coverage"))
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


def clicked(grid: Grid, key: str) -> None:
    """Keep the clicked cell: the field beside the grid, and with it the address, takes it from here."""
    groups = st.session_state[key].selection.selected
    places = [int(i) for group in groups if group["series_index"] == 0 for i in group["data_indices"]]
    if places and places[0] < grid.table_row.size:
        st.session_state["cell"] = cell_name(grid.cell(places[0]))


def picked(rows: NDArray[np.int64], key: str) -> None:
    """Keep the cell picked in a table."""
    chosen = st.session_state[key].selection.rows
    if chosen and chosen[0] < len(rows):
        st.session_state["cell"] = cell_name(table.cells[rows[chosen[0]]])


def cell_list(rows: NDArray[np.int64], key: str, extra: dict[str, NDArray[np.int64]]) -> None:
    """List covered cells; picking one opens it."""
    columns = {"cell": [cell_name(table.cells[row]) for row in rows], **extra, "tests": table.counts[rows]}
    if view.correct is not None:
        columns["misclassified"] = table.wrong[rows]
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        key=key,
        selection_mode="single-row",
        on_select=lambda: picked(rows, key),
        height="auto" if len(rows) < 8 else 280,
        alt="Cells; choose a row to open its cell",
    )


def default_cell() -> tuple[int, ...]:
    """Open on a cell that tells something: one that only errors reach, else the fullest one."""
    row = errors_only[0] if len(errors_only) else table.counts.argmax()
    return tuple(map(int, table.cells[row]))


def draw_cell(cell: tuple[int, ...]) -> None:
    """Show what is behind a cell."""
    inside = view.chosen[members(analysis.assignments[view.chosen], cell)]
    st.subheader(f"Cell {cell_name(cell)}", anchor=False)
    if len(inside):
        words = plural(len(inside), "test")
        if view.correct is not None:
            words += f", {count(int((~view.correct[inside]).sum()))} misclassified"
        st.markdown(f"{words}.")
        layout.gallery(view, inside, SHOWN)
        layout.take_inputs(view, inside)
    else:
        st.markdown("No test reaches this cell. These covered cells are the nearest:")
        rows, steps = nearest(table, cell)
        cell_list(rows, "nearest-" + cell_name(cell), {"steps away": steps})
    centroids = [float(values[c]) for values, c in zip(analysis.centroids, cell, strict=True)]
    states = [state(c, size) for c, size in zip(cell, sizes, strict=True)]
    st.dataframe(
        pd.DataFrame({"neuron": names, "cluster": cell, "state": states, "centroid": centroids}),
        hide_index=True,
        column_config={"centroid": st.column_config.NumberColumn(format="%.3g")},
        alt="State of each neuron in this cell",
    )


st.markdown(sentence())

st.header("The grid of combinations", anchor=False)
with st.container(horizontal=True, vertical_alignment="bottom"):
    offered = [
        key
        for key in figures.COLOURINGS
        if (key != "class" or view.is_classifier) and (key != "errors" or view.correct is not None)
    ]
    colouring = st.segmented_control(
        "Colour by",
        offered,
        default="covered",
        required=True,
        format_func=figures.COLOURINGS.get,
        key="colour",
        bind="query-params",
    )
    split = st.selectbox(
        "Neurons on the rows",
        list(range(1, analysis.m + 1)),
        index=max(0, analysis.m // 2 - 1),
        key="rows",
        bind="query-params",
        width=180,
    )

grid = lay_out(table, [name.removeprefix("neuron ") for name in names], split)
left, right = st.columns([5, 3], gap="medium")
with right:
    typed = st.text_input(
        "Cell",
        key="cell",
        bind="query-params",
        placeholder=cell_name(default_cell()),
        help="Click a cell of the grid, or type the cluster of each neuron, the most important first.",
    )
    parsed = parse_cell(typed or "", sizes)
    if typed and parsed is None:
        last = cell_name([size - 1 for size in sizes])
        st.warning(
            f"{typed!r} is no cell of this grid. Expected {plural(analysis.m, 'number')} with hyphens between "
            f"them, from {cell_name([0] * analysis.m)} to {last}."
        )
    cell = parsed or default_cell()
    draw_cell(cell)
with left:
    title = f"{count(table.covered)} of {plural(table.total, 'combination')} of clusters are reached"
    key = f"grid-{hash((view.bench, split))}"
    option = figures.coverage_grid(
        figures.grid_rows(grid, table, colouring or "covered", classes),
        grid,
        figures.categories(colouring or "covered", palette(layout.is_dark()), classes),
        title,
        selected=grid.place(cell),
        dark=layout.is_dark(),
    )
    st.echarts_chart(
        option,
        height=figures.grid_height(grid),
        key=key,
        on_select=lambda: clicked(grid, key),
        alt=f"Grid of combinations: {title}",
    )
    cross = "" if view.correct is None else "a cross marks one that only misclassified tests reach, "
    layout.how_to_read(
        "a row is a combination of clusters of the first neurons, a column one of the others, 0 the lowest "
        f"cluster. A filled cell holds tests, {cross}an empty one holds none. Click a cell to see its tests."
    )
    if grid.folded:
        st.info(
            f"There are {count(table.total)} cells, more than the {MOST_CELLS:,} that can be drawn. Shown are "
            f"the {len(grid.row_labels)} rows and {len(grid.column_labels)} columns with the most tests."
        )

if len(errors_only):
    st.header("Cells that only misclassified tests reach", anchor=False)
    st.markdown("In these cells the network was never right. Choose a row to open its cell.")
    cell_list(errors_only, "errors-only", {})

st.header("How coverage grows with the tests", anchor=False)
grown = growth(analysis.codes[view.chosen])
half = int(grown.tests[np.searchsorted(grown.given, table.covered / 2)])
title = f"The first {plural(half, 'test')} reach at least half of the {plural(table.covered, 'covered cell')}"
layout.chart(
    view,
    "growth",
    lambda dark: growth_curve(grown, table.total, title, dark=dark),
    alt=title,
    read="a curve that still rises at its end says that more tests of this kind would reach more cells. The solid "
    f"line takes the tests in their order, the dashed one is the mean of {grown.orders} shuffled orders "
    f"(seed {grown.seed}).",
)

layout.computed(
    view,
    "Each test falls into one cell: the combination of the clusters nearest to the activations of the m "
    "important neurons. Importance-driven coverage (IDC) is the share of all combinations that hold at least "
    "one test.",
)
covered = pd.DataFrame(
    {
        "cell": [cell_name(one) for one in table.cells],
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
    }
)
layout.take_away({"covered-cells": covered, "coverage-growth": curve})
