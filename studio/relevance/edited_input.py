"""One test changed by hand: what the network makes of it, the cell it falls into, and the relevance that follows."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.analysis.predictions import predictions_of
from idc_core.base.progress import Progress
from idc_core.datasets.editing import paint_over, token_ids
from idc_core.figures.heatmaps import heatmap
from idc_core.figures.input_images import pictures
from studio.jobs.explanations import EXPLANATIONS, INPUT, Explanation, explain, read_tokens, scores
from studio.jobs.jobs import Waiting
from studio.jobs.results import View
from studio.jobs.wording import amount, feature_names, is_series
from studio.text import cell_name, literal, percent
from studio.widgets import layout, relevance_view
from studio.widgets.charts import component
from studio.widgets.relevance_view import Display

_SIDE = 280
"""Width of the picture to paint on, in pixels of the screen, at least."""

_METHOD = "epsilon"

_paint = component("idc_paint", "paint", "paint")


def draw(view: View, position: int) -> None:
    """Let the test be changed, and show what follows."""
    _draw_edited(view, position)
    layout.computed(
        view, "The changed test runs through the network as tests do; relevance is that of the class predicted now."
    )


def _draw_edited(view: View, position: int) -> None:
    """Let a person change one test, and show what the network makes of it beside what it made of the original."""
    test = view.test.inputs[position]
    if is_series(view.test) or view.test.is_pieces:
        what = "Time series" if is_series(view.test) else "Texts that are read in pieces of words"
        st.info(f"{what} cannot be changed here. Pictures, texts of whole words or characters, and tables can.")
        return
    left, right = st.columns(2, gap="large")
    with left:
        if test.ndim == 3:
            changed = _painted(view, position)
        elif test.dtype.kind == "f":
            changed = _typed(view, position)
        else:
            changed = _written(view, position)
    edited = _of_input(view, position, changed)
    score = scores(edited, 0)
    with right:
        st.markdown(_sentence(view, edited, position, score))
        target = int(score.argmax())
        label = "Changed test" if not view.is_classifier else f"Class {view.train.class_names[target]}"
        explained = explain(edited, 0, _METHOD, target, {}, f"{label}, LRP-epsilon")
        _relevance(edited, explained)


def _of_input(view: View, position: int, changed: NDArray[np.generic]) -> View:
    """Return a view of one test alone, with another input in its place, as its number says."""
    test = view.test.only(np.array([position]))
    inputs = np.ascontiguousarray(changed[None], test.inputs.dtype)
    inputs.setflags(write=False)
    other = replace(test, inputs=inputs, texts=())
    return replace(view, test=replace(other, fingerprint=other.only(np.array([0])).fingerprint))


def _painted(view: View, position: int) -> NDArray[np.generic]:
    image, key = view.test.inputs[position], f"paint-{view.test.ids[position]}"
    shown = pictures(image[None], 1)[0]
    painted = (st.session_state.get(key) or {}).get("painted") or []
    height, width = image.shape[1:]
    _paint(
        key=key,
        data={
            "name": f"Test {view.test.ids[position]}",
            "pixels": base64.b64encode(np.ascontiguousarray(shown).tobytes()).decode(),
            "width": width,
            "height": height,
            "side": max(1, _SIDE // width) * width,
            "painted": painted,
        },
        on_painted_change=lambda: None,
    )
    return paint_over(image, painted)


def _written(view: View, position: int) -> NDArray[np.generic]:
    test = view.test
    ids = test.inputs[position]
    words = test.words(ids[ids != test.padding])
    text = st.text_area(
        "Text",
        ("" if test.is_spelt else " ").join(words),
        key=f"edit-{test.ids[position]}",
        height=220,
        max_chars=20_000,
        help="Words outside the vocabulary count as unknown. Default the text of the test.",
    )
    return token_ids(test, text)


def _typed(view: View, position: int) -> NDArray[np.generic]:
    test = view.test.inputs[position]
    table = pd.DataFrame({"feature": feature_names(view.test), "value": test.reshape(-1).astype(np.float64)})
    edited = st.data_editor(
        table,
        key=f"edit-{view.test.ids[position]}",
        hide_index=True,
        disabled=["feature"],
        num_rows="fixed",
        height=320,
    )
    return np.asarray(edited["value"].fillna(0.0), test.dtype).reshape(test.shape)


def _cell_of(edited: View) -> tuple[int, ...]:
    """Return the cell that the one test of a view falls into."""

    def work(report: Progress) -> tuple[int, ...]:
        from idc_core.tracing.trace import collect

        layer = edited.analysis.layer
        found = collect(edited.model, edited.test.inputs, [layer], on_progress=report).activations[layer]
        return tuple(int(cluster) for cluster in edited.analysis.assign(found)[0])

    key = (*edited.key, edited.setup, "cell")
    return Waiting(1).get(EXPLANATIONS, key, "running the test", work)


def _sentence(view: View, edited: View, position: int, score: NDArray[np.float32]) -> str:
    """Say what is predicted now and before, and which cell the test falls into."""
    number = view.test.ids[position]
    before_cell, cell = tuple(view.analysis.assignments[position].tolist()), _cell_of(edited)
    if np.array_equal(edited.test.inputs[0], view.test.inputs[position]):
        return f"{layout.label(f'Test {number}')} is unchanged. Change it, and prediction, cell and relevance follow."
    if view.is_classifier:
        names = [literal(name) for name in view.train.class_names]
        predictions = predictions_of(score[None], edited.test.targets, edited.test.task)
        sure = percent(float(predictions.confidence[0]))
        now, before = names[int(predictions.classes[0])], names[int(view.analysis.predictions[position])]
        answer = f"classified as {now} with {sure} confidence ({'as before' if now == before else f'before: {before}'})"
    else:
        before_value = float(view.analysis.confidence[position])
        answer = f"predicted as {amount(view.test, float(score[0]))} (before: {amount(view.test, before_value)})"
    covered = bool((view.table.cells == np.array(cell)).all(axis=1).any())
    where = "the same cell" if cell == before_cell else f"cell {cell_name(cell)} (before: {cell_name(before_cell)})"
    fresh = "" if covered else ", which no test reaches"
    return f"{layout.label(f'Test {number}')}, changed, is {answer}. It falls into {where}{fresh}."


def _relevance(edited: View, found: Explanation) -> None:
    """Draw the relevance of the changed test."""
    test = edited.test
    if test.inputs.ndim == 4:
        values = found.maps[INPUT]
        largest = float(np.abs(values).max()) or 1.0
        tile = heatmap(values, largest, _SIDE, "red-blue", dark=layout.is_dark())
        relevance_view.draw_pictures([(tile, f"{found.label}: colour range ±{largest:.2g}")], key="heatmaps-edited")
        layout.how_to_read("Red is evidence for the predicted class, blue against it.")
        return
    if test.inputs.dtype.kind == "f":
        rows = pd.DataFrame({"feature": feature_names(test), "relevance": found.parts.reshape(-1)})
        st.dataframe(rows.sort_values("relevance", ascending=False), hide_index=True, height=320)
    else:
        relevance_view.draw_words(Display(edited, 0, [found], "picture", "red-blue"), read_tokens(test, 0))
