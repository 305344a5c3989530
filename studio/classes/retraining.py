"""What to do about confused classes: keep their inputs as a suite, and retrain with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.base.progress import Progress
from idc_core.confusion.class_pair import confused_in
from idc_core.errors import CancelledError, IdcError
from studio.classes.class_errors import Looked
from studio.jobs.jobs import JobKind
from studio.jobs.results import View
from studio.jobs.wording import tests_name
from studio.shell.pages import PAGES, draw_link
from studio.text import count, literal, percent, plural
from studio.widgets import layout
from studio.widgets.keep_suite import keep_row, made_of_tests
from studio.widgets.retraining import RetrainingRun, watch

if TYPE_CHECKING:
    from idc_core.experiments.confusion_repair import Repair
    from idc_core.experiments.retraining import RetrainingPlan

_SEEDS = 2

_SHOWN, _TEXTS = 20, 6
"""Confused tests that are shown: pictures, and texts, which take a row each."""

_ASKED = "repair-asked"
"""In the session: what retraining was asked for."""


def draw(view: View, looked: Looked) -> None:
    """Offer the confused tests as a test set, and retrain with them."""
    _draw_offers(view, looked)
    layout.computed(view, "A copy is trained further on the training inputs and the added ones, with the same seed.")


def _draw_offers(view: View, looked: Looked) -> None:
    """Offer the tests confused in the reported pairs as a suite."""
    if looked.positions is None:
        st.caption("Custom predictions come without a network to retrain.")
        return
    if looked.evidence.true is None:
        st.caption("Retraining needs tests with the classes of the network: these have none.")
        return
    from idc_core.suites import ProvenanceStep

    errors = looked.found
    pairs = errors.suspected
    reported = pairs[errors.distance[pairs[:, 0], pairs[:, 1]] < errors.confusion_cutoff]
    rows = looked.positions[confused_in(looked.evidence, reported)]
    wrong = int((np.asarray(looked.evidence.true) != np.asarray(looked.evidence.predicted)).sum())
    st.markdown(
        f"In the {plural(len(reported), 'reported pair')}, {plural(len(rows), 'test')} of {wrong:,} misclassified "
        f"{'is' if len(rows) == 1 else 'are'} of one class and classified as the other."
    )
    if not len(rows):
        st.caption("There is nothing to make a suite of.")
        return
    pairs_said = f"{plural(len(reported), 'pair')} that were suspected without labels"
    step = ProvenanceStep(
        "confused",
        f"{plural(len(rows), 'test')} confused in {pairs_said}",
        {"threshold": errors.threshold, "deviations": errors.deviations},
        model=view.card.fingerprint,
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        keep_row(
            f"{plural(len(rows), 'test')} of {tests_name(view.test)} confused by {view.setup.model}",
            len(rows),
            "keep-confused",
            lambda: made_of_tests(view, view.test.inputs[rows], view.test.targets[rows], rows, step),
        )
        for name in ("testsets", "robustness"):
            draw_link(name, f"{PAGES[name].title} page")
    layout.gallery(view, rows, _SHOWN if view.has_pictures else _TEXTS, key="confused-tests")
    layout.take_inputs(view, rows, key="confused-inputs")
    _draw_repair(view, looked)


def _draw_repair(view: View, looked: Looked) -> None:
    """Retrain with the confused inputs of one half of the tests, when asked to, and measure the other half."""
    key = (looked.key, view.train.fingerprint)
    st.header("Does training on them help?", anchor=False)
    epochs = st.slider(
        "Epochs of retraining",
        1,
        5,
        1,
        key="repair-epochs",
        width=260,
        help="How many passes over the training data each network is trained further. From 1 to 5; default 1.",
    )
    steps = epochs * len(view.train) * 3 * _SEEDS
    tests = "all tests, those that the filter leaves out included" if view.setup.filter_words else "the tests"
    st.caption(
        f"{3 * _SEEDS} copies of the network are trained further: with the inputs confused in the reported pairs of a "
        f"random half of {tests}, with as many random ones of that half, and with nothing added; "
        f"{count(steps)} inputs in all. The other half is measured."
    )
    if st.button("Retrain and compare", key="repair", help="Can take minutes for large training data; can be stopped."):
        st.session_state[_ASKED] = (key, epochs)
    if st.session_state.get(_ASKED) != (key, epochs):
        return

    run = _repair_run(view, looked, epochs)
    watch(run)
    if run.left:
        return
    try:
        done: Repair = run.measured(JobKind("repairs"), _measure)
    except CancelledError:
        st.session_state.pop(_ASKED)
        return
    except IdcError as error:
        st.warning(literal(error))
        return
    _draw_done(done)


def _repair_run(view: View, looked: Looked, epochs: int) -> RetrainingRun:
    """Return the run that adds the inputs confused in the reported pairs."""
    from idc_core.experiments.confusion_repair import ADDITIONS, RepairPlan, prepare_repair
    from idc_core.store.cache import ArrayFolder, records_folder
    from idc_core.suites.suite import content_address

    errors, model, train, test, layers = looked.found, view.model, view.train, view.test, looked.layers
    settings = {"threshold": errors.threshold, "deviations": errors.deviations}
    told = sorted({**settings, "epochs": epochs}.items())
    about = (model.card.fingerprint, train.fingerprint, test.fingerprint, layers, told)
    store = ArrayFolder(records_folder() / "repair" / content_address(*about))

    def prepare(report: Progress) -> RepairPlan:
        return prepare_repair(model, train, test, layers, store=store, on_progress=report, epochs=epochs, **settings)

    return RetrainingRun(store.path, ADDITIONS, tuple(range(_SEEDS)), prepare)


def _measure(plan: RetrainingPlan, report: Progress) -> Repair:
    from idc_core.experiments.confusion_repair import RepairPlan

    assert isinstance(plan, RepairPlan)
    return plan.measured(plan.run(_SEEDS, on_progress=report))


def _draw_done(done: Repair) -> None:
    """Show accuracy and confusion before and after."""
    rows = [("before", done.before[None])]
    labels = ("nothing added", "confused inputs added", "as many random inputs added")
    rows += list(zip(labels, done.after.values(), strict=True))
    means = {label: 100 * values.mean(0) for label, values in rows}
    confused, nothing, random = (means[label][1] for label in (labels[1], labels[0], labels[2]))
    st.markdown(
        f"On the {plural(done.measured, 'test')} of the other half, the mean confusion of the "
        f"{plural(len(done.pairs), 'reported pair')} was {percent(means['before'][1] / 100)}; after retraining with "
        f"the {plural(done.added, 'confused input')} of the first half it is {percent(confused / 100)}, with "
        f"nothing added {percent(nothing / 100)}, with as many random ones {percent(random / 100)}."
    )
    columns = ("accuracy (%)", "confusion of reported pairs (%)", "of the other pairs (%)")
    table = {
        "network": list(means),
        **{name: [means[network][i] for network in means] for i, name in enumerate(columns)},
    }
    spread = [f"{100 * np.ptp(values[:, 1]):.2f}" if len(values) > 1 else "" for _, values in rows]
    st.dataframe(
        pd.DataFrame(table | {"between the seeds (%)": spread}),
        hide_index=True,
        column_config={name: st.column_config.NumberColumn(format="%.2f") for name in columns}
        | {"between the seeds (%)": st.column_config.TextColumn(alignment="right")},
        alt="Accuracy and confusion before and after retraining",
    )
    st.caption(
        f"Means over {plural(len(done.after['nothing']), 'seed')}; the last column is how far the seeds lie apart in "
        "the confusion of the reported pairs. A difference smaller than that says nothing."
    )
