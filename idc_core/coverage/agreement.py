"""Several criteria on the same tests: their scores for parts and growing subsets, and their rank correlation.

One pass over the training inputs and one over the tests; everything else is counted from the profiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats, Ints
from idc_core.base.progress import Progress, report
from idc_core.base.statistics import kendall, spearman
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion
from idc_core.coverage.streamed import StreamedCriterion, fit_all, profile_all, update_all
from idc_core.errors import SettingError
from idc_core.tracing.sources import Inputs
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces

Method = Literal["spearman", "kendall"]

WHOLE = "all"
"""Name of the part that holds all tests."""

MANY_PAIRS = 20_000_000
"""Pairs of a test and a training input beyond which pairwise criteria take seconds: they wait until asked for."""


def score_suites(
    criteria: Sequence[Criterion],
    train: Inputs,
    suites: Sequence[Inputs],
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Floats:
    """Return the score of every criterion for every suite, float64 (criteria, suites), each row in its own unit.

    One pass over the training inputs and one over each suite, none of which is kept. Criteria that are not a
    `StreamedCriterion` (IDC) make their own passes. Errors are those of `measure`.
    """
    fit_all(criteria, train, batch_size=batch_size, on_progress=on_progress)
    columns = []
    for tests in suites:
        fresh = [criterion.fresh() for criterion in criteria]
        update_all(fresh, tests, batch_size=batch_size, on_progress=on_progress)
        columns.append([criterion.score for criterion in fresh])
    return np.array(columns, np.float64).reshape(len(suites), len(criteria)).T


@dataclass(frozen=True, eq=False)
class Subsets:
    """Random subsets of tests that grow: the first `sizes[j]` of each row of `orders`."""

    sizes: Ints  # (s,), ascending, the last one all tests
    orders: Ints  # (r, n), shuffled positions of all tests


def random_subsets(tests: int, sizes: int = 12, orders: int = 20, seed: int = 0) -> Subsets:
    """Draw random orders of all tests and at most `sizes` subset sizes, evenly spread up to all tests."""
    if min(tests, sizes, orders) < 1:
        raise SettingError(f"Expected tests, sizes and orders of at least 1, got {tests}, {sizes} and {orders}.")
    ends = np.unique(np.ceil(tests * np.arange(1, sizes + 1) / sizes).astype(np.int64))
    random = np.random.default_rng(seed)
    return Subsets(ends, np.stack([random.permutation(tests) for _ in range(orders)]).astype(np.int64))


def equal_suites(tests: int, suites: int = 100, seed: int = 0) -> Ints:
    """Draw random suites of half of the tests each, int64 (suites, tests // 2) positions; at least one test each."""
    if min(tests, suites) < 1:
        raise SettingError(f"Expected tests and suites of at least 1, got {tests} and {suites}.")
    random = np.random.default_rng(seed)
    return np.stack([random.permutation(tests)[: max(1, tests // 2)] for _ in range(suites)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class CriterionResult:
    """Result of one criterion on a set of tests.

    Scores and growth count the targets that the chosen tests reach among those of all tests. For cluster-based coverage
    these are the clusters that all tests make in their given order: by itself a part can make others.
    """

    profiles: Profiles
    """What each test covers. Where the criterion has no targets (NLC), what each adds on top of all tests."""
    scores: dict[str, float]  # score of each part of the tests, by the part's name
    scorer: tuple[StreamedCriterion, Traces] | None = None
    """The fitted criterion and all tests, where it has no targets to count."""

    def of_suites(self, suites: Ints, *, on_progress: Progress | None = None) -> Floats:
        """Return the score of each suite of tests, float64 (s,), by the positions (s, k) of its tests."""
        total = self.profiles.total
        if self.scorer is None and total and (self.profiles.counts == 1).all():  # cells: all suites at once
            cells = np.sort(self.profiles.targets[suites], axis=1)
            return np.array([covered / total for covered in (1 + (np.diff(cells) != 0).sum(1)).tolist()], np.float64)
        scores = []
        for place, positions in enumerate(suites):
            report(on_progress, place, len(suites), "random suites of equal size")
            if self.scorer is None:
                scores.append(self.profiles.coverage(positions))
            else:
                criterion, tests = self.scorer
                scores.append(criterion.fresh().update(tests.only(positions)).score)
        return np.array(scores, np.float64)

    def growth(self, subsets: Subsets, *, on_progress: Progress | None = None) -> Floats:
        """Return the score of each growing random subset of the tests, float64 (orders, sizes)."""
        if self.scorer is None:
            counts = [np.cumsum(self.profiles.gains(order))[subsets.sizes - 1] for order in subsets.orders]
            return np.stack(counts) / (self.profiles.total or 1)
        criterion, tests = self.scorer
        scores = np.empty((len(subsets.orders), len(subsets.sizes)))
        for row, order in enumerate(subsets.orders):
            report(on_progress, row, len(subsets.orders), "random orders of the tests")
            growing = criterion.fresh()
            for column, (first, last) in enumerate(zip((0, *subsets.sizes[:-1]), subsets.sizes, strict=True)):
                scores[row, column] = growing.update(tests.only(order[first:last])).score
        return scores


def evaluate_criteria(
    criteria: Sequence[Criterion],
    train: Inputs,
    tests: Inputs,
    parts: Mapping[str, Ints],
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> list[CriterionResult]:
    """Fit criteria and evaluate them on tests and on parts of them (positions, by name).

    Training inputs and tests pass through the network once each, `Traces` not at all; of the tests one number per
    neuron is kept. Criteria that are not a `StreamedCriterion` (IDC) make their own passes. Errors are those of
    `measure`.
    """
    fit_all(criteria, train, batch_size=batch_size, on_progress=on_progress)
    streamed = [criterion for criterion in criteria if isinstance(criterion, StreamedCriterion)]
    held = tests
    if streamed and not isinstance(tests, Traces):
        layers = list(dict.fromkeys(layer for criterion in streamed for layer in criterion.layers))
        held = collect(streamed[0].model, tests, layers, batch_size=batch_size, on_progress=on_progress)
    profiled = iter(profile_all(streamed, held, on_progress=on_progress))
    results = []
    for criterion in criteria:
        if not isinstance(criterion, StreamedCriterion):
            results.append(evaluate_profiles(criterion.profile(tests, on_progress=on_progress), parts))
            continue
        profiles = next(profiled)
        if profiles.total == 0 and isinstance(held, Traces):
            results.append(_evaluate_scores(criterion, held, parts, on_progress))
        else:
            results.append(evaluate_profiles(profiles, parts))
    return results


def evaluate_profiles(profiles: Profiles, parts: Mapping[str, Ints]) -> CriterionResult:
    """Return the scores of parts, counted from the profiles of all tests."""
    return CriterionResult(profiles, {name: profiles.coverage(positions) for name, positions in parts.items()})


def _evaluate_scores(
    criterion: StreamedCriterion, tests: Traces, parts: Mapping[str, Ints], on_progress: Progress | None
) -> CriterionResult:
    """Score parts by a criterion that has no targets."""
    scores = {name: criterion.fresh().update(tests.only(positions)).score for name, positions in parts.items()}
    profiles = criterion.fresh().update(tests).profile(tests, on_progress=on_progress)
    return CriterionResult(profiles, scores, (criterion, tests))


def correlations(values: NDArray[np.floating], method: Method = "spearman") -> Floats:
    """Return Spearman's rho or Kendall's tau-b of every two rows (criteria, k) of scores, NaN where one is constant."""
    if method not in get_args(Method):
        raise SettingError(f"method must be one of {', '.join(get_args(Method))}, not {method!r}.")
    values = np.asarray(values, np.float64)
    return spearman(values) if method == "spearman" else kendall(values)


def subset_correlations(
    growth: NDArray[np.floating], method: Method = "spearman", *, same_size: bool = False
) -> Floats:
    """Return the rank correlation of every two criteria over growing random subsets (criteria, orders, sizes).

    With `same_size` only subsets of one size are compared, and averaged over the sizes below all tests. Else all are,
    of which larger ones have higher scores by most criteria, so that these agree for that reason alone.
    """
    growth = np.asarray(growth, np.float64)
    if not same_size:
        return correlations(growth.reshape(len(growth), -1), method)
    by_size = np.stack([correlations(growth[:, :, size], method) for size in range(max(growth.shape[2] - 1, 1))])
    known = np.isfinite(by_size)
    sums, counts = np.where(known, by_size, 0).sum(0), known.sum(0)
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))
