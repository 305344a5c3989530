"""Downloads: tables, other files, and the tests behind a selection."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.spreadsheets import csv
from idc_core.figures import input_images
from studio.jobs.results import View
from studio.jobs.wording import feature_names, is_series
from studio.text import count
from studio.widgets import exports
from studio.widgets.gallery import caption, digest, written

if TYPE_CHECKING:
    import pandas as pd

MOST_PICTURES = 600
"""Pictures on a contact sheet at most."""


def take_away(
    tables: dict[str, pd.DataFrame], files: dict[str, tuple[str, str, Callable[[], bytes]]] | None = None
) -> None:
    """Offer tables as CSV, and other files, by their labels: name, which gets the setup, kind, and what makes it."""
    st.header("Downloads", anchor=False)
    with st.container(horizontal=True, key="take-away"):
        for name, table in tables.items():
            st.download_button(
                f"{name.replace('-', ' ').capitalize()} (CSV)",
                partial(csv, table),
                file_name=exports.named(f"{name}.csv"),
                mime="text/csv",
                on_click="ignore",
                key=f"csv-{name}",
            )
        for label, (file, mime, make) in (files or {}).items():
            st.download_button(
                label, make, file_name=exports.named(file), mime=mime, on_click="ignore", key=f"file-{file}"
            )


def take_inputs(view: View, positions: NDArray[np.int64], key: str | None = None) -> None:
    """Offer the shown tests as a NumPy archive, and as a contact sheet or a table of texts.

    `key` names the offer on its page; needed where a page offers the same tests twice.
    """
    if not len(positions):
        return
    key = key or f"inputs-{digest(view, positions)}"
    which = "this test" if len(positions) == 1 else f"these {count(len(positions))} tests"
    with st.container(horizontal=True, key=key):
        st.download_button(
            f"Download {which} (npz)",
            lambda: npz(view, positions),
            file_name=exports.named("inputs.npz", view.setup),
            mime="application/octet-stream",
            on_click="ignore",
            key=f"{key}-npz",
        )
        if view.has_pictures:
            few = "" if len(positions) <= MOST_PICTURES else f" of the first {MOST_PICTURES}"
            st.download_button(
                f"Contact sheet{few} (PNG)",
                lambda: _sheet(view, positions),
                file_name=exports.named("inputs.png", view.setup),
                mime="image/png",
                on_click="ignore",
                key=f"{key}-png",
            )
        elif not is_series(view.test):
            words = "Features" if view.test.inputs.dtype.kind == "f" else "Texts" if len(positions) > 1 else "Text"
            st.download_button(
                f"{words} (CSV)",
                lambda: csv(_texts(view, positions)),
                file_name=exports.named("inputs.csv", view.setup),
                mime="text/csv",
                on_click="ignore",
                key=f"{key}-csv",
            )


def npz(view: View, positions: NDArray[np.int64]) -> bytes:
    """Pack some tests: inputs, true classes, predictions, and numbers in the test set."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        inputs=view.test.inputs[positions],
        targets=view.test.targets[positions],
        predictions=view.analysis.predictions[positions],
        ids=view.test.ids[positions],
    )
    return file.getvalue()


def _sheet(view: View, positions: NDArray[np.int64]) -> bytes:
    """Draw the first of some tests on a contact sheet, each with its number, true and predicted class."""
    shown = positions[:MOST_PICTURES]
    captions = [caption(view, place) for place in shown]
    sheet = input_images.contact_sheet(list(input_images.pictures(view.test.inputs[shown])), captions)
    return input_images.png(sheet, view.line)


def _texts(view: View, positions: NDArray[np.int64]) -> pd.DataFrame:
    """List some tests: number, true and predicted class, and the words that the network reads, or the features."""
    if view.test.inputs.dtype.kind == "f":
        flat = view.test.inputs[positions].reshape(len(positions), -1)
        taken = ("test", "true", "predicted")
        names = [f"{name} (feature)" if name in taken else name for name in feature_names(view.test)]
        read: dict[str, object] = dict(zip(names, flat.T, strict=True))
    else:
        read = {"text": [written(view, view.test.inputs[place]) for place in positions]}
    import pandas as pd

    return pd.DataFrame(
        {
            "test": view.test.ids[positions],
            "true": _named(view.test.class_names, view.test.targets[positions]),
            "predicted": _named(
                view.train.class_names,
                (view.analysis.predictions if view.is_classifier else view.analysis.confidence)[positions],
            ),
        }
        | read
    )


def _named(names: tuple[str, ...], values: NDArray[np.generic]) -> list[str | float]:
    """Return classes by name, and the numbers of a regression as they are."""
    return [names[int(value)] if names else float(value) for value in values]
