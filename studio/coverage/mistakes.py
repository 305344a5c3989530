"""The misclassified tests, what each most likely is, and what remains without the doubtful ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.analysis.mistakes import mistakes_of
from idc_core.base.progress import Progress
from idc_core.evidence.mistakes import NEIGHBOURS, Mistakes, Reason
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.state.selection import select
from studio.text import cell_name, count, percent, plural
from studio.widgets import layout

_DOUBTFUL = (Reason.LABEL, Reason.OUTSIDE)


def draw(view: View) -> None:
    """List the misclassified tests with what they most likely are; say what the doubtful ones change."""
    if view.correct is None:
        st.markdown("There is nothing to judge: the tests have no classes, or others than the network.")
        return
    found = Waiting(1).get(
        JobKind("mistakes"), (*view.key, view.setup.layer), "comparing misclassified tests", lambda _: _judged(view, _)
    )
    rows = np.flatnonzero(np.isin(found.tests, view.chosen))
    if not len(rows):
        st.markdown("**No test is misclassified.**")
        return
    reasons = [found.reasons[row] for row in rows]
    numbers = Counter(reasons)
    listed = ", ".join(f"{reason} {count(numbers[reason])}" for reason in Reason if numbers[reason])
    wrong = layout.counted("Misclassified", len(rows), len(view.chosen), "test")
    st.markdown(layout.lead(wrong, f"Most likely {listed}."))
    if found.doubted:
        refused = "" if found.of(Reason.LABEL).size else "Labels cannot be judged here."
        st.markdown(layout.lead(layout.claim(found.finding), refused))
    _without(view, found)
    _list(view, found, rows)
    layout.computed(
        view,
        f"A label is doubted where the network is confident of another class (confident learning) and most of the "
        f"{NEIGHBOURS} closest training inputs are of that class too. Outside the domain: farther from the training "
        "inputs than 99 % of the correctly classified tests. Look at each before you change a label.",
    )


def _judged(view: View, on_progress: Progress) -> Mistakes:
    return mistakes_of(view.test_traces.scores, view.train, view.test)


def _without(view: View, found: Mistakes) -> None:
    """Say accuracy and coverage with and without the tests whose label or place is in doubt."""
    doubtful = np.concatenate([found.of(reason) for reason in _DOUBTFUL])
    kept = view.chosen[~np.isin(view.chosen, doubtful)]
    if view.correct is None or len(kept) in (0, len(view.chosen)):
        return
    codes, total = view.analysis.codes, view.table.total
    before, after = (
        (float(view.correct[tests].mean()), len(np.unique(codes[tests])) / total) for tests in (view.chosen, kept)
    )
    st.markdown(
        f"Without the {plural(len(view.chosen) - len(kept), 'test')} in doubt: accuracy {percent(after[0])} "
        f"({percent(before[0])} with them), IDC {percent(after[1])} ({percent(before[1])})."
    )


def _list(view: View, found: Mistakes, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
    tests = found.tests[rows]
    names = view.test.class_names

    def pick(row: int) -> None:
        select(input=int(view.test.ids[tests[row]]))

    layout.pick_table(
        pd.DataFrame(
            {
                "test": view.test.ids[tests],
                "most likely": [str(found.reasons[row]) for row in rows],
                "class": [names[view.test.targets[test]] for test in tests],
                "classified as": [names[view.analysis.predictions[test]] for test in tests],
                "confidence (%)": 100 * view.analysis.confidence[tests],
                "neighbours of its class (%)": 100 * found.for_label[rows],
                "of the predicted class (%)": 100 * found.for_prediction[rows],
                "cell": [cell_name(cell) for cell in view.analysis.assignments[tests].tolist()],
            }
        ),
        "mistakes",
        pick,
        "Misclassified tests with what they most likely are; choose a row to select the test",
        "auto" if len(rows) < 12 else 420,
        {
            name: st.column_config.NumberColumn(format="%.0f")
            for name in ("confidence (%)", "neighbours of its class (%)", "of the predicted class (%)")
        },
    )
    st.caption("Choose a row to select its test on every page.")
