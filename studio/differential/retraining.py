"""Retraining with disagreements, against as many random and adversarial inputs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, IdcError
from idc_core.figures.robustness import curves
from studio.differential.search import SearchResult, SearchSettings
from studio.jobs.jobs import JobKind
from studio.jobs.results import View
from studio.text import literal, percent, signed
from studio.widgets import layout
from studio.widgets.retraining import RetrainingRun, watch

if TYPE_CHECKING:
    from idc_core.experiments.retraining import RetrainingPlan
    from idc_core.experiments.retraining_results import Retraining

_SEEDS, _EPOCHS = 5, 5


def draw(view: View, result: SearchResult, settings: SearchSettings) -> None:
    """Offer to retrain the setup's network, and draw the comparison."""
    if not len(result.disagreements):
        st.caption("There is no disagreement to train with.")
        return
    if not view.is_classifier or not view.is_comparable or len(result.models) < 3:
        st.caption("Labels come from a majority vote: choose at least three classifiers.")
        return
    run = _disagreement_run(view, result, settings)
    if run.left:
        st.markdown(
            f"Train the network for {_EPOCHS} more epochs, {_SEEDS} times each with nothing added, random tests, FGSM "
            "inputs and disagreements. These are searched for anew from all tests, with the constraint and the steps "
            "above and nothing else. This takes a minute on digits, much longer on MNIST. Finished networks are kept."
        )
    watch(run)
    if run.left:
        return
    try:
        retraining, votes = run.measured(JobKind("trials", is_long=True), _measure)
    except CancelledError:
        st.info("Stopped. The finished networks are kept.")
        return
    except IdcError as error:
        st.error(literal(error))
        return
    _draw(view, retraining, votes, (result.key, "retrained"))


def _disagreement_run(view: View, result: SearchResult, settings: SearchSettings) -> RetrainingRun:
    """Return the run for the models, the constraint and the steps of a search."""
    from idc_core.experiments import disagreements

    recipe = disagreements.DisagreementSettings(constraint=settings.constraint, iterations=settings.iterations)
    store = disagreements.disagreement_store(result.models, view.train, view.test, recipe, _EPOCHS)
    models, train, test, epochs = result.models, view.train, view.test, _EPOCHS

    def prepare(report: Progress) -> RetrainingPlan:
        report(0, 1, "searching for disagreements to add")
        return disagreements.prepare_disagreements(models, train, test, recipe, epochs=epochs, store=store)

    return RetrainingRun(store.path, tuple(disagreements.ADDITIONS), tuple(range(_SEEDS)), prepare, starts=False)


def _measure(plan: RetrainingPlan, report: Progress) -> tuple[Retraining, float]:
    """Return the result, and the share of disagreements whose vote is the true class."""
    from idc_core.experiments.disagreements import DisagreementPlan

    assert isinstance(plan, DisagreementPlan)
    retraining = plan.run(_SEEDS, on_progress=report)
    if not retraining.complete:
        raise CancelledError("Nobody waited for the retraining.")
    return retraining, float(np.mean([plan.votes(seed)[0] for seed in retraining.seeds]))


def _draw(view: View, found: Retraining, votes: float, depends: Hashable) -> None:
    from idc_core.experiments.disagreements import ADDITIONS, TESTS

    tests, new = found.tests.index("tests"), found.tests.index("finds")
    claim = "Accuracy on new disagreements with disagreements added"
    title = layout.claim(found.finding("finds", "nothing", new, claim, "with nothing added"))
    layout.chart(
        view,
        "retrained",
        lambda dark: curves(found, ADDITIONS, TESTS, title, dark=dark),
        alt=title,
        read=f"Each line is the mean of {len(found.seeds)} seeds, each band one standard deviation to either side.",
        depends=depends,
        table=pd.DataFrame(found.rows()),
    )
    rest = [
        f"{ADDITIONS[name]} {signed(100 * difference.mean[tests])} "
        f"({signed(100 * difference.low[tests])} to {signed(100 * difference.high[tests])})"
        for name in found.additions
        if name != "finds" and (difference := found.difference("finds", name))
    ]
    added = found.added("finds")
    st.markdown(
        f"Held-out tests, disagreements against {'; '.join(rest)} percentage points (paired over the seeds, 95 % "
        f"confidence interval). {min(added)} to {max(added)} inputs were added. The majority vote is the true class "
        f"for {percent(votes)} of the disagreements."
    )
    layout.computed(
        view,
        "One half of the tests makes the additions, the other half is held out. New disagreements are searched from "
        "held-out tests. The class of an added disagreement is its majority vote.",
    )
