"""Several criteria on the same tests: their scores for parts and growing subsets, and how far they agree.

One pass over the training inputs and one over the tests; everything else is read from the profiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion
from idc_core.coverage.streamed import StreamedCriterion, fit_all, profile_all, update_all
from idc_core.errors import SettingError
from idc_core.progress import Progress, report
from idc_core.statistics import kendall, spearman
from idc_core.tracing.batching import Inputs
from idc_core.tracing.trace import Traces, collect

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Method = Literal["spearman", "kendall"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several criteria for several suites.

    Attributes
    ----------
    criteria, suites : tuple of str
        Names of rows and columns.
    scores : ndarray, float64 (criteria, suites)
        Each row in its criterion's own unit.
    """

    criteria: tuple[str, ...]
    suites: tuple[str, ...]
    scores: Floats


def compare(
    criteria: Mapping[str, Criterion],
    train: Inputs,
    suites: Mapping[str, Inputs],
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Comparison:
    """Score suites by criteria: one pass over the training inputs and one over each suite, none of which is kept.

    Parameters
    ----------
    criteria : mapping of str to Criterion
        Of one network. Those that are not a `StreamedCriterion` (IDC) make their own passes.
    train : Tensor, array, Dataset, iterable of batches (n, ...), or Traces
    suites : mapping of str to the same
        Tests by name.
    batch_size : int, optional
        Default: chosen from the network's size.
    on_progress : Progress, optional

    Returns
    -------
    Comparison

    Raises
    ------
    ModelError, UnsupportedOperationError, DataError, SettingError
        As `measure`.
    """
    learned = list(criteria.values())
    fit_all(learned, train, batch_size=batch_size, on_progress=on_progress)
    columns = []
    for tests in suites.values():
        fresh = [one.fresh() for one in learned]
        update_all(fresh, tests, batch_size=batch_size, on_progress=on_progress)
        columns.append([one.score for one in fresh])
    scores = np.array(columns, np.float64).reshape(len(suites), len(criteria)).T
    return Comparison(tuple(criteria), tuple(suites), scores)


@dataclass(frozen=True, eq=False)
class Subsets:
    """Random subsets of tests that grow: the first `sizes[j]` of each row of `orders`.

    Attributes
    ----------
    sizes : ndarray, int64 (s,)
        Ascending, the last one all tests.
    orders : ndarray, int64 (r, n)
        Shuffled positions of all tests.
    """

    sizes: Ints
    orders: Ints


def random_subsets(tests: int, sizes: int = 12, orders: int = 20, seed: int = 0) -> Subsets:
    """Draw growing random subsets.

    Parameters
    ----------
    tests : int
        How many tests there are.
    sizes : int
        How many sizes, evenly spread up to all tests; fewer where there are fewer tests.
    orders : int
        How many times to draw.
    seed : int

    Returns
    -------
    Subsets

    Raises
    ------
    SettingError
        If one of the numbers is not positive.
    """
    if min(tests, sizes, orders) < 1:
        raise SettingError(f"Expected tests, sizes and orders of at least 1, got {tests}, {sizes} and {orders}.")
    ends = np.unique(np.ceil(tests * np.arange(1, sizes + 1) / sizes).astype(np.int64))
    random = np.random.default_rng(seed)
    return Subsets(ends, np.stack([random.permutation(tests) for _ in range(orders)]).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Reading:
    """What one criterion says of a set of tests.

    Attributes
    ----------
    profiles : Profiles
        What each test covers. Where the criterion has no targets (NLC), what each adds on top of all tests.
    scores : dict of str to float
        Score of each part of the tests, by the part's name.
    growth : ndarray, float64 (orders, sizes)
        Score of each growing random subset.

    Notes
    -----
    Scores and growth count the targets that the chosen tests reach among those of all tests. For cluster-based coverage
    these are the clusters that all tests make in their given order: by itself a part can make others.
    """

    profiles: Profiles
    scores: dict[str, float]
    growth: Floats


def read(
    criteria: Sequence[Criterion],
    train: Inputs,
    tests: Inputs,
    parts: Mapping[str, NDArray[Any]],
    subsets: Subsets,
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> list[Reading]:
    """Fit criteria and find out what they say of tests, of parts of them and of growing random subsets.

    Parameters
    ----------
    criteria : sequence of Criterion
        Of one network. Those that are not a `StreamedCriterion` (IDC) make their own passes.
    train, tests : Tensor, array, Dataset, iterable of batches (n, ...), or Traces
        Each passed through the network once; `Traces` not at all. Of the tests one number a neuron is kept.
    parts : mapping of str to ndarray of int (k,)
        Positions of tests.
    subsets : Subsets
    batch_size : int, optional
        Default: chosen from the network's size.
    on_progress : Progress, optional

    Returns
    -------
    list of Reading
        One a criterion.

    Raises
    ------
    ModelError, UnsupportedOperationError, DataError, SettingError
        As `measure`.
    """
    fit_all(criteria, train, batch_size=batch_size, on_progress=on_progress)
    streamed = [one for one in criteria if isinstance(one, StreamedCriterion)]
    held = tests
    if streamed and not isinstance(tests, Traces):
        layers = list(dict.fromkeys(layer for one in streamed for layer in one.layers))
        held = collect(streamed[0].model, tests, layers, batch_size=batch_size, on_progress=on_progress)
    found = iter(profile_all(streamed, held, on_progress=on_progress))
    readings = []
    for one in criteria:
        if not isinstance(one, StreamedCriterion):
            readings.append(read_profiles(one.profile(tests, on_progress=on_progress), parts, subsets))
            continue
        profiles = next(found)
        if profiles.total == 0:
            readings.append(_read_scores(one, held, parts, subsets, on_progress))
        else:
            readings.append(read_profiles(profiles, parts, subsets))
    return readings


def read_profiles(profiles: Profiles, parts: Mapping[str, NDArray[Any]], subsets: Subsets) -> Reading:
    """Read the scores of parts and of growing random subsets from profiles; parameters as in `read`."""
    growth = np.stack([np.cumsum(profiles.gains(order))[subsets.sizes - 1] for order in subsets.orders])
    scores = {name: profiles.coverage(positions) for name, positions in parts.items()}
    return Reading(profiles, scores, growth / (profiles.total or 1))


def _read_scores(
    criterion: StreamedCriterion,
    tests: Traces,
    parts: Mapping[str, NDArray[Any]],
    subsets: Subsets,
    on_progress: Progress | None,
) -> Reading:
    """Ask a criterion that has no targets for the scores of parts and subsets."""

    def score(chosen: Traces) -> float:
        return criterion.fresh().update(chosen).score

    growth = np.empty((len(subsets.orders), len(subsets.sizes)))
    for row, order in enumerate(subsets.orders):
        report(on_progress, row, len(subsets.orders), "random orders of the tests")
        growing = criterion.fresh()
        for column, (first, last) in enumerate(zip((0, *subsets.sizes[:-1]), subsets.sizes, strict=True)):
            growth[row, column] = growing.update(rows(tests, order[first:last])).score
    scores = {name: score(rows(tests, positions)) for name, positions in parts.items()}
    return Reading(criterion.fresh().update(tests).profile(tests, on_progress=on_progress), scores, growth)


def rows(traces: Traces, positions: NDArray[Any]) -> Traces:
    """Return the traces of some inputs, without relevance."""
    activations = {layer: values[positions] for layer, values in traces.activations.items()}
    return Traces(traces.scores[positions], activations, {}, traces.shapes)


def joined(*parts: Traces) -> Traces:
    """Return the traces of several sets of inputs of the same layers, one after the other, without relevance."""
    activations = {layer: np.concatenate([part.activations[layer] for part in parts]) for layer in parts[0].activations}
    return Traces(np.concatenate([part.scores for part in parts]), activations, {}, parts[0].shapes)


def correlations(values: NDArray[Any], method: Method = "spearman") -> Floats:
    """Return the rank correlation of every two criteria.

    Parameters
    ----------
    values : ndarray (criteria, k)
        A row a criterion: its scores for the same k suites or subsets.
    method : {"spearman", "kendall"}
        Spearman's rho, or Kendall's tau-b.

    Returns
    -------
    ndarray, float64 (criteria, criteria)
        In -1..1; NaN where a criterion gives the same score throughout.

    Raises
    ------
    SettingError
        If `method` is neither.
    """
    if method not in get_args(Method):
        raise SettingError(f"method must be one of {', '.join(get_args(Method))}, not {method!r}.")
    values = np.asarray(values, np.float64)
    return spearman(values) if method == "spearman" else kendall(values)


def subset_correlations(growth: NDArray[Any], method: Method = "spearman", *, same_size: bool = False) -> Floats:
    """Return the rank correlation of every two criteria over growing random subsets.

    Parameters
    ----------
    growth : ndarray (criteria, orders, sizes)
        Scores from `Reading.growth`.
    method : {"spearman", "kendall"}
    same_size : bool
        Compare only subsets of one size, and average over the sizes below all tests. Else all subsets are compared, of
        which larger ones have higher scores by most criteria, so that these agree for that reason alone.

    Returns
    -------
    ndarray, float64 (criteria, criteria)
        As `correlations`.
    """
    growth = np.asarray(growth, np.float64)
    if not same_size:
        return correlations(growth.reshape(len(growth), -1), method)
    found = np.stack([correlations(growth[:, :, size], method) for size in range(max(growth.shape[2] - 1, 1))])
    known = np.isfinite(found)
    sums, counts = np.where(known, found, 0).sum(0), known.sum(0)
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))
