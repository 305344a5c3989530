"""Inspect a cell: its tests and centroids, or the covered cells nearest to it; list the covered cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.coverage.cell_table import members, nearest
from idc_core.figures.grid import Grid
from studio.jobs.overview import summarise
from studio.jobs.results import View
from studio.jobs.wording import is_series
from studio.shell import tabs
from studio.shell.pages import PAGES, go_to
from studio.state.selection import select, selected
from studio.text import cell_name, count, literal, parse_cell, plural, said_of_cell
from studio.widgets import layout
from studio.widgets.cluster_names import called, draw_name, names_in
from studio.widgets.grid_axes import around, fix

SHOWN, _SHOWN_TEXTS = 8, 2
"""Tests shown of a cell, and the same for texts."""

_NEAREST = 3
"""Covered cells named beside an uncovered one."""

DISTANCE = "Distances are Euclidean, each neuron in units of its standard deviation over the training inputs."

MOST_LISTED = 1000
"""Cells listed on the page; the file at the chart holds them all."""

_CELL = "cell"
"""Key of the field that names the cell."""

_NEURONS, _NEURONS_OF = "cell-neurons", "cell-neurons-of"
"""Key of the table of a cell's neurons, and in the session: the cell that it last showed."""

_LISTED = "covered-cells"
"""Key of what unfolds the list of covered cells."""


def choose_cell(view: View, usual: tuple[int, ...], default: str) -> tuple[int, ...]:
    """Draw the field that names the cell, and return the cell to show; `default` says what `usual` is."""
    st.session_state[_CELL] = selected().cell
    typed = st.text_input(
        "Cell",
        key=_CELL,
        on_change=lambda: select(cell=st.session_state[_CELL].strip()),
        placeholder=cell_name(usual),
        help=f"The cluster of each neuron, the most important first. Default: {default}.",
    )
    parsed = parse_cell(typed, view.sizes)
    if typed and parsed is None:
        st.warning(literal(said_of_cell(typed, view.sizes)))
    return parsed or usual


def draw_cell(view: View, grid: Grid, usual: tuple[int, ...], default: str) -> tuple[int, ...]:
    """Show what is in the chosen cell: its tests and its neurons; return the cell."""
    left, right = st.columns([5, 3], gap="medium")
    with right:
        cell = choose_cell(view, usual, default)
        _neurons(view, cell)
        _draw_name(view, cell)
    with left:
        _draw_inside(view, grid, cell)
        _onward(view, tests_in(view, cell))
    return cell


def _draw_name(view: View, cell: tuple[int, ...]) -> None:
    """Let a person name the selected neuron's cluster in a cell."""
    important = view.analysis.important.tolist()
    if (neuron := selected().neuron) in important:
        rank = important.index(neuron)
        draw_name(view, rank, cell[rank], whole=True)


def _draw_inside(view: View, grid: Grid, cell: tuple[int, ...]) -> None:
    """Show the tests of a cell, or the covered cells nearest to it."""
    inside = tests_in(view, cell)
    st.header(layout.topic("Cell {}", cell_name(cell)), anchor=False)
    names = [names[cluster] for names, cluster in zip(names_in(view), cell, strict=True) if names[cluster]]
    if names:
        st.markdown(literal(", ".join(names)))
    if grid.folded or grid.place(cell) is None:
        st.button(
            "Zoom the grid to this cell",
            key="zoom-to-cell",
            on_click=fix,
            args=(view, around(view, cell)),
            help="Fix neurons to this cell's clusters until the cell has a tile of its own.",
        )
    if len(inside):
        words = plural(len(inside), "test")
        if view.correct is not None:
            words += f", {count(int((~view.correct[inside]).sum()))} misclassified"
        st.markdown(f"{words}.")
    else:
        st.markdown("No test reaches this cell. These covered cells are the nearest:")
        rows, steps = nearest(view.table, cell, _NEAREST)
        _cell_list(view, rows, "nearest-" + cell_name(cell), {"steps away": steps})
        st.button(
            "Closest tests, and inputs for this cell",
            key="fill-this",
            on_click=_fill,
            args=(cell,),
            help="Select this cell and open the tab Fill the grid.",
        )
    if len(inside):
        draw_tests(view, _typical_first(view, inside))


def draw_tests(view: View, tests: NDArray[np.int64]) -> None:
    """Show tests, and offer them as files."""
    most = SHOWN if is_pictures(view) else _SHOWN_TEXTS
    layout.gallery(view, tests, most, key="cell-tests", explain=_explain)
    layout.take_inputs(view, np.sort(tests), key="cell-inputs")


def _explain(number: int) -> None:
    """Open a test on the Relevance page."""
    select(input=number)
    tabs.open_at("relevance", "test")
    go_to("relevance")


def tests_in(view: View, cell: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the positions of the chosen tests in a cell."""
    return view.chosen[members(view.analysis.assignments[view.chosen], cell)]


def _typical_first(view: View, inside: NDArray[np.int64]) -> NDArray[np.int64]:
    """Put the most typical test of a cell, which its tile shows, before the others."""
    is_typical = np.isin(view.test.ids[inside], summarise(view).typical)
    return np.concatenate([inside[is_typical], inside[~is_typical]])


def is_pictures(view: View) -> bool:
    """Whether tests are shown as pictures, many of which fit side by side."""
    return view.has_pictures or is_series(view.test)


def _fill(cell: tuple[int, ...]) -> None:
    """Select a cell and open the tab that shows what comes close to it."""
    select(cell=cell_name(cell))
    tabs.open_at("coverage", "fill")


def _neurons(view: View, cell: tuple[int, ...]) -> None:
    """List the cluster of every neuron in a cell; picking one selects both."""
    analysis = view.analysis
    # One table for all cells: the browser takes far longer to make one than to fill it anew. No pick goes along.
    if st.session_state.get(_NEURONS_OF, cell) != cell and _NEURONS in st.session_state:
        st.session_state[_NEURONS] = {"selection": {"rows": []}}
    st.session_state[_NEURONS_OF] = cell
    layout.pick_table(
        pd.DataFrame(
            {
                "neuron": view.neurons,
                "cluster": cell,
                "position": [called(view, rank, cluster) for rank, cluster in enumerate(cell)],
                "centroid": [float(values[c]) for values, c in zip(analysis.centroids, cell, strict=True)],
            }
        ),
        _NEURONS,
        lambda row: select(neuron=int(analysis.important[row]), cluster=cell[row]),
        "Cluster of each neuron in this cell; choose a row to select the neuron and its cluster",
        "auto" if len(cell) < 8 else 280,
        columns={"centroid": st.column_config.NumberColumn(format="%.3g")},
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


def _cell_list(view: View, rows: NDArray[np.int64], key: str, extra: dict[str, NDArray[np.int64]]) -> None:
    """List covered cells, by their rows in the table; picking one selects it."""
    table = view.table
    columns = {"cell": [cell_name(cell) for cell in table.cells[rows].tolist()], **extra, "tests": table.counts[rows]}
    if view.correct is not None:
        columns["misclassified"] = table.wrong[rows]
    layout.pick_table(
        pd.DataFrame(columns),
        key,
        lambda row: select(cell=cell_name(table.cells[rows[row]])),
        "Cells; choose a row to open its cell",
        "auto" if len(rows) < 8 else 280,
        {"misclassified (%)": st.column_config.NumberColumn(format="%.1f")},
    )


def draw_covered(view: View, grid: Grid) -> None:
    """List the covered cells that are drawn, once that is asked for: each click on the grid would draw them again."""
    drawn = np.flatnonzero(grid.tile >= 0)
    if not len(drawn):
        st.markdown("None of the cells shown above is covered.")
        return
    folded = st.expander(plural(len(drawn), "covered cell"), key=_LISTED, on_change="rerun")
    if folded.open:
        with folded:
            _list_covered(view, grid, drawn)


def _list_covered(view: View, grid: Grid, drawn: NDArray[np.int64]) -> None:
    """List covered cells, the ones that only misclassified tests reach first."""
    table = view.table
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
    _cell_list(view, shown, key, {name: values[:MOST_LISTED] for name, values in extra.items()})
    left = f" The table shows {count(len(shown))} of {count(len(rows))}; the CSV at the grid holds all." * (
        len(rows) > len(shown)
    )
    st.caption(f"Choose a row to open its cell; click a column name to sort.{left}")
