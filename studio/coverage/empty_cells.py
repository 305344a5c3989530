"""Fill the grid: uncovered cells that border on covered ones, the tests closest to one, and inputs made for it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.coverage.cell_table import bordering
from idc_core.coverage.closest_inputs import closest, spread
from studio.coverage import filling
from studio.coverage.cell_details import DISTANCE, MOST_LISTED, SHOWN, choose_cell, draw_tests, tests_in
from studio.jobs.results import View
from studio.state.selection import select, selected
from studio.text import cell_name, count, parse_cell
from studio.widgets import cell_search, layout

_EMPTY = "empty-cells"
"""Key of the table of uncovered cells."""


def draw(view: View) -> None:
    """Show which cells could be filled next, and with what."""
    _draw_cells(view)
    layout.computed(view, f"Inputs are made by changing the tests closest to the cell until they lie in it. {DISTANCE}")


def _draw_cells(view: View) -> None:
    """Show which cells could be filled next, and what comes close to one of them."""
    table = view.table
    if table.covered == table.total:
        st.markdown("**The tests reach every cell.**")
        return
    cells, borders = bordering(table)
    empty = layout.counted("Empty", table.total - table.covered, table.total, "cell")
    near = f"{count(len(cells))} of them are one step from a covered cell: one neuron in the next cluster."
    st.markdown(layout.lead(empty, near))
    if view.has_pictures:
        filling.draw(view)
    picked = parse_cell(selected().cell, view.sizes)
    taken = picked is not None and len(tests_in(view, picked)) > 0
    left, right = st.columns([3, 5], gap="medium")
    with left:
        cell = choose_cell(view, tuple(map(int, cells[0])), "the empty cell that borders on most covered cells")
        _list(cells, borders)
    with right:
        if taken:
            st.markdown(f"Cell {cell_name(cell)} is covered. Choose an empty one.")
            return
        st.header(layout.topic("Tests closest to cell {}", cell_name(cell)), anchor=False)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("No test reaches this cell.", width="content")
            if view.has_pictures:
                cell_search.offer(view, cell)
            else:
                st.caption("Inputs can be generated for pictures only.")
        _closest(view, cell)
    if view.has_pictures:
        cell_search.draw(view, cell)


def _list(cells: NDArray[np.uint8], borders: NDArray[np.int64]) -> None:
    """List empty cells; choosing one selects it."""
    shown = cells[:MOST_LISTED]
    layout.pick_table(
        pd.DataFrame(
            {"empty cell": [cell_name(cell) for cell in shown.tolist()], "covered neighbours": borders[:MOST_LISTED]}
        ),
        _EMPTY,
        lambda row: select(cell=cell_name(shown[row])),
        "Empty cells with the number of covered cells one step away; choose a row to select the cell",
        "auto" if len(shown) < 12 else 420,
    )
    left = f" The first {count(len(shown))} of {count(len(cells))} are shown." * (len(cells) > len(shown))
    st.caption(f"Choose a row to select its cell.{left}")


def _closest(view: View, cell: tuple[int, ...]) -> None:
    """Show the tests closest to an uncovered cell."""
    analysis = view.analysis
    places, distances = closest(
        analysis.test_activations[view.chosen], analysis.centroids, cell, spread(analysis.train_activations), SHOWN
    )
    near = view.chosen[places]
    draw_tests(view, near)
    layout.pick_table(
        pd.DataFrame(
            {
                "test": view.test.ids[near],
                "distance": distances,
                "cell": [cell_name(reached) for reached in analysis.assignments[near].tolist()],
                "true → predicted": [layout.answer(view, place) for place in near],
            }
        ),
        "closest-" + cell_name(cell),
        lambda row: select(input=int(view.test.ids[near[row]])),
        f"Tests closest to cell {cell_name(cell)}; choose a row to select its test",
        "auto" if len(near) < 8 else 280,
        {
            "distance": st.column_config.NumberColumn(
                format="%.2f",
                help="Euclidean distance to the cell's centroids, each neuron in units of its standard deviation over "
                "the training inputs.",
            )
        },
    )
