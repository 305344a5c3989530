"""The criteria's scores for the tests of a setup: one job per criterion, and one per criterion and other suite."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import (
    CriterionResult,
    Subsets,
    evaluate_criteria,
    evaluate_profiles,
    random_subsets,
    score_suites,
)
from idc_core.coverage.prioritisation import FaultDetection, Order, detect_faults, orders_by
from idc_core.errors import CancelledError, IdcError
from idc_core.progress import Progress
from studio.criteria import compared_suites
from studio.criteria.compared_suites import OtherSuite
from studio.engine.jobs import Waiting
from studio.engine.results import View
from studio.text import literal, percent

MANY_PAIRS = 20_000_000
"""Pairs of a test and a training input beyond which pairwise criteria wait until they are chosen."""

CriterionSettings = dict[str, Any]


def pairwise() -> list[str]:
    """Return the criteria that compare every test with many other inputs."""
    return [name for name, kind in CRITERIA.items() if kind.card.pairwise]


def of_classes() -> list[str]:
    """Return the criteria that compare classes."""
    return [name for name, kind in CRITERIA.items() if kind.card.needs_classes]


def slow(view: View) -> list[str]:
    """Return the criteria that take seconds on this setup."""
    return pairwise() if len(view.train) * len(view.chosen) > MANY_PAIRS else []


def misfits(view: View) -> list[str]:
    """Return the criteria that are not defined on this setup."""
    return [] if view.is_classifier else of_classes()


def usual(view: View) -> list[str]:
    """Return the criteria that are measured by default."""
    return [name for name in CRITERIA if name not in (*slow(view), *misfits(view))]


@dataclass(frozen=True, eq=False)
class MeasuredCriteria:
    """The criteria's results on a setup, by criterion; `scores` of a result holds the other suites too.

    `orders` are of the chosen tests, uncertainties last; `suites` are numbers of tests, parts first; `subsets` grow at
    random; `problems` has a sentence for each criterion or suite that is left out; all depends on `key`.
    """

    results: dict[str, CriterionResult]
    orders: list[Order]
    suites: dict[str, int]
    subsets: Subsets
    problems: list[str]
    key: Hashable


def measure_criteria(
    view: View, names: Sequence[str], settings: dict[str, CriterionSettings], others: Sequence[OtherSuite]
) -> MeasuredCriteria:
    """Measure criteria on a setup's tests, their parts and other suites, with progress; Stop leaves the rest out."""
    waiting = Waiting(len(names) * (1 + len(others)) + 3 * len(others))
    parts = compared_suites.parts(view)
    results: dict[str, CriterionResult] = {}
    orders: list[Order] = []
    problems: list[str] = []
    counts = {name: len(positions) for name, positions in parts.items()}
    try:
        for name in names:
            answer = _evaluate(waiting, view, name, settings[name])
            if isinstance(answer, str):
                problems.append(answer)
            else:
                results[name], own = answer
                orders += own
        for other in others:
            _add(waiting, view, other, settings, results, counts, problems)
    except CancelledError:
        left = [CRITERIA[name].card.label for name in names if name not in results]
        problems.append(f"Stopped before it was finished{': ' + ', '.join(left) if left else ''}.")
    scores = view.test_traces.scores[view.chosen]
    orders += orders_by({}, scores if view.is_classifier else None)
    key = (_setup_key(view), tuple(results), repr(settings), tuple(counts.items()))
    return MeasuredCriteria(results, orders, counts, random_subsets(len(view.chosen)), problems, key)


def _setup_key(view: View) -> tuple[Hashable, ...]:
    return (*view.key, view.setup.layer, view.setup.classes)


def _depends(view: View, name: str, settings: CriterionSettings) -> tuple[Hashable, ...]:
    own: tuple[Hashable, ...] = tuple(settings.items())
    if name == "idc":
        own = (view.analysis.m, *view.analysis.settings.items())
    return (*_setup_key(view), name, *own)


def _evaluate(
    waiting: Waiting, view: View, name: str, settings: CriterionSettings
) -> tuple[CriterionResult, list[Order]] | str:
    layer, kind = view.setup.layer, CRITERIA[name]
    make: Any = kind  # each has a constructor of its own

    def work(report: Progress) -> tuple[CriterionResult, list[Order]] | str:
        parts, subsets = compared_suites.parts(view), random_subsets(len(view.chosen))
        tests = view.test_traces.only(view.chosen)
        if name == "idc":
            result = evaluate_profiles(view.analysis.cell_profiles(tests.activations[layer]), parts, subsets)
        else:
            try:
                one = make(view.model, layer, **settings)
                (result,) = evaluate_criteria([one], view.train_traces, tests, parts, subsets, on_progress=report)
            except CancelledError:
                raise
            except IdcError as error:
                # Kept like a result: it would be the same the next time.
                return f"{kind.card.label} is left out. {literal(error)}"
        return result, orders_by({name: result.profiles})

    key = _depends(view, name, settings)
    found: tuple[CriterionResult, list[Order]] | str
    found = waiting.get("criteria", key, f"measuring {kind.card.label}", work, kept=48)
    return found


def _add(
    waiting: Waiting,
    view: View,
    other: OtherSuite,
    settings: dict[str, CriterionSettings],
    results: dict[str, CriterionResult],
    counts: dict[str, int],
    problems: list[str],
) -> None:
    """Add the scores of another suite to the results."""
    try:
        fingerprint, traces = other.open(waiting, view)
    except CancelledError:
        raise
    except IdcError as error:
        problems.append(f"{other.label} is left out. {literal(error)}")
        return
    if not len(traces.scores):
        problems.append(f"{other.label} has no test of class {view.class_label}, so it is left out.")
        return
    layer = view.setup.layer

    def score(name: str) -> float:
        make: Any = CRITERIA[name]

        def work(report: Progress) -> float:
            if name == "idc":
                return view.analysis.cell_profiles(traces.activations[layer]).coverage()
            one = make(view.model, layer, **settings[name])
            return float(score_suites([one], view.train_traces, [traces], on_progress=report)[0, 0])

        key = (*_depends(view, name, settings[name]), other.name, fingerprint)
        label = f"measuring {CRITERIA[name].card.label} of {other.label}"
        value: float = waiting.get("scores", key, label, work, kept=192)
        return value

    for name, result in results.items():
        results[name] = replace(result, scores={**result.scores, other.name: score(name)})
    counts[other.name] = len(traces.scores)


def faults(view: View, measured: MeasuredCriteria) -> FaultDetection | None:
    """Return how early every order detects the misclassified tests; None without misclassified tests or classes."""
    if view.correct is None or view.correct[view.chosen].all():
        return None
    return detect_faults(measured.orders, ~view.correct[view.chosen])


def written(name: str, score: float) -> str:
    """Write a score in its criterion's unit."""
    if np.isnan(score):
        return ""
    if not CRITERIA[name].card.unit:
        return percent(score)
    return f"{score:,.0f}" if score == round(score) else f"{score:.3g}"
