"""One test changed by hand: what the network makes of it, the cell it falls into, and the relevance that follows.

The browser shows it while a hand moves, by itself where the network is a small chain; the sentence is the engine's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.analysis.predictions import predictions_of
from idc_core.errors import IdcError
from studio.jobs import live
from studio.jobs.live import Shown
from studio.jobs.results import View
from studio.jobs.wording import amount, is_series
from studio.relevance import live_input
from studio.text import cell_name, literal
from studio.widgets import layout


def draw(view: View, position: int) -> None:
    """Let the test be changed, and show what follows."""
    if is_series(view.test) or view.test.is_pieces:
        what = "Time series" if is_series(view.test) else "Texts that are read in pieces of words"
        st.info(f"{what} cannot be changed here. Pictures, texts of whole words or characters, and tables can.")
        return
    _draw_edited(view, position)
    layout.computed(view, *_how(view))


@st.fragment
def _draw_edited(view: View, position: int) -> None:
    """Let a person change one test, and show what the network makes of it beside what it made of the original."""
    edits = live_input.edits_of(view, position)
    edited = _of_input(view, position, live_input.changed_by(view, position, edits))
    try:
        found = live.show(view, edited.test.inputs[0])
    except IdcError as error:
        st.error(literal(error))
        return
    st.markdown(_sentence(view, edited, position, found))
    live_input.draw(view, position, edits, edited, found)


def _how(view: View) -> list[str]:
    """Say where the numbers come from."""
    how = (
        "Relevance is that of the class predicted now, by LRP-epsilon. Epsilon moves every pixel by that much along "
        "the sign of the gradient of the loss at the original test (FGSM)."
        if view.has_pictures
        else "Relevance is that of the prediction now, by LRP-epsilon."
    )
    if view.test.inputs.dtype.kind != "f":
        return [how]
    program = live.program(view)
    if isinstance(program, str):
        return [how, f"The server computes what follows a change. {literal(program)}"]
    return [
        f"{how} Your browser runs the network's {len(program.steps)} operations itself while you move; the engine "
        "then computes the same, and where they differ by more than 0.0001 the engine's numbers are shown."
    ]


def _of_input(view: View, position: int, changed: NDArray[np.generic]) -> View:
    """Return a view of one test alone, with another input in its place, as its number says."""
    test = view.test.only(np.array([position]))
    inputs = np.ascontiguousarray(changed[None], test.inputs.dtype)
    inputs.setflags(write=False)
    other = replace(test, inputs=inputs, texts=())
    return replace(view, test=replace(other, fingerprint=other.only(np.array([0])).fingerprint))


def _sentence(view: View, edited: View, position: int, found: Shown) -> str:
    """Say what is predicted now and before, and which cell the test falls into."""
    name = layout.label(f"Test {view.test.ids[position]}")
    if np.array_equal(edited.test.inputs[0], view.test.inputs[position]):
        return f"{name} is unchanged. Change it, and prediction, cell and relevance follow."
    before_cell = tuple(view.analysis.assignments[position].tolist())
    cell = tuple(view.analysis.assign(found.activations[None])[0].tolist())
    if view.is_classifier:
        names = [literal(name) for name in view.train.class_names]
        predictions = predictions_of(found.scores[None], edited.test.targets, edited.test.task)
        # As the browser writes them, one above the other.
        shares = predictions.confidence[0], view.analysis.confidence[position]
        sure, before_sure = (f"{100 * share:.1f} %" for share in shares)
        now, before = names[int(predictions.classes[0])], names[int(view.analysis.predictions[position])]
        was = f"{before}, {before_sure}" if now != before else before_sure
        answer = f"classified as {now} with {sure} confidence (before: {was})"
    else:
        before_value = float(view.analysis.confidence[position])
        answer = f"predicted as {amount(view.test, float(found.scores[0]))} (before: {amount(view.test, before_value)})"
    covered = bool((view.table.cells == np.array(cell)).all(axis=1).any())
    where = "the same cell" if cell == before_cell else f"cell {cell_name(cell)} (before: {cell_name(before_cell)})"
    fresh = "" if covered else ", which no test reaches"
    return f"{name}, changed, is {answer}. It falls into {where}{fresh}."
