"""Pieces of layout: charts with their reading aid, galleries of inputs, and what can be taken away."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.figures import pictures
from pages.common.charts import chart, grid_chart, how_to_read, is_dark
from pages.common.results import View
from pages.common.text import count, plural

if TYPE_CHECKING:
    from idc_core.datasets import Dataset

__all__ = [
    "answer",
    "chart",
    "computed",
    "explain",
    "gallery",
    "grid_chart",
    "how_to_read",
    "is_dark",
    "names",
    "take_away",
    "take_inputs",
]

WRONG = "\u00d7"
"""Marks a misclassified test."""

MOST_WORDS = 60
"""Words of a text shown in a gallery."""


def answer(view: View, position: int) -> str:
    """Write a test's right answer and the network's."""
    said = view.analysis.predictions[position]
    if not view.is_classifier:
        return f"{view.test.targets[position]:+.2f} → {view.analysis.confidence[position]:+.2f} rad"
    true = view.test.class_names[view.test.targets[position]]
    wrong = view.correct is not None and not view.correct[position]
    return f"{true} → {view.train.class_names[said]}{f' {WRONG}' if wrong else ''}"


def gallery(view: View, positions: NDArray[np.int64], most: int, relevance: NDArray[np.floating] | None = None) -> None:
    """Show tests: pictures, pictures beside their relevance, or words.

    Parameters
    ----------
    view : View
        The bench.
    positions : ndarray of int64 (k,)
        Which tests.
    most : int
        How many to show at most.
    relevance : ndarray of float, optional
        Relevance of the inputs at the first `most` positions.
    """
    shown = positions[:most]
    if not len(shown):
        st.caption("No test to show.")
        return
    inputs = view.test.inputs[shown]
    if inputs.ndim == 4:
        tiles = pictures.pictures(inputs) if relevance is None else pictures.heatmaps(inputs, relevance)
        st.image(
            list(tiles),
            caption=[f"{view.test.ids[p]}: {answer(view, p)}" for p in shown],
            width=tiles.shape[2],
            output_format="PNG",
            alt=[f"Test {view.test.ids[p]}, {_spoken(view, p)}" for p in shown],
        )
    else:
        for row, position in enumerate(shown):
            words = _words(view, position, None if relevance is None else relevance[row])
            with st.container(border=True):
                st.markdown(f"**{view.test.ids[position]}: {answer(view, position)}**  \n{words}")
    legend = "Number of the test"
    if view.is_classifier:
        legend += ": true class → the network's answer"
        legend += f"; {WRONG} marks misclassified tests" if view.correct is not None else ""
    else:
        legend += ": true steering angle → the network's, positive to the left"
    left_out = f" Shown are {len(shown)} of {plural(len(positions), 'test')}." if len(positions) > most else ""
    st.caption(f"{legend}.{left_out}")


def _spoken(view: View, position: int) -> str:
    return answer(view, position).replace("→", "answered as").replace(WRONG, "(misclassified)")


def _words(view: View, position: int, relevance: NDArray[np.floating] | None) -> str:
    """Write the first words of a text; the ones with much relevance bold (for) or in italics (against)."""
    tokens = view.test.inputs[position][:MOST_WORDS]
    tokens = tokens[tokens > 0]
    words = [view.test.vocabulary[token] if token > 1 else "…" for token in tokens]
    if relevance is not None and len(tokens):
        strong = np.abs(relevance[: len(tokens)]).max() / 4
        for index, (word, value) in enumerate(zip(words, relevance, strict=False)):
            if abs(value) > strong and word != "…":
                words[index] = f":red-background[**{word}**]" if value > 0 else f":blue-background[*{word}*]"
    return " ".join(words) or "(no known words)"


def take_away(
    tables: dict[str, pd.DataFrame], files: dict[str, tuple[str, str, Callable[[], bytes]]] | None = None
) -> None:
    """Offer tables as CSV, and other files; the charts' own buttons offer pictures.

    Parameters
    ----------
    tables : dict of str to DataFrame
        File names without ending, and their tables.
    files : dict of str to (str, str, callable), optional
        Labels of buttons, and file name, media type and what makes the file when it is asked for.
    """
    st.header("Take it away", anchor=False)
    with st.container(horizontal=True, key="take-away"):
        for name, table in tables.items():
            st.download_button(
                f"{name.replace('-', ' ').capitalize()} (CSV)",
                lambda table=table: table.to_csv(index=False),
                file_name=f"idc-{name}.csv",
                mime="text/csv",
                on_click="ignore",
                key=f"csv-{name}",
            )
        for label, (file_name, mime, make) in (files or {}).items():
            st.download_button(label, make, file_name=file_name, mime=mime, on_click="ignore", key=f"file-{file_name}")
    st.caption("The buttons under each chart save it as PNG, SVG or HTML. The address holds this view.")


def take_inputs(view: View, positions: NDArray[np.int64]) -> None:
    """Offer the tests that are shown as a NumPy archive.

    Parameters
    ----------
    view : View
        The bench.
    positions : ndarray of int64 (k,)
        Which tests.
    """
    if len(positions):
        st.download_button(
            f"Take {'this test' if len(positions) == 1 else f'these {count(len(positions))} tests'} away (npz)",
            lambda: npz(view, positions),
            file_name="idc-inputs.npz",
            mime="application/octet-stream",
            on_click="ignore",
            key="npz",
        )


def npz(view: View, positions: NDArray[np.int64]) -> bytes:
    """Pack some tests: inputs, right answers, the network's answers, and their numbers in the test set."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        inputs=view.test.inputs[positions],
        targets=view.test.targets[positions],
        predictions=view.analysis.predictions[positions],
        ids=view.test.ids[positions],
    )
    return file.getvalue()


def computed(view: View, *sentences: str) -> None:
    """Say, folded away, how the page was computed, and from what."""
    card = view.model.card
    facts = [
        ("network", f"{card.label}, {card.parameters:,} parameters, fingerprint `{card.fingerprint}`"),
        ("training inputs", _origin(view.train)),
        ("tests", _origin(view.test)),
        ("relevance", "layer-wise relevance propagation, epsilon rule, from the predicted class's score"),
        ("source", "Gerasimou et al., Importance-Driven Deep Learning System Testing, ICSE 2020"),
    ]
    explain(*sentences, "\n".join(f"* {name}: {value}" for name, value in facts))


def explain(*paragraphs: str) -> None:
    """Say, folded away, how the page was computed."""
    with st.expander("How this was computed"):
        for paragraph in paragraphs:
            st.markdown(paragraph)


def _origin(data: Dataset) -> str:
    return f"{len(data):,} of {data.name}, fingerprint `{data.fingerprint}`"


def names(values: Sequence[str]) -> str:
    """Join names as in a sentence."""
    return values[0] if len(values) == 1 else ", ".join(values[:-1]) + f" and {values[-1]}"
