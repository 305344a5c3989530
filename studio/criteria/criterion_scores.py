"""The criteria's scores for the tests of a setup, what is counted from them, and the scores of other suites.

One job per criterion, and one per criterion and other suite; growth and orders are counted only where they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.base.parameters import Value
from idc_core.base.progress import Progress
from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import (
    CriterionResult,
    Subsets,
    equal_suites,
    evaluate_criteria,
    evaluate_profiles,
    random_subsets,
    score_suites,
)
from idc_core.coverage.prioritisation import Order, orders_by
from idc_core.errors import CancelledError, IdcError
from idc_core.evidence.correlations import RankCorrelations, rank_correlations
from idc_core.runs import criterion_key
from studio.criteria import compared_suites
from studio.criteria.compared_suites import OtherSuite
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.coverage.registry import Criterion

_ORDERS = JobKind("orders", kept=48)

CriterionSettings = dict[str, Value]

MOST_DROPPED = 2_000
"""Of more tests, orders by passes with dropout are left out: each pass runs them all again."""


@dataclass(frozen=True, eq=False)
class MeasuredCriteria:
    """The criteria's results on a setup, by criterion; `scores` of a result holds the suites.

    `suites` are numbers of tests, parts first; `problems` has a sentence for each criterion or suite that is left out;
    `settings` are the parameters of each criterion; all depends on `key`.
    """

    results: dict[str, CriterionResult]
    suites: dict[str, int]
    settings: dict[str, CriterionSettings]
    problems: list[str]
    key: Hashable


def measure_criteria(view: View, names: Sequence[str], settings: dict[str, CriterionSettings]) -> MeasuredCriteria:
    """Measure criteria on a setup's tests and their parts, with progress; Stop leaves the rest out."""
    waiting = Waiting(len(names))
    results: dict[str, CriterionResult] = {}
    problems: list[str] = []
    try:
        for name in names:
            answer = _evaluate(waiting, view, name, settings[name])
            if isinstance(answer, str):
                problems.append(answer)
            else:
                results[name] = answer
    except CancelledError:
        left = [CRITERIA[name].card.label for name in names if name not in results]
        problems.append(f"Stopped before it was finished{': ' + ', '.join(left) if left else ''}.")
    counts = {name: len(positions) for name, positions in compared_suites.parts(view).items()}
    return MeasuredCriteria(results, counts, settings, problems, (_setup_key(view), tuple(results), repr(settings)))


def with_suites(view: View, measured: MeasuredCriteria, others: Sequence[OtherSuite]) -> MeasuredCriteria:
    """Add other suites to the scores, with progress; `problems` are those of the suites."""
    waiting = Waiting(len(others) * (3 + len(measured.results)))
    results, counts = dict(measured.results), dict(measured.suites)
    problems: list[str] = []
    try:
        for other in others:
            _add(waiting, view, other, measured.settings, results, counts, problems)
    except CancelledError:
        problems.append("Stopped before all suites were measured.")
    key = (measured.key, tuple(counts.items()))
    return replace(measured, results=results, suites=counts, problems=problems, key=key)


@dataclass(frozen=True, eq=False)
class Agreement:
    """Scores of random suites of equal size, `size` tests each, and how IDC correlates with the other criteria.

    `scores` (suites,) are by criterion; `found` is None where IDC or all others are missing.
    """

    size: int
    scores: dict[str, Floats]
    found: RankCorrelations | None


def agree(view: View, measured: MeasuredCriteria) -> Agreement:
    """Score suites of equal size by all criteria and correlate them, with progress; CancelledError after Stop."""
    names, settings = list(measured.results), measured.settings

    def work(report: Progress) -> Agreement:
        suites = equal_suites(len(view.chosen))
        scores = {}
        for name, result in measured.results.items():
            falls = CRITERIA[name].card.can_fall
            scored = _measured(view, name, settings[name], {}, report) if falls else result
            scores[name] = scored.of_suites(suites, on_progress=report)
        found = None
        if len(names) > 1 and names[0] == "idc":
            others = np.stack([scores[name] for name in names[1:]])
            idc = measured.results["idc"].of_suites
            found = rank_correlations(idc, others, suites, len(view.chosen), on_progress=report)
        return Agreement(suites.shape[1], scores, found)

    key = tuple(_depends(view, name, settings[name]) for name in names)
    return Waiting(1).get(JobKind("agreements"), key, "scoring suites of equal size", work)


@dataclass(frozen=True, eq=False)
class Growth:
    """The criteria's scores of random subsets that grow, (orders, sizes) by criterion."""

    subsets: Subsets
    scores: dict[str, Floats]


def grow(view: View, measured: MeasuredCriteria) -> Growth:
    """Score growing random subsets of a setup's tests, with progress; CancelledError after Stop."""
    waiting, subsets = Waiting(len(measured.results)), random_subsets(len(view.chosen))

    def one(name: str, result: CriterionResult) -> Floats:
        card, settings = CRITERIA[name].card, measured.settings[name]

        def work(report: Progress) -> Floats:
            scored = _measured(view, name, settings, {}, report) if card.can_fall else result
            return scored.growth(subsets, on_progress=report)

        key = _depends(view, name, settings)
        return waiting.get(JobKind("growth", kept=48), key, f"growth of {card.label}", work)

    return Growth(subsets, {name: one(name, result) for name, result in measured.results.items()})


def order_tests(view: View, measured: MeasuredCriteria) -> dict[str, Order]:
    """Order a setup's tests by every criterion, uncertainties last; by key. CancelledError after Stop."""
    waiting = Waiting(len(measured.results) + 1)

    def by(name: str, result: CriterionResult) -> list[Order]:
        key = _depends(view, name, measured.settings[name])
        doing = f"ordering the tests by {CRITERIA[name].card.label}"
        return waiting.get(_ORDERS, key, doing, lambda _: orders_by({name: result.profiles}))

    orders = [order for name, result in measured.results.items() for order in by(name, result)]
    if view.is_classifier:
        orders += orders_by({}, view.test_traces.scores[view.chosen])
        if len(view.chosen) <= MOST_DROPPED:
            orders += _by_dropout(waiting, view)
    return {order.key: order for order in orders}


def _by_dropout(waiting: Waiting, view: View) -> list[Order]:
    """Order tests by passes with dropout; not at all where the network has none."""

    def work(report: Progress) -> list[Order]:
        from idc_core.coverage.mc_dropout import dropout_layers, dropout_scores

        if not dropout_layers(view.model):
            return []
        return orders_by({}, sampled=dropout_scores(view.model, view.test.inputs[view.chosen], on_progress=report))

    key = (view.card.fingerprint, view.test.fingerprint, view.chosen_key, "dropout")
    return waiting.get(_ORDERS, key, "running the tests with dropout", work)


def _setup_key(view: View) -> tuple[Hashable, ...]:
    return (*view.key, view.setup.layer, view.chosen_key)


def _depends(view: View, name: str, settings: CriterionSettings) -> tuple[Hashable, ...]:
    own = {"m": view.analysis.m, **view.analysis.settings} if name == "idc" else settings
    return criterion_key(view.key, view.setup.layer, view.chosen_key, name, own)


def _evaluate(waiting: Waiting, view: View, name: str, settings: CriterionSettings) -> CriterionResult | str:
    label = CRITERIA[name].card.label

    def work(report: Progress) -> CriterionResult | str:
        try:
            result = _measured(view, name, settings, compared_suites.parts(view), report)
        except CancelledError:
            raise
        except IdcError as error:
            # Kept like a result: it would be the same the next time.
            return f"{label} is left out. {literal(error)}"
        # A score that can fall is no count of targets: its result has the fitted criterion, which cannot be kept.
        return replace(result, scorer=None)

    return waiting.get(JobKind("criteria", kept=48), _depends(view, name, settings), f"measuring {label}", work)


def _measured(
    view: View, name: str, settings: CriterionSettings, parts: Mapping[str, NDArray[np.int64]], report: Progress
) -> CriterionResult:
    """Measure a criterion on a setup's tests and on parts of them."""
    layer, tests = view.setup.layer, view.test_traces.only(view.chosen)
    if name == "idc":
        return evaluate_profiles(view.analysis.cell_profiles(tests.activations[layer]), parts)
    make: Callable[..., Criterion] = CRITERIA[name]  # each has a constructor of its own
    criterion = make(view.model, layer, **settings)
    (result,) = evaluate_criteria([criterion], view.train_traces, tests, parts, on_progress=report)
    return result


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
        problems.append(f"{literal(other.label)} is left out. {literal(error)}")
        return
    if not len(traces.scores):
        problems.append(f"{literal(other.label)} has no test of class {literal(view.class_label)}, so it is left out.")
        return
    layer = view.setup.layer

    def score(name: str) -> float:
        make: Callable[..., Criterion] = CRITERIA[name]

        def work(report: Progress) -> float:
            if name == "idc":
                return view.analysis.cell_profiles(traces.activations[layer]).coverage()
            criterion = make(view.model, layer, **settings[name])
            return float(score_suites([criterion], view.train_traces, [traces], on_progress=report)[0, 0])

        key = (*_depends(view, name, settings[name]), other.name, fingerprint)
        label = f"measuring {CRITERIA[name].card.label} of {other.label}"
        return waiting.get(JobKind("scores", kept=192), key, label, work)

    for name, result in results.items():
        results[name] = replace(result, scores={**result.scores, other.name: score(name)})
    counts[other.name] = len(traces.scores)
