"""What to do about confused classes: their inputs as a suite, for the laboratory and for training."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.confusion.pairs import confused_in
from idc_core.errors import IdcError
from pages.common import layout
from pages.common.classes import Looked
from pages.common.registry import PAGES
from pages.common.results import View
from pages.common.text import plural

SAID = "confused-suite-said"
"""In the session: what became of keeping the suite."""


def draw(view: View, looked: Looked) -> None:
    """Offer the tests confused in the reported pairs as a suite."""
    if looked.positions is None or looked.evidence.true is None:
        return
    found = looked.found
    pairs = found.suspected
    reported = pairs[found.distance[pairs[:, 0], pairs[:, 1]] < found.confusion_cutoff]
    rows = looked.positions[confused_in(looked.evidence, reported)]
    wrong = int((np.asarray(looked.evidence.true) != np.asarray(looked.evidence.predicted)).sum())
    st.header("What to do about it", anchor=False)
    st.markdown(
        f"In the {plural(len(reported), 'reported pair')}, **{plural(len(rows), 'test')}** of {wrong:,} misclassified "
        f"{'is' if len(rows) == 1 else 'are'} of one class and answered as the other."
    )
    if not len(rows):
        st.caption("There is nothing to make a suite of.")
        return
    with st.container(horizontal=True):
        st.button(
            "Keep them as a suite", key="keep-confused", on_click=_keep, args=(view, looked, rows, len(reported)),
            help="Writes these tests to this machine, so that they can be chosen wherever suites are.",
        )  # fmt: skip
        for name in ("suites", "testsets", "robustness"):
            if name in PAGES:
                st.page_link(PAGES[name].file, label=f"{PAGES[name].title} page", icon=PAGES[name].icon)
    if said := st.session_state.pop(SAID, ""):
        st.info(said)
    st.caption(
        "Training on what is confused may part the classes again; tests that were trained on are no measure any more, "
        "so look at others before and after."
    )
    layout.take_inputs(view, rows, key="confused-inputs")


def _keep(view: View, looked: Looked, rows: NDArray[np.int64], pairs: int) -> None:
    from idc_core.suites.kept import keep
    from idc_core.suites.suite import Step

    label = f"{plural(len(rows), 'test')} of {view.bench.data} confused by {view.bench.model}"
    step = Step(
        "confused",
        f"{plural(len(rows), 'test')} confused in {plural(pairs, 'pair')} that were suspected without labels",
        {"data": view.test.fingerprint, "threshold": looked.found.threshold, "deviations": looked.found.deviations},
        model=view.model.card.fingerprint,
    )
    try:
        keep(label, view.test.inputs[rows], view.test.targets[rows], [step], like=view.test)
    except IdcError as error:
        st.session_state[SAID] = str(error)
    else:
        st.session_state[SAID] = f"Kept as \u201c{label}\u201d."
