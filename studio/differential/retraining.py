"""Whether training with finds helps, beside as many random and adversarial inputs: begun by a button, kept on disk."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import CancelledError, IdcError
from idc_core.figures.robustness import curves
from idc_core.progress import Progress
from studio.differential.search import SearchResult, SearchSettings
from studio.engine.jobs import Waiting
from studio.engine.results import ENGINE, View
from studio.shell import address
from studio.widgets import layout
from studio.widgets.text import percent, signed

if TYPE_CHECKING:
    from idc_core.experiments.retraining_results import Retraining

TRAIN = "retrain"
"""Whether retraining is wanted; in the address."""

SEEDS, EPOCHS = 5, 5


def draw(view: View, result: SearchResult, settings: SearchSettings) -> dict[str, pd.DataFrame]:
    """Offer to retrain the bench's network, and draw what came of it. Returns the table."""
    if not view.is_classifier or not view.is_comparable or len(result.models) < 3:
        st.caption("Labels come from a majority vote. Choose at least three classifiers.")
        return {}
    if not address.read(TRAIN):
        st.button(
            "Retrain with finds",
            key="retrain-begin",
            on_click=address.keep,
            args=(TRAIN, "1"),
            help=f"Train the bench's network for {EPOCHS} epochs more, {SEEDS} times each with nothing added, random "
            "tests, FGSM inputs and finds. Takes a minute on digits and many on MNIST; what is finished is kept.",
        )
        return {}
    try:
        found, votes = retrained(view, result, settings)
    except CancelledError:
        st.info("Stopped. The networks that were finished are kept: start again to go on.")
        return {}
    except IdcError as error:
        st.error(str(error))
        return {}
    return _draw(view, found, votes, (result.key, "retrained"))


def retrained(view: View, result: SearchResult, settings: SearchSettings) -> tuple[Retraining, float]:
    """Retrain, or find the result again; also return which share of the finds the votes label rightly.

    Raises
    ------
    CancelledError
        If the person stopped it.
    IdcError
        If there is nothing to compare.
    """
    prints = tuple(model.card.fingerprint for model in result.models)
    key = (
        ENGINE,
        prints,
        view.train.fingerprint,
        view.test.fingerprint,
        settings.models,
        settings.constraint,
        settings.iterations,
        "retrained",
    )

    def work(report: Progress) -> tuple[Retraining, float]:
        from idc_core.experiments.disagreements import Settings as Added
        from idc_core.experiments.disagreements import compare_finds

        wanted = Added(constraint=settings.constraint, iterations=settings.iterations)
        found, ready = compare_finds(
            result.models, view.train, view.test, wanted, seeds=SEEDS, epochs=EPOCHS, on_progress=report
        )
        if not found.complete:
            raise CancelledError("Nobody waited for the retraining.")
        return found, float(np.mean([ready.votes(seed)[0] for seed in found.seeds]))

    result: tuple[Retraining, float] = Waiting(1).get("trials", key, "retraining, step", work)
    return result


def _draw(view: View, found: Retraining, votes: float, depends: Hashable) -> dict[str, pd.DataFrame]:
    from idc_core.experiments.disagreements import ADDITIONS, TESTS

    mean = found.mean()
    own = found.additions.index("finds")
    tests, finds = found.tests.index("tests"), found.tests.index("finds")
    title = (
        f"Trained with finds, {percent(mean[own, -1, finds])} of new finds are answered rightly instead of "
        f"{percent(mean[own, 0, finds])}; of the tests held back {percent(mean[own, -1, tests])} instead of "
        f"{percent(mean[own, 0, tests])}"
    )
    layout.chart(
        view,
        "retrained",
        lambda dark: curves(found, ADDITIONS, TESTS, title, dark=dark),
        alt=title,
        read="a line is what was added to the training inputs, its height the accuracy on the tests named above the "
        f"panel, averaged over {len(found.seeds)} seeds; the bands are one standard deviation up and down.",
        depends=depends,
    )
    rest = [
        f"{ADDITIONS[name]} {signed(100 * one.mean[tests])} "
        f"({signed(100 * one.low[tests])} to {signed(100 * one.high[tests])})"
        for name in found.additions
        if name != "finds" and (one := found.difference("finds", name))
    ]
    added = found.added("finds")
    st.markdown(
        f"On the tests held back, finds against {'; '.join(rest)} percentage points (paired over the seeds, 95 % "
        f"interval). {min(added)} to {max(added)} inputs were added; the vote labels {percent(votes)} of the finds as "
        "their seeds are."
    )
    return {"retraining": pd.DataFrame(found.rows())}
