"""Fill the grid: empty cells as a ranked work list, what comes close to one, and what is decided on it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.coverage.closest_inputs import closest, spread
from idc_core.coverage.reach import CellState
from idc_core.coverage.work_list import RankedBy, WorkList, work_list
from idc_core.store.decisions import Decisions
from studio.coverage import accepted, candidates, decisions, filling
from studio.coverage.cell_details import DISTANCE, MOST_LISTED, SHOWN, choose_cell, draw_tests, tests_in
from studio.jobs.overview import summarise
from studio.jobs.results import View
from studio.state.choices import choose_one, choose_several
from studio.state.selection import select, selected
from studio.text import cell_name, count, parse_cell
from studio.widgets import cell_search, layout

if TYPE_CHECKING:
    from idc_core.filling import Filling

_EMPTY = "empty-cells"
"""Key of the table of empty cells."""

_RANKED = {RankedBy.REACH: "Reach", RankedBy.ERRORS: "Misclassified tests beside", RankedBy.TRAINING: "Training inputs"}

_REACHED = {"training": CellState.TRAINING, "generated": CellState.GENERATED, "nothing": CellState.NOTHING}
_WORDS = {"training": "training inputs", "generated": "valid inputs", "nothing": "nothing yet"}
"""What reaches an empty cell, by its name in the address, as a state and in words."""

_DECIDED = {"": "All", "open": "Undecided", "accepted": "Accepted", "not needed": "Not needed", "later": "Later"}


def draw(view: View) -> None:
    """Show which cells are empty, what could fill them, and what accepted inputs change."""
    _draw_list(view)
    errors = "misclassified tests one step away, then by " if view.correct is not None else ""
    layout.computed(
        view,
        "A step moves one neuron to the next cluster. Ranked by reach, cells that training inputs reach come first, "
        f"then cells that valid generated inputs reach; ties go by {errors}training inputs. Inputs are made by "
        f"changing the tests closest to the cell until they lie in it. {DISTANCE}",
    )


def _draw_list(view: View) -> None:
    table = view.table
    if table.covered == table.total:
        st.markdown("**The tests reach every cell.**")
        return
    finding = st.empty()
    made = filling.draw(view) if view.has_pictures else None
    valid, tried = (None, None) if made is None else (made.valid_codes, made.cells)
    found = work_list(table, summarise(view).reach(valid), tried)
    finding.markdown(_sentence(view, found))
    rows = _draw_table(view, found, made)
    _draw_cell(view, found, rows, made)
    if made is not None and len(made):
        accepted.draw(view, made)


def _sentence(view: View, found: WorkList) -> str:
    """Say how many cells are empty, and how many of them training inputs reach where that is known."""
    table = view.table
    empty, more = layout.counted("Empty", table.total - table.covered, table.total, "cell"), []
    if _is_compared(view):
        training = sum(state is CellState.TRAINING for state in found.states)
        more.append(f"Training inputs reach {count(training)} of them.")
    if found.unlisted:
        more.append(f"Listed are {count(len(found.cells))} that something reaches, or that border on a covered cell.")
    return layout.lead(empty, *more)


def _is_compared(view: View) -> bool:
    """Whether training inputs say something of the cells: not of tests chosen by what the network makes of them."""
    return summarise(view).training is not None


def _draw_table(view: View, found: WorkList, made: Filling | None) -> NDArray[np.int64]:
    """List the empty cells that pass the filter, as they are ranked; return their positions."""
    is_known = {RankedBy.ERRORS: view.correct is not None, RankedBy.TRAINING: _is_compared(view)}
    ranked = {by: text for by, text in _RANKED.items() if is_known.get(by, True)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = choose_one(
            st.segmented_control,
            "Rank by",
            ranked,
            RankedBy.REACH,
            "gaps-by",
            required=True,
            help="Which empty cells come first. Default Reach.",
        )
        reached = _choose_reached() if _is_compared(view) else []
        decided = choose_one(
            st.selectbox, "Decision", _DECIDED, "", "gaps-decided", width=150, help="List only such cells. Default All."
        )
    held = decisions.read(view)
    said = [_verdict(held, cell, made) for cell in map(tuple, found.cells.tolist())]
    states = {_REACHED[name] for name in reached}
    passing = [
        (not states or state in states) and decided in ("", verdict or "open")
        for state, verdict in zip(found.states, said, strict=True)
    ]
    order = found.ranked(RankedBy(by))
    rows = order[np.array(passing, np.bool_)[order]]
    if not len(rows):
        st.markdown("No empty cell passes this filter.")
        return rows
    _list(view, found, rows[:MOST_LISTED], said, made)
    if len(rows) > MOST_LISTED:
        st.caption(f"The first {count(MOST_LISTED)} of {count(len(rows))} are shown.")
    return rows


def _choose_reached() -> list[str]:
    """Choose what reaches the cells that are listed; nothing chosen for all of them."""
    return choose_several(
        partial(st.pills, selection_mode="multi"),
        "Reached by",
        _WORDS,
        (),
        "gaps-reached",
        help="List only cells that these reach. Default all.",
    )


def _verdict(held: Decisions, cell: tuple[int, ...], made: Filling | None) -> str:
    return decisions.verdict(held, cell_name(cell), candidates.digests_of(made, cell))


def _list(view: View, found: WorkList, rows: NDArray[np.int64], said: list[str], made: Filling | None) -> None:
    """List empty cells; choosing one selects it."""
    cells = found.cells[rows].tolist()
    words = {state: _WORDS[name] for name, state in _REACHED.items()}
    columns: dict[str, object] = {"empty cell": [cell_name(cell) for cell in cells]}
    if _is_compared(view):
        columns["reached by"] = [words[found.states[row]] for row in rows]
        columns["training inputs"] = found.training[rows]
    if view.correct is not None:
        columns["misclassified beside"] = found.wrong[rows]
    columns |= {"tests beside": found.tests[rows], "covered neighbours": found.borders[rows]}
    if made is not None:
        inputs = [candidates.inputs_of(made, tuple(cell)).tolist() for cell in cells]
        columns["inputs made"] = [len(some) for some in inputs]
        columns["p"] = [float(made.p[some[0]]) if some else None for some in inputs]
        columns["how"] = [made.ways[made.way[some[0]]].label if some else "" for some in inputs]
    columns["decision"] = [said[row] for row in rows]
    number = st.column_config.NumberColumn
    layout.pick_table(
        pd.DataFrame(columns),
        _EMPTY,
        lambda row: select(cell=cell_name(cells[row])),
        "Empty cells with what reaches each and the tests one step away; choose a row to select the cell",
        "auto" if len(rows) < 8 else 300,
        {
            "misclassified beside": number(help="Misclassified tests in covered cells one step away."),
            "tests beside": number(help="Tests in covered cells one step away."),
            "covered neighbours": number(help="Covered cells one step away."),
            "p": number(format="%.3f", help="Highest conformal p-value of its inputs; valid above 0.05."),
        },
        [name for name in _ORDER if name in columns],
    )


_ORDER = (
    "empty cell",
    "reached by",
    "decision",
    "training inputs",
    "misclassified beside",
    "tests beside",
    "covered neighbours",
    "inputs made",
    "p",
    "how",
)
"""Columns of the table, what matters most first: a narrow window cuts off the last ones."""


def _draw_cell(view: View, found: WorkList, rows: NDArray[np.int64], made: Filling | None) -> None:
    """Show what comes close to the selected cell, what was made for it, and what is decided on it."""
    listed = [tuple(cell) for cell in found.cells[rows].tolist()]
    first = listed[0] if listed else tuple(map(int, found.cells[0]))
    picked = parse_cell(selected().cell, view.sizes)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        cell = choose_cell(view, first, "the first empty cell of the list")

    def step(rows: int) -> None:
        at = listed.index(cell) + rows if cell in listed else 0
        if 0 <= at < len(listed):
            select(cell=cell_name(listed[at]))

    if picked is not None and len(tests_in(view, picked)):
        right.markdown(f"Cell {cell_name(cell)} is covered. Choose an empty one.")
        return
    with left:
        candidates.draw(view, made, cell, step)
        if view.has_pictures:
            cell_search.offer(view, cell)
        else:
            st.caption("Inputs can be generated for pictures only.")
    with right:
        st.header(layout.topic("Tests closest to cell {}", cell_name(cell)), anchor=False)
        _closest(view, cell)
    if view.has_pictures:
        cell_search.draw(view, cell)


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
