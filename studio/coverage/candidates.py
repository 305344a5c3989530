"""The inputs made for an empty cell, of which a person accepts one, and the other decisions on the cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.store.decisions import Decisions, Verdict
from studio.coverage import decisions
from studio.jobs.results import View
from studio.state.selection import selected
from studio.text import cell_name, count, literal, times
from studio.widgets import gallery

if TYPE_CHECKING:
    from idc_core.filling import Filling


def draw(view: View, filling: Filling | None, cell: tuple[int, ...], step: Callable[[int], None]) -> None:
    """Show the inputs made for a cell and the buttons that decide on it; `step` opens a cell so many rows further."""
    rows, digests = inputs_of(filling, cell), digests_of(filling, cell)
    held, name = decisions.read(view), cell_name(cell)
    _say(view, decisions.verdict(held, name, digests), [held.inputs.get(digest, "") for digest in digests])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if filling is not None and len(rows):
            _decide_on_input(view, filling, rows, name, held, step)
        _decide_on_cell(view, name, digests, held, step)
    decisions.tell()
    if filling is not None and len(rows):
        _show(view, filling, rows, held)


def inputs_of(filling: Filling | None, cell: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the inputs that lie in a cell, the highest p-value first."""
    none = np.zeros(0, np.int64)
    return none if filling is None else filling.by_cell.get(cell, none)


def digests_of(filling: Filling | None, cell: tuple[int, ...]) -> tuple[str, ...]:
    """Return what names each of them."""
    return () if filling is None else tuple(filling.digests[row] for row in inputs_of(filling, cell))


def _say(view: View, verdict: str, labels: Sequence[object]) -> None:
    """Say what was decided on the cell, and on how many of its inputs."""
    accepted = [label for label in labels if isinstance(label, int | float)]
    as_class = f" as {', '.join(view.test.class_names[int(label)] for label in accepted)}" if view.is_classifier else ""
    rejected = sum(label is None for label in labels)
    said = f"{verdict}{as_class * bool(accepted)}" if verdict else "undecided"
    inputs = f" {count(len(labels))} made for it, {count(rejected)} rejected." if labels else ""
    st.markdown(f"Decision: {literal(said)}.{inputs}")


def _decide_on_input(
    view: View, filling: Filling, rows: NDArray[np.int64], cell: str, held: Decisions, step: Callable[[int], None]
) -> None:
    """Draw the buttons that accept or reject the first input that is undecided."""
    row = int(next((row for row in rows if filling.digests[row] not in held.inputs), rows[0]))
    digest = filling.digests[row]
    label: int | float = float(filling.targets[row])
    if view.is_classifier:
        usual = int(filling.labels[row]) if filling.labels[row] >= 0 else int(filling.targets[row])
        classes = view.test.class_names
        label = st.selectbox(
            "Class",
            range(len(classes)),
            usual,
            format_func=lambda one: classes[one],
            key=f"made-class-{digest}",
            width=140,
            help=f"Class with which the input is accepted. Default {literal(classes[usual])}.",
        )

    def accept() -> None:
        decisions.change(view, lambda now: now.on_cell(cell, None).on_inputs({digest: label}))
        step(1)

    def reject() -> None:
        decisions.change(view, lambda now: now.on_inputs({digest: None}))

    place = f"input {int(np.flatnonzero(rows == row)[0]) + 1}"
    st.button(f"Accept {place}", key="made-accept", shortcut="a", on_click=accept)
    st.button("Reject", key="made-reject", shortcut="x", on_click=reject)


def _decide_on_cell(
    view: View, cell: str, digests: tuple[str, ...], held: Decisions, step: Callable[[int], None]
) -> None:
    """Draw the buttons that decide on the cell itself, and those that open the one before and behind it."""

    def decide(verdict: Verdict) -> None:
        decisions.change(view, lambda now: now.forget(cell, digests).on_cell(cell, verdict))
        step(1)

    st.button("Not needed", key="gap-not-needed", on_click=decide, args=("not needed",))
    st.button("Later", key="gap-later", on_click=decide, args=("later",))
    untouched = cell not in held.cells and not any(digest in held.inputs for digest in digests)
    undo = (view, lambda now: now.forget(cell, digests))
    st.button("Undo", key="gap-undo", on_click=decisions.change, args=undo, disabled=untouched)
    st.button("Back", key="gap-back", shortcut="b", on_click=step, args=(-1,))
    st.button("Next", key="gap-next", shortcut="n", on_click=step, args=(1,))


def _show(view: View, filling: Filling, rows: NDArray[np.int64], held: Decisions) -> None:
    """Show the inputs of the cell beside the tests that they were made of."""
    tiles = [
        gallery.Tile(int(filling.origin[row]), _caption(view, filling, row, place + 1, held))
        for place, row in enumerate(rows.tolist())
    ]
    before = _before(view, filling, rows)
    factor = gallery.changed(
        "filled-inputs", tiles, before, filling.inputs[rows], selected().input, gallery.select_or_drop
    )
    st.caption(f"Test, new input and difference{times(factor)} (grey: no change). Click one to select its test.")


def _before(view: View, filling: Filling, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the tests that inputs were made of."""
    places = [int(np.flatnonzero(view.test.ids == number)[0]) for number in filling.origin[rows]]
    return np.asarray(view.test.inputs[np.array(places, np.int64)], np.float32)


def _caption(view: View, filling: Filling, row: int, place: int, held: Decisions) -> str:
    """Write test, judgements and decision of an input."""
    said = "valid" if filling.valid[row] else "not valid"
    given = held.inputs.get(filling.digests[row], "")
    decided = "" if given == "" else ", rejected" if given is None else ", accepted"
    second = "" if filling.partner[row] < 0 else f" blended with {filling.partner[row]}"
    text = f"Input {place}{decided}: test {filling.origin[row]}{second}, {said} (p {filling.p[row]:.3f})"
    if not view.is_classifier:
        return text
    names = view.test.class_names
    predicted = view.train.class_names[filling.predictions[row]]
    vote = names[filling.votes[row]] if filling.votes[row] >= 0 else "none"
    return f"{text}; true {names[filling.targets[row]]}, predicted {predicted}, vote {vote}"
