"""Coverage that disagreements add to the tests, by IDC and other criteria."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.coverage import CRITERIA
from idc_core.errors import CancelledError, IdcError
from idc_core.evidence.additions import addition
from idc_core.figures.criteria import suite_scores
from studio.differential.search import SearchResult
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.state.choices import choose_or_usual
from studio.text import count, literal, percent, plural
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.coverage.registry import Criterion
    from idc_core.tracing.traces import Traces

_MEASURED = "measured"
"""Name of the control, also in the address."""


def draw(view: View, result: SearchResult) -> None:
    """Draw the coverage of the tests before and after disagreements are added."""
    if not len(result.disagreements):
        st.caption("There is no disagreement to add.")
        return
    gained = _gain(view, result.disagreements.inputs, _choose_measured(), result.key)
    for problem in gained.problems:
        st.warning(problem)
    if not gained.scores:
        return
    names = list(gained.scores)
    labels = [name.upper() for name in names]
    scores = np.array([gained.scores[name] for name in names])
    tests, added = len(view.chosen), len(result.disagreements)
    claim = f"New cells from {plural(added, 'disagreement')}"
    finding = addition(claim, [gained.new_cells], view.table.counts, view.table.total, added)
    title = layout.claim(finding)
    suites = [f"Tests ({count(tests)})", f"With disagreements ({count(tests + added)})"]
    texts = [
        [percent(score) if gained.shares[name] else f"{score:,.3g}" for score in gained.scores[name]] for name in names
    ]
    layout.chart(
        view,
        "search-coverage",
        lambda dark: suite_scores(scores, labels, suites, texts, title, dark=dark),
        alt=title,
        read="Each panel has its own scale. Disagreements are few, so gains are small.",
        depends=(result.key, tuple(names)),
        table=pd.DataFrame({"criterion": labels, "before": scores[:, 0], "after": scores[:, 1]}),
    )
    layout.explain_criteria()
    layout.computed(
        view,
        f"Coverage of layer {view.setup.layer} by the tests, and by tests and disagreements. Criteria keep their "
        "default parameters.",
    )


def _choose_measured() -> list[str]:
    """Choose the criteria that coverage is measured by; IDC always is."""
    fast = [name for name in CRITERIA if not CRITERIA[name].card.pairwise]
    slow = layout.names([name.upper() for name in CRITERIA if CRITERIA[name].card.pairwise])
    chosen = choose_or_usual(
        partial(st.pills, selection_mode="multi"),
        "Criteria",
        {name: name.upper() for name in CRITERIA},
        fast,
        _MEASURED,
        help=f"Criteria to measure; IDC always is. {slow} compare tests pairwise and take seconds. "
        f"Default {layout.names([name.upper() for name in fast])}.",
    )
    return [name for name in CRITERIA if name == "idc" or name in chosen]


@dataclass(frozen=True, eq=False)
class _CoverageGain:
    """Coverage of the tests before and after disagreements are added."""

    scores: dict[str, tuple[float, float]]
    """By criterion, each in its own unit."""
    shares: dict[str, bool]
    """Whether a criterion's score is a share."""
    new_cells: int
    """Cells of IDC that only disagreements reach."""
    problems: list[str]
    """A sentence for each criterion that is left out."""


def _gain(view: View, inputs: NDArray[np.float32], names: Sequence[str], depends: Hashable) -> _CoverageGain:
    """Measure by criteria what some inputs add to the chosen tests, in the setup's layer; show progress."""
    from idc_core.tracing.traces import Traces

    waiting, layer = Waiting(1 + len(names)), view.setup.layer
    scores: dict[str, tuple[float, float]] = {}
    shares: dict[str, bool] = {}
    problems: list[str] = []

    def passed(report: Progress) -> Traces:
        from idc_core.tracing.trace import collect

        return collect(view.model, inputs, [layer], on_progress=report)

    try:
        setup = (view.card.fingerprint, layer)
        added = waiting.get(JobKind("suites"), (*setup, "search", depends), "tracing the disagreements", passed)
        before = view.test_traces.only(view.chosen)
        after = Traces.joined(before, added)
        cells = [view.analysis.cell_profiles(traces.activations[layer]) for traces in (before, after)]
        scores["idc"], shares["idc"] = (cells[0].coverage(), cells[1].coverage()), True
        new = len(np.unique(cells[1].targets)) - len(np.unique(cells[0].targets))
        for name in names:
            if name != "idc":
                _measure(waiting, view, name, (before, after), depends, (scores, shares, problems))
    except CancelledError:
        left = [name.upper() for name in names if name not in scores]
        problems.append(f"Stopped before these were measured: {', '.join(left)}.")
        new = 0 if "idc" not in scores else new
    return _CoverageGain(scores, shares, new, problems)


def _measure(
    waiting: Waiting,
    view: View,
    name: str,
    suites: tuple[Traces, Traces],
    depends: Hashable,
    into: tuple[dict[str, tuple[float, float]], dict[str, bool], list[str]],
) -> None:
    """Add the scores of one criterion, or a sentence on why it has none."""
    from idc_core.coverage.agreement import score_suites
    from idc_core.coverage.streamed import TargetCriterion

    card = CRITERIA[name].card

    def work(report: Progress) -> tuple[float, float] | str:
        make: Callable[..., Criterion] = CRITERIA[name]  # each has a constructor of its own
        try:
            criterion = make(view.model, view.setup.layer)
            scores = score_suites([criterion], view.train_traces, suites, on_progress=report)[0]
        except CancelledError:
            raise
        except IdcError as error:
            return f"{card.label} is left out. {literal(error)}"
        return float(scores[0]), float(scores[1])

    key = (*view.key, view.setup.layer, view.chosen_key, name, "search", depends)
    answer = waiting.get(JobKind("scores", kept=192), key, f"measuring {card.label}", work)
    if isinstance(answer, str):
        into[2].append(answer)
    else:
        into[0][name] = answer
        into[1][name] = issubclass(CRITERIA[name], TargetCriterion)
