"""Made inputs one by one: a person accepts, rejects or relabels them, and keeps what is left as a suite."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.arrays import Array
from idc_core.base.spreadsheets import csv
from studio.jobs.results import View
from studio.state.selection import selected
from studio.text import cell_name, count, plural, times
from studio.widgets import gallery
from studio.widgets.keep_suite import keep_row

if TYPE_CHECKING:
    from idc_core.filling import Filling
    from idc_core.suites import Suite

_DECISIONS, _PLACE = "made-decisions", "made-place"
"""In the session: the label of every decided input, None of a rejected one, by the result; and which one is shown."""

_SHOWN = 6


def draw(view: View, filling: Filling, key: Hashable) -> None:
    """Show made inputs to decide on, and offer to keep and to download them."""
    decisions: dict[int, int | None] = st.session_state.setdefault(_DECISIONS, {}).setdefault(key, {})
    order = _order(filling)
    at = min(st.session_state.get(_PLACE, 0), len(order) - 1)
    if view.is_classifier:
        _decide(view, filling, decisions, order, at)
    shown = order[at : at + _SHOWN]
    before = _before(view, filling, shown)
    tiles = [gallery.Tile(int(filling.origin[row]), _caption(view, filling, row)) for row in shown]
    factor = gallery.changed(
        "filled-inputs", tiles, before, filling.inputs[shown], selected().input, gallery.select_or_drop
    )
    st.caption(
        f"Test, new input and difference{times(factor)} (grey: no change). {count(at + 1)} to {count(at + len(shown))} "
        f"of {plural(len(order), 'input')}, the highest p-values first. Click one to select its test on all pages."
    )
    which, labels = _left(filling, decisions)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        keep_row("Made for empty cells", int(which.sum()), "keep-filled", lambda: _suite(view, filling, which, labels))
        st.download_button(
            "Inputs (npz)",
            lambda: _packed(filling),
            file_name="idc-filled-inputs.npz",
            mime="application/octet-stream",
            on_click="ignore",
            key="filled-npz",
        )
        st.download_button(
            "Judgements (CSV)",
            lambda: _table(filling),
            file_name="idc-filled-inputs.csv",
            mime="text/csv",
            on_click="ignore",
            key="filled-csv",
        )
    st.caption("Kept are accepted inputs, and undecided ones that are valid and have a majority vote.")


def _order(filling: Filling) -> NDArray[np.int64]:
    """Return the inputs in the order in which they are shown: the best of each cell first, by their p-values."""
    first = np.isin(np.arange(len(filling)), filling.best)
    return np.lexsort((-filling.p, ~first)).astype(np.int64)


def _before(view: View, filling: Filling, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the tests that inputs were made of."""
    places = [int(np.flatnonzero(view.test.ids == number)[0]) for number in filling.origin[rows]]
    return np.asarray(view.test.inputs[np.array(places, np.int64)], np.float32)


def _caption(view: View, filling: Filling, row: int) -> str:
    """Write cell, test and judgements of an input."""
    said = "valid" if filling.valid[row] else "not valid"
    text = f"Cell {cell_name(filling.cells[filling.cell[row]].tolist())}, test {filling.origin[row]}, {said}"
    if not view.is_classifier:
        return text
    names = view.test.class_names
    predicted = view.train.class_names[filling.predictions[row]]
    vote = names[filling.votes[row]] if filling.votes[row] >= 0 else "none"
    return f"{text}; true {names[filling.targets[row]]}, predicted {predicted}, vote {vote}"


def _decide(view: View, filling: Filling, decisions: dict[int, int | None], order: NDArray[np.int64], at: int) -> None:
    """Draw the buttons by which a person decides on the first input that is shown; each has a key."""
    row = int(order[at])
    usual = int(filling.labels[row]) if filling.labels[row] >= 0 else int(filling.targets[row])
    classes = view.test.class_names

    def decide(label: int | None) -> None:
        decisions[row] = label
        go(1)

    def go(step: int) -> None:
        st.session_state[_PLACE] = min(max(0, at + step), len(order) - 1)

    accepted = sum(label is not None for label in decisions.values())
    said = "undecided"
    if row in decisions:
        label = decisions[row]
        said = "rejected" if label is None else f"accepted as {classes[label]}"
    st.markdown(
        f"Input {count(at + 1)} of {count(len(order))}, {said}. {count(accepted)} accepted, "
        f"{count(len(decisions) - accepted)} rejected."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button("Back", key="made-back", shortcut="b", on_click=go, args=(-1,), disabled=at == 0)
        st.button(f"Accept as {classes[usual]}", key="made-accept", shortcut="a", on_click=decide, args=(usual,))
        st.button("Reject", key="made-reject", shortcut="x", on_click=decide, args=(None,))
        label = st.selectbox(
            "Other class", range(len(classes)), usual, format_func=lambda one: classes[one], key=f"made-class-{row}"
        )
        st.button("Relabel", key="made-relabel", shortcut="l", on_click=decide, args=(label,))
        st.button("Next", key="made-next", shortcut="n", on_click=go, args=(1,), disabled=at == len(order) - 1)


def _left(filling: Filling, decisions: dict[int, int | None]) -> tuple[NDArray[np.bool_], Array]:
    """Return which inputs are kept, and the labels of all."""
    which, labels = filling.usable.copy(), np.array(filling.labels)
    for row, label in decisions.items():
        which[row] = label is not None
        if label is not None:
            labels[row] = label
    return which, labels


def _suite(view: View, filling: Filling, which: NDArray[np.bool_], labels: Array) -> Suite:
    from idc_core.filling import suite_of

    return suite_of(filling, view.test, which, labels)


def _packed(filling: Filling) -> bytes:
    from idc_core.filling.result import packed

    return packed(filling)


def _table(filling: Filling) -> str:
    from idc_core.filling.result import records

    return csv(pd.DataFrame(records(filling)))
