"""The confusion matrix on the Class errors page, the tests of a cell, and recall and precision of every class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.confusion.matrix import ClassTable, Shares, class_table
from idc_core.figures import confusion_matrix as figures
from studio.classes.class_errors import Looked
from studio.jobs.results import View
from studio.shell import tabs
from studio.state import address, choices
from studio.state.choices import choose_one
from studio.state.selection import Point, carried
from studio.text import literal, plural
from studio.widgets import layout

_CELL = "matrix"
"""Name in the address: the selected cell of the matrix, true and predicted class."""

_NUMBERS = {"counts": "counts", "shares": "% of the true class"}
"""What is written into the cells: name and label."""

_PAIRS = ("classes", "pairs")
"""Page and tab of what needs no labels."""

_SHOWN, _TEXTS = 20, 6
"""Tests of a cell that are shown: pictures, and texts."""


def draw(view: View, looked: Looked) -> None:
    """Show the confusion matrix with the tests of a cell, and recall and precision."""
    true, predicted = looked.evidence.true, looked.evidence.predicted
    if true is None or predicted is None:
        st.caption("A confusion matrix needs labels of the network's classes, and there are none here.")
        st.button("Open the pairs, which need no labels", key="open-pairs", on_click=tabs.open_at, args=_PAIRS)
        return
    table = class_table(true, predicted, looked.names)
    if table.counts is None:
        st.caption("Inputs with several labels have no confusion matrix.")
    else:
        cell = _current(table.counts)
        _draw_matrix(view, looked, table.counts, cell)
        if cell is not None:
            _draw_tests(view, looked, cell)
    st.header("Recall and precision", anchor=False)
    classes = _class_table(table)
    _draw_classes(table, classes)
    layout.computed(
        view,
        "Recall: share of the inputs of a class that are predicted as it. Precision: share of the inputs predicted as "
        "a class that have it. Intervals (95 %) are Wilson's; with fewer than 10 inputs on either side of a share they "
        "are exact (Clopper and Pearson).",
    )
    layout.take_away({"recall-precision": classes})


def _current(counts: NDArray[np.int64]) -> tuple[int, int] | None:
    """Return the selected cell, at first the one with most misclassified inputs; None where it has none."""
    new, text = address.is_new(_CELL), address.read(_CELL)
    numbers = [address.position(part) for part in text.split("-")]
    if len(numbers) == 2:
        row, column = numbers
        if row is not None and column is not None and max(row, column) < len(counts) and counts[row, column]:
            return row, column
    choices.not_there("Cell with inputs", [text] if new else [])
    wrong = counts - np.diag(np.diag(counts))
    row, column = divmod(int(wrong.argmax()), len(counts))
    return (row, column) if wrong[row, column] else None


def _draw_matrix(view: View, looked: Looked, counts: NDArray[np.int64], cell: tuple[int, int] | None) -> None:
    """Draw the matrix; a click on a cell selects it."""
    numbers = choose_one(
        st.segmented_control,
        "Numbers",
        _NUMBERS,
        "counts",
        "matrix-numbers",
        required=True,
        help="Number of inputs in each cell, or their share of the inputs of the true class. Default counts.",
    )
    total, wrong = int(counts.sum()), int(counts.sum() - np.trace(counts))
    title = layout.counted("Misclassified", wrong, total, looked.inputs_word)
    drawn = figures.drawn_classes(counts)
    read = "Row: true class; column: predicted class. Framed: correct. Colour: share of the true class, misclassified."
    if len(drawn) < len(counts):
        read += f" Drawn are the {len(drawn)} of {len(counts):,} classes in most misclassified inputs."

    def clicked(points: Sequence[Point]) -> None:
        if values := carried(points[0]):
            address.keep(_CELL, str(values[0]))

    layout.chart(
        view,
        "confusion-matrix",
        lambda dark: figures.confusion_matrix(
            counts, looked.names, title, shares=numbers == "shares", selected=cell, dark=dark
        ),
        alt=title,
        read=read + (" Click a cell to see its tests." if looked.positions is not None else ""),
        depends=(looked.key, numbers, cell),
        clicked=clicked,
        table=lambda: _cells(counts, looked.names),
    )


def _cells(counts: NDArray[np.int64], names: Sequence[str]) -> pd.DataFrame:
    """List the cells that have inputs."""
    rows, columns = np.nonzero(counts)
    named = np.asarray(names)
    return pd.DataFrame({"true class": named[rows], "predicted class": named[columns], "inputs": counts[rows, columns]})


def _draw_tests(view: View, looked: Looked, cell: tuple[int, int]) -> None:
    """Show the tests of a cell."""
    rows = np.flatnonzero((looked.evidence.true == cell[0]) & (looked.evidence.predicted == cell[1]))
    true, predicted = (literal(looked.names[number]) for number in cell)
    st.markdown(f"{plural(len(rows), looked.inputs_word)} of {true}, classified as {predicted}:")
    if looked.positions is not None:
        most = _SHOWN if view.has_pictures else _TEXTS
        layout.gallery(view, looked.positions[rows], most, key="matrix-tests")


def _class_table(table: ClassTable) -> pd.DataFrame:
    """List recall and precision of every class."""

    def columns(name: str, shares: Shares) -> dict[str, NDArray[np.generic]]:
        low, high = shares.interval
        return {f"{name} (%)": 100 * shares.share, f"{name} from (%)": 100 * low, f"{name} to (%)": 100 * high}

    return pd.DataFrame(
        {"class": table.class_names, "correct": table.recall.count, "inputs": table.recall.inputs}
        | columns("recall", table.recall)
        | {"predicted": table.precision.inputs}
        | columns("precision", table.precision)
    )


def _draw_classes(table: ClassTable, classes: pd.DataFrame) -> None:
    """Show recall and precision; choosing a class selects its largest confusion, or its correct inputs."""
    counts = table.counts

    def pick(row: int) -> None:
        if counts is not None:
            wrong = np.where(np.arange(len(counts)) == row, 0, counts[row])
            address.keep(_CELL, f"{row}-{int(wrong.argmax()) if wrong.any() else row}")

    number = st.column_config.NumberColumn(format="%.1f")
    layout.pick_table(
        classes,
        "recall-precision",
        None if counts is None else pick,
        "Recall and precision of every class with their 95 % intervals; choose a row to see its tests in the matrix",
        "content" if len(classes) <= 12 else 420,
        {name: number for name in classes if name.endswith("(%)")},
    )
