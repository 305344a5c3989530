"""Pieces of layout: charts with their reading aid, galleries of inputs, and what can be taken away."""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.figures import pictures
from pages.common.bench import Bench
from pages.common.results import View
from pages.common.text import count, plural

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from idc_core.datasets import Dataset

WRONG = "\u00d7"
"""Marks a misclassified test."""

MOST_WORDS = 60
"""Words of a text shown in a gallery."""


def chart(
    view: View,
    key: str,
    build: Callable[[bool], go.Figure],
    alt: str,
    read: str,
    depends: Hashable = (),
    clicked: Callable[[list[dict[str, Any]]], None] | None = None,
    modes: Sequence[Literal["points", "box", "lasso"]] = ("points",),
) -> None:
    """Draw a plotly figure with the sentence on how to read it.

    Parameters
    ----------
    view : View
        The bench, on which the figure depends.
    key : str
        Name of the figure on its page.
    build : callable
        Makes the figure; called with whether the ground is dark.
    alt : str
        The finding, for who cannot see the figure.
    read : str
        How to read it.
    depends : hashable
        What else the figure depends on.
    clicked : callable, optional
        Called with the points that were clicked or drawn around, as plotly tells of them: `x`, `y`,
        `customdata`, `curve_number`, `point_index`. It runs before the page is drawn again, and never
        without a point: a choice stays until another one is made.
    modes : sequence of str
        How points can be chosen.
    """
    figure = _figure(key, view.bench, depends, is_dark(), build)
    picture = {"format": "png", "scale": 2, "filename": f"idc-studio-{key}"}
    config = {"displaylogo": False, "toImageButtonOptions": picture}
    # The figures bring their own colours for either ground; the theme would replace some of them.
    if clicked is None:
        st.plotly_chart(figure, key=key, alt=alt, config=config, theme=None)
    else:
        st.plotly_chart(
            figure,
            key=key,
            alt=alt,
            config=config,
            theme=None,
            on_select=lambda: _tell(key, clicked),
            selection_mode=modes,
        )
    how_to_read(read)


def _tell(key: str, clicked: Callable[[list[dict[str, Any]]], None]) -> None:
    """Hand over what was chosen in a chart; the chart forgets it as soon as its figure changes."""
    if points := st.session_state[key].selection.points:
        clicked(list(points))


@st.cache_resource(max_entries=64, show_spinner=False)
def _figure(key: str, bench: Bench, depends: Hashable, dark: bool, _build: Callable[[bool], go.Figure]) -> go.Figure:
    """Build a figure once: plotly takes longer to check a figure than the engine takes for its numbers."""
    return _build(dark)


def is_dark() -> bool:
    """Whether the page is shown on a dark ground."""
    return st.context.theme.type == "dark"


def how_to_read(text: str) -> None:
    """Say in one sentence how to read the chart above."""
    st.caption(f"How to read this: {text}")


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
    st.caption("Each chart has a button that saves it as PNG. The address holds this view.")


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
