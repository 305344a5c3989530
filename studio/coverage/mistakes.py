"""The misclassified tests, what each most likely is, and what remains without the doubtful ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.analysis.filtering import SUSPECTS
from idc_core.evidence.mistakes import NEIGHBOURS, Mistakes, Reason
from studio.jobs.jobs import Waiting
from studio.jobs.results import View, judge_mistakes
from studio.state.selection import select
from studio.state.setup import WITHOUT, take
from studio.text import cell_name, count, percent, plural
from studio.widgets import layout

_DOUBTFUL = (Reason.LABEL, Reason.OUTSIDE)


def draw(view: View) -> None:
    """List the misclassified tests with what they most likely are; offer to leave out those in doubt everywhere."""
    if view.correct is None:
        st.markdown("There is nothing to judge: the tests have no classes, or others than the network.")
        return
    found = judge_mistakes(Waiting(1), view.setup.layer, view.card, (view.train, view.test), view.test_traces)
    rows = np.flatnonzero(np.isin(found.tests, view.judged))
    if not len(rows):
        st.markdown(layout.lead(layout.counted("Misclassified", 0, len(view.judged), "test")))
        return
    reasons = [found.reasons[row] for row in rows]
    numbers = Counter(reasons)
    listed = ", ".join(f"{reason} {count(numbers[reason])}" for reason in Reason if numbers[reason])
    wrong = layout.counted("Misclassified", len(rows), len(view.judged), "test")
    st.markdown(layout.lead(wrong, f"Most likely {listed}."))
    if found.doubted:
        refused = "" if found.of(Reason.LABEL).size else "Labels cannot be judged here."
        st.markdown(layout.lead(layout.claim(found.finding), refused))
    if any(numbers[reason] for reason in SUSPECTS):
        _choose_suspects(view, numbers)
        _without(view, found)
    _list(view, found, rows)
    layout.computed(
        view,
        f"A label is doubted where the network is confident of another class (confident learning) and most of the "
        f"{NEIGHBOURS} closest training inputs are of that class too. Outside the domain: farther from the training "
        "inputs than 99 % of the correctly classified tests. Look at each before you change a label.",
    )


def _choose_suspects(view: View, numbers: Counter[Reason]) -> None:
    """Choose which kinds of suspects are left out of what all pages show."""
    st.session_state["without"] = list(view.setup.without)
    st.pills(
        "Leave out of all findings",
        [name for name, reason in WITHOUT.items() if numbers[reason] or name in view.setup.without],
        selection_mode="multi",
        format_func=lambda name: f"{WITHOUT[name].capitalize()} ({count(numbers[WITHOUT[name]])})",
        key="without",
        on_change=take,
        args=("without",),
        help="All pages are recomputed without the misclassified tests of these kinds. Default none.",
    )


def _without(view: View, found: Mistakes) -> None:
    """Say accuracy and coverage with and without the tests that are left out, or that are in doubt."""
    doubtful = np.concatenate([found.of(reason) for reason in _DOUBTFUL])
    kept = view.chosen if view.setup.without else view.judged[~np.isin(view.judged, doubtful)]
    if view.correct is None or len(kept) in (0, len(view.judged)):
        return
    codes, total = view.analysis.codes, view.table.total
    before, after = (
        (float(view.correct[tests].mean()), len(np.unique(codes[tests])) / total) for tests in (view.judged, kept)
    )
    which = "" if view.setup.without else " in doubt"
    st.markdown(
        f"Without the {plural(len(view.judged) - len(kept), 'test')}{which}: accuracy {percent(after[0])} "
        f"({percent(before[0])} with them), IDC {percent(after[1])} ({percent(before[1])}). Only misclassified tests "
        "are suspects, so accuracy without them is an upper bound."
    )


def _list(view: View, found: Mistakes, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
    tests = found.tests[rows]
    names = view.test.class_names
    out = {"left out": np.where(np.isin(tests, view.chosen), "", "yes")} if view.setup.without else {}

    def pick(row: int) -> None:
        select(input=int(view.test.ids[tests[row]]))

    layout.pick_table(
        pd.DataFrame(
            {
                "test": view.test.ids[tests],
                "most likely": [str(found.reasons[row]) for row in rows],
                **out,
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
