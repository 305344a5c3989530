"""Inspect a cell: its tests and centroids; for an uncovered cell, the closest tests and covered cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.coverage.cell_table import members, nearest
from idc_core.coverage.closest_inputs import closest, spread, to_own_cell
from idc_core.coverage.growth import smallest_subset
from idc_core.figures.grid import Grid
from studio.engine.results import View
from studio.shell.pages import PAGES
from studio.state.selection import picked_row, select, selected
from studio.text import cell_name, cluster_name, count, literal, parse_cell, percent, plural
from studio.widgets import cell_search, layout
from studio.widgets.downloads import csv
from studio.widgets.grid_axes import around, fix

SHOWN = 12
"""Tests shown of a cell."""

MOST_LISTED = 1000
"""Cells listed on the page; the downloaded file holds them all."""

CELL = "cell"
"""Key of the field that names the cell."""


def default_cell(view: View, grid: Grid) -> tuple[int, ...]:
    """Return the selected test's cell, else one that only misclassified tests reach, else the fullest one drawn."""
    table = view.table
    if view.position is not None:
        return tuple(map(int, view.analysis.assignments[view.position]))
    drawn = np.flatnonzero(grid.tile >= 0)
    drawn = drawn if len(drawn) else np.arange(table.covered)
    lonely = np.intersect1d(drawn, view.errors_only)
    row = lonely[0] if len(lonely) else drawn[table.counts[drawn].argmax()]
    return tuple(map(int, table.cells[row]))


def choose_cell(view: View, grid: Grid) -> tuple[int, ...]:
    """Draw the field that names the cell, and return the cell to show."""
    usual = default_cell(view, grid)
    st.session_state[CELL] = selected().cell
    typed = st.text_input(
        "Cell",
        key=CELL,
        on_change=lambda: select(cell=st.session_state[CELL].strip()),
        placeholder=cell_name(usual),
        help="Click a cell of the grid, or type the cluster of each neuron, the most important first. "
        "Default: the selected test's cell, else one reached only by misclassified tests.",
    )
    parsed = parse_cell(typed, view.sizes)
    if typed and parsed is None:
        sizes = view.sizes
        st.warning(
            f"{literal(repr(typed))} is no cell of this grid. Expected {plural(len(sizes), 'number')} with hyphens "
            f"between them, from {cell_name([0] * len(sizes))} to {cell_name([size - 1 for size in sizes])}."
        )
    return parsed or usual


def draw_cell(view: View, grid: Grid, cell: tuple[int, ...]) -> None:
    """Show the tests and neurons of a cell."""
    inside = view.chosen[members(view.analysis.assignments[view.chosen], cell)]
    st.subheader(f"Cell {cell_name(cell)}", anchor=False)
    if grid.folded or grid.place(cell) is None:
        st.button(
            "Zoom the grid to this cell",
            key="zoom-to-cell",
            on_click=fix,
            args=(view, around(view.sizes, cell)),
            help="Fix neurons to this cell's clusters until the cell has a tile of its own.",
        )
    if len(inside):
        words = plural(len(inside), "test")
        if view.correct is not None:
            words += f", {count(int((~view.correct[inside]).sum()))} misclassified"
        st.markdown(f"{words}.")
        layout.gallery(view, inside, SHOWN)
        layout.take_inputs(view, inside)
    else:
        cell_search.offer(view, cell)
        st.markdown("No test reaches this cell. These covered cells are the nearest:")
        rows, steps = nearest(view.table, cell)
        cell_list(view, rows, "nearest-" + cell_name(cell), {"steps away": steps})
    _neurons(view, cell)
    _onward(view, inside)


def closest_tests(view: View, cell: tuple[int, ...]) -> None:
    """Show the tests closest to an uncovered cell."""
    analysis = view.analysis
    if len(members(analysis.assignments[view.chosen], cell)):
        return
    places, distances = closest(
        analysis.test_activations[view.chosen], analysis.centroids, cell, spread(analysis.train_activations), SHOWN
    )
    near = view.chosen[places]
    key = "closest-" + cell_name(cell)
    st.subheader(f"Tests closest to cell {cell_name(cell)}", anchor=False)
    st.markdown("No test reaches the cell. These tests have the activations closest to its centroids, closest first.")
    layout.gallery(view, near, SHOWN)
    st.dataframe(
        pd.DataFrame(
            {
                "test": view.test.ids[near],
                "distance": distances,
                "cell": [cell_name(one) for one in analysis.assignments[near].tolist()],
                "true → predicted": [layout.answer(view, place) for place in near],
            }
        ),
        hide_index=True,
        key=key,
        selection_mode="single-row",
        on_select=lambda: _picked_test(view, near, key),
        height="auto" if len(near) < 8 else 280,
        column_config={"distance": st.column_config.NumberColumn(format="%.2f")},
        alt=f"Tests closest to cell {cell_name(cell)}; choose a row to select its test",
    )
    st.caption(
        "Distance: Euclidean from the test's activations to the cell's centroids, each neuron in units of its standard "
        "deviation over the training inputs."
    )
    layout.take_inputs(view, near)


def _neurons(view: View, cell: tuple[int, ...]) -> None:
    """List the cluster of every neuron in a cell; picking one selects both."""
    analysis = view.analysis
    st.dataframe(
        pd.DataFrame(
            {
                "neuron": view.neurons,
                "cluster": cell,
                "position": [
                    cluster_name(c, size).removesuffix(" cluster") for c, size in zip(cell, view.sizes, strict=True)
                ],
                "centroid": [float(values[c]) for values, c in zip(analysis.centroids, cell, strict=True)],
            }
        ),
        hide_index=True,
        key="neurons-" + cell_name(cell),
        selection_mode="single-row",
        on_select=lambda: _picked_neuron(view, cell),
        column_config={"centroid": st.column_config.NumberColumn(format="%.3g")},
        alt="Cluster of each neuron in this cell; choose a row to select the neuron and its cluster",
    )


def _onward(view: View, behind: NDArray[np.int64]) -> None:
    """Offer the pages that show the cell's neurons and tests in detail."""
    chosen = selected()
    neuron = chosen.neuron if chosen.neuron in view.analysis.important else int(view.analysis.important[0])
    first = view.position if view.position in behind else behind[0] if len(behind) else None
    with st.container(horizontal=True):
        if first is not None:
            number = int(view.test.ids[first])
            if st.button(
                f"Relevance of test {number}",
                key="to-relevance",
                on_click=select,
                kwargs={"input": number},
                help="Select this test and show which part of it decided.",
            ):
                st.switch_page(PAGES["relevance"].file)
        if st.button(
            f"Clusters of neuron {neuron}",
            key="to-clusters",
            on_click=select,
            kwargs={"neuron": neuron},
            help="Select this neuron and show its clusters. Choose another neuron in the table above.",
        ):
            st.switch_page(PAGES["clusters"].file)


def _picked_test(view: View, positions: NDArray[np.int64], key: str) -> None:
    row = picked_row(key, len(positions))
    if row is not None:
        select(input=int(view.test.ids[positions[row]]))


def _picked_neuron(view: View, cell: tuple[int, ...]) -> None:
    row = picked_row("neurons-" + cell_name(cell), len(cell))
    if row is not None:
        select(neuron=int(view.analysis.important[row]), cluster=cell[row])


def _picked_cell(view: View, rows: NDArray[np.int64], key: str) -> None:
    row = picked_row(key, len(rows))
    if row is not None:
        select(cell=cell_name(view.table.cells[rows[row]]))


def cell_list(view: View, rows: NDArray[np.int64], key: str, extra: dict[str, NDArray[np.int64]]) -> None:
    """List covered cells, by their rows in the table; picking one selects it."""
    table = view.table
    columns = {"cell": [cell_name(cell) for cell in table.cells[rows].tolist()], **extra, "tests": table.counts[rows]}
    if view.correct is not None:
        columns["misclassified"] = table.wrong[rows]
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        key=key,
        selection_mode="single-row",
        on_select=lambda: _picked_cell(view, rows, key),
        height="auto" if len(rows) < 8 else 280,
        column_config={"misclassified (%)": st.column_config.NumberColumn(format="%.1f")},
        alt="Cells; choose a row to open its cell",
    )


def covered_cells(view: View, grid: Grid) -> None:
    """List the covered cells that are drawn, the ones that only misclassified tests reach first."""
    table = view.table
    drawn = np.flatnonzero(grid.tile >= 0)
    if not len(drawn):
        st.markdown("None of the cells shown above is covered.")
        return
    share = table.wrong[drawn] / table.counts[drawn]
    rows = drawn[np.lexsort((-table.counts[drawn], -share))]
    extra = {}
    if view.correct is not None:
        lonely = int(table.only_errors[rows].sum())
        if lonely:
            where = "cell" if lonely == 1 else f"{count(lonely)} cells"
            st.markdown(f"Only misclassified tests fall into the first {where}, marked \u00d7.")
        extra["only misclassified"] = np.where(table.only_errors[rows], "\u00d7", "")
        extra["misclassified (%)"] = 100 * np.sort(share)[::-1]
    if view.is_classifier:
        extra["most frequent class"] = np.array(view.test.class_names)[table.by_class[rows].argmax(axis=1)]
    shown = rows[:MOST_LISTED]
    key = f"cells-{hash((view.setup, tuple(grid.fixed.items())))}"
    cell_list(view, shown, key, {name: values[:MOST_LISTED] for name, values in extra.items()})
    left = f" The table shows {count(len(shown))} of {count(len(rows))}; the downloaded file holds all." * (
        len(rows) > len(shown)
    )
    st.caption(f"Choose a row to open its cell; click a column name to sort.{left}")


def smallest(view: View) -> None:
    """Offer the smallest set of tests that keeps the coverage."""
    analysis, chosen = view.analysis, view.chosen
    with st.container(horizontal=True):
        wrong = view.correct is not None and st.toggle(
            "Prefer misclassified tests",
            key="prefer",
            bind="query-params",
            help="Represent a cell by a misclassified test where there is one, else by the test closest to its "
            "centroids. "
            "Default off.",
        )
    distances = to_own_cell(
        analysis.test_activations, analysis.centroids, analysis.assignments, spread(analysis.train_activations)
    )
    preferred = ~view.correct[chosen] if wrong and view.correct is not None else None
    subset = chosen[smallest_subset(analysis.codes[chosen], distances[chosen], preferred)]
    st.markdown(
        f"**{plural(len(subset), 'test')} of {count(len(chosen))} ({percent(len(subset) / len(chosen))}) reach every "
        f"cell that all of them reach.** This is the minimum: each test reaches one cell."
    )

    def numbers() -> str:
        listed = {
            "test": view.test.ids[subset],
            "cell": [cell_name(cell) for cell in analysis.assignments[subset].tolist()],
            "distance": distances[subset],
        }
        if view.correct is not None:
            listed["misclassified"] = ~view.correct[subset]
        return csv(pd.DataFrame(listed))

    with st.container(horizontal=True):
        st.download_button(
            f"These {count(len(subset))} tests (npz)",
            lambda: layout.npz(view, subset),
            file_name="idc-smallest-subset.npz",
            mime="application/octet-stream",
            on_click="ignore",
            key="subset-npz",
            help="Inputs, true classes, predictions and numbers of the tests, as NumPy arrays.",
        )
        st.download_button(
            "Their test numbers (CSV)",
            numbers,
            file_name="idc-smallest-subset.csv",
            mime="text/csv",
            on_click="ignore",
            key="subset-csv",
            help="Number of each test in its test set, its cell, and its distance to the cell's centroids.",
        )
