"""The smallest set of tests that reaches every cell that all of them reach."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from idc_core.base.spreadsheets import csv
from idc_core.coverage.closest_inputs import spread, to_own_cell
from idc_core.coverage.growth import smallest_subset
from studio.coverage.cell_details import DISTANCE, is_pictures
from studio.jobs.results import View
from studio.text import cell_name, count
from studio.widgets import exports, layout

_SHOWN, _SHOWN_TEXTS = 60, 6
"""Tests shown of the set, and the same for texts."""


def draw(view: View) -> None:
    """Show the smallest set of tests with the same coverage."""
    analysis, chosen = view.analysis, view.chosen
    wrong = view.correct is not None and st.toggle(
        "Prefer misclassified tests",
        key="prefer",
        bind="query-params",
        help="Represent a cell by a misclassified test where there is one, else by the test closest to its "
        "centroids. Default off.",
    )
    distances = to_own_cell(
        analysis.test_activations, analysis.centroids, analysis.assignments, spread(analysis.train_activations)
    )
    preferred = ~view.correct[chosen] if wrong and view.correct is not None else None
    subset = chosen[smallest_subset(analysis.codes[chosen], distances[chosen], preferred)]
    fewest = layout.counted("Fewest that reach every covered cell", len(subset), len(chosen), "test")
    st.markdown(layout.lead(fewest, "Each test reaches one cell."))
    layout.gallery(view, subset, _SHOWN if is_pictures(view) else _SHOWN_TEXTS, key="smallest-tests")

    def numbers() -> str:
        listed = {
            "test": view.test.ids[subset],
            "cell": [cell_name(cell) for cell in analysis.assignments[subset].tolist()],
            "distance": distances[subset],
        }
        if view.correct is not None:
            listed["misclassified"] = ~view.correct[subset]
        return csv(pd.DataFrame(listed))

    with st.container(horizontal=True):
        st.download_button(
            f"These {count(len(subset))} tests (npz)",
            lambda: layout.npz(view, subset),
            file_name=exports.named("smallest-subset.npz"),
            mime="application/octet-stream",
            on_click="ignore",
            key="subset-npz",
            help="Inputs, true classes, predictions and numbers of the tests, as NumPy arrays.",
        )
        st.download_button(
            "Their test numbers (CSV)",
            numbers,
            file_name=exports.named("smallest-subset.csv"),
            mime="text/csv",
            on_click="ignore",
            key="subset-csv",
            help="Number of each test in its test set, its cell, and its distance to the cell's centroids.",
        )
    layout.computed(view, f"The set takes one test per cell, the closest to the cell's centroids. {DISTANCE}")
