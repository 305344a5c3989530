"""Which additional tests are worth having: suites side by side, by the cells that each adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.analysis import Analysis
from idc_core.clustering.points import Floats
from idc_core.coverage.cell_table import among
from idc_core.coverage.cells import Codes, assign, decode, encode, total
from idc_core.coverage.idc import IDC
from idc_core.errors import DataError, SettingError
from idc_core.parameters import is_whole
from idc_core.progress import Progress, part_of
from idc_core.suites.responses import Answers, Seen, join_answers, look
from idc_core.suites.suite import Part, Suite

MS = (6, 8, 10, 12)
"""Numbers of important neurons of the paper's tables."""

MOST_SUITES = 6


@dataclass(frozen=True, eq=False)
class SuiteCells:
    """The cells a suite reaches with some number of important neurons.

    Attributes
    ----------
    m : int
    codes : int64 or object (n,)
        Cell of every test, as `idc_core.coverage.cells.encode` gives it.
    covered, total : int
    added : int64 or object (a,)
        Cells that the first suite does not reach, ascending.
    first : ndarray, int64 (a,)
        Position of the first test in each of them.
    """

    m: int
    codes: Codes
    covered: int
    total: int
    added: Codes
    first: NDArray[np.int64]

    @property
    def score(self) -> float:
        """IDC, 0..1."""
        return self.covered / self.total

    @property
    def adding(self) -> NDArray[np.int64]:
        """Positions of all tests that lie in added cells, ascending."""
        return np.flatnonzero(among(self.codes, self.added)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class SuiteResult:
    """What one suite shows.

    Attributes
    ----------
    name, label, fingerprint : str
    inputs : int
    extra : int
        Inputs that the first suite does not have.
    accuracy, rmse : float or None
        Share answered correctly, or the root mean squared error of a regression.
    confidence : float or None
        Mean softmax probability of the answers; None for regression.
    extra_accuracy, extra_rmse, extra_confidence : float or None
        The same of the extra inputs alone; None where there is none.
    answers : Answers
    cells : dict of int to SuiteCells
        By number of important neurons.
    """

    name: str
    label: str
    fingerprint: str
    inputs: int
    extra: int
    accuracy: float | None
    rmse: float | None
    confidence: float | None
    extra_accuracy: float | None
    extra_rmse: float | None
    extra_confidence: float | None
    answers: Answers
    cells: dict[int, SuiteCells]


@dataclass(frozen=True, eq=False)
class SuiteComparison:
    """Two to six suites side by side; the first is what the others are measured against.

    Attributes
    ----------
    layer : str
    ms : tuple of int
    suites : tuple of SuiteResult
    shared : dict of int to ndarray, int64 (s, s)
        For each m, how many cells both suites reach; on the diagonal, how many one does.
    sizes : tuple of int
        Clusters of each important neuron, as many as the largest of `ms`.
    """

    layer: str
    ms: tuple[int, ...]
    suites: tuple[SuiteResult, ...]
    shared: dict[int, NDArray[np.int64]]
    sizes: tuple[int, ...]

    def cell(self, code: int, m: int) -> tuple[int, ...]:
        """Return the cluster indices of a cell by its code."""
        return tuple(int(index) for index in decode(np.array([code]), self.sizes[:m])[0])

    def marginal(self, m: int, order: Sequence[int] | None = None) -> NDArray[np.int64]:
        """Count the cells that each suite adds to those before it.

        Parameters
        ----------
        m : int
            One of `ms`.
        order : sequence of int, optional
            Suites by number, each once; default: as they are.

        Returns
        -------
        ndarray, int64 (s,)
            Gains in that order; their sum is what all suites cover together.
        """
        numbers = list(range(len(self.suites))) if order is None else [int(one) for one in order]
        if sorted(numbers) != list(range(len(self.suites))):
            raise SettingError(f"order must name each suite of 0..{len(self.suites) - 1} once, not {order!r}.")
        reached: set[Any] = set()
        gains = []
        for number in numbers:
            before = len(reached)
            reached.update(self._reached(m)[number])
            gains.append(len(reached) - before)
        return np.array(gains, np.int64)

    def best_order(self, m: int) -> list[int]:
        """Return the suites, the first one first, then always the one that adds most; of equal ones the earlier."""
        sets = self._reached(m)
        order, left = [0], list(range(1, len(sets)))
        reached = set(sets[0])
        while left:
            best = max(left, key=lambda number: len(sets[number] - reached))
            order.append(best)
            left.remove(best)
            reached |= sets[best]
        return order

    def rows(self) -> list[dict[str, Any]]:
        """Return one record a suite and number of neurons, for tables and files."""
        return [
            {
                "suite": suite.name,
                "label": suite.label,
                "inputs": suite.inputs,
                "extra": suite.extra,
                "accuracy": suite.accuracy,
                "rmse": suite.rmse,
                "confidence": suite.confidence,
                "extra_accuracy": suite.extra_accuracy,
                "extra_rmse": suite.extra_rmse,
                "extra_confidence": suite.extra_confidence,
                "m": m,
                "covered": suite.cells[m].covered,
                "total": suite.cells[m].total,
                "idc": suite.cells[m].score,
                "added": len(suite.cells[m].added),
                "marginal": int(gain),
            }
            for m in self.ms
            for suite, gain in zip(self.suites, self.marginal(m), strict=True)
        ]

    def _reached(self, m: int) -> list[set[Any]]:
        if m not in self.ms:
            raise SettingError(f"m must be one of {', '.join(map(str, self.ms))}, not {m!r}.")
        return [set(suite.cells[m].codes.tolist()) for suite in self.suites]


def compare(
    model: nn.Module,
    suites: Sequence[Suite],
    learnt: IDC | Analysis,
    ms: Sequence[int] = MS,
    *,
    on_progress: Progress | None = None,
) -> SuiteComparison:
    """Measure suites by accuracy, confidence and the cells they reach.

    Parameters
    ----------
    model : Module
        Left as it was found.
    suites : sequence of Suite
        Two to six; the first, mostly the original tests, is what the others are measured against.
    learnt : IDC or Analysis
        Important neurons and clusters, fitted once, with at least as many neurons as the largest of `ms`.
    ms : sequence of int
        Numbers of important neurons: the first ones of those learnt.
    on_progress : Progress, optional
        Called with inputs done of all there are.

    Returns
    -------
    SuiteComparison

    Raises
    ------
    SettingError
        If there are too few or too many suites, two have the same inputs, or the neurons do not reach for `ms`.
    DataError
        If the suites are not for the same network.
    IdcError
        As `idc_core.tracing.trace.trace`.

    Notes
    -----
    Parts that suites share, as U_O in all of U_O, U_O+S and U_O+DI, run once. Memory holds one block of inputs, and a
    number a test for each of `ms`, so that 100,000 tests take a few megabytes beyond the data set.
    """
    suites = tuple(suites)
    _check(suites, 2)
    ms = _check_ms(ms, len(learnt.important), learnt.layer)
    important = learnt.important[: max(ms)]
    parts = {part.fingerprint: (part, targets, suite) for suite in suites for part, targets in parts_of(suite)}
    everything, done = sum(part.count for part, _, _ in parts.values()), 0
    seen: dict[str, Seen] = {}
    for fingerprint, (part, targets, suite) in parts.items():
        shifted = part_of(on_progress, done, everything)
        seen[fingerprint] = look(model, part, targets, suite.task, learnt.layer, important, shifted)
        done += part.count
    return weigh(suites, seen, learnt, ms)


def weigh(
    suites: Sequence[Suite], seen: Mapping[str, Seen], learnt: IDC | Analysis, ms: Sequence[int] = MS
) -> SuiteComparison:
    """Compare suites by what their parts have shown already, as `compare` does.

    Parameters
    ----------
    suites : sequence of Suite
        One to six.
    seen : mapping of str to Seen
        By fingerprint, at least of the suites' parts; with at least as many neurons as the largest of `ms`, those of
        `learnt.important` in that order.
    learnt : IDC or Analysis
    ms : sequence of int

    Returns
    -------
    SuiteComparison

    Raises
    ------
    SettingError, DataError
        As `compare`.
    """
    suites = tuple(suites)
    _check(suites, 1)
    ms = _check_ms(ms, len(learnt.important), learnt.layer)
    state = _State.of(learnt, ms)
    reached = {part.fingerprint: state.place(seen[part.fingerprint]) for suite in suites for part in suite.parts}
    results = tuple(_result(suite, suites[0], seen, reached, state) for suite in suites)
    shared = {m: _shared([result.cells[m] for result in results]) for m in ms}
    return SuiteComparison(learnt.layer, ms, results, shared, tuple(state.sizes))


@dataclass(frozen=True, eq=False)
class _State:
    """What was learnt: where the clusters of the important neurons end."""

    centroids: tuple[Floats, ...]
    boundaries: tuple[Floats, ...] | None
    ms: tuple[int, ...]

    @staticmethod
    def of(learnt: IDC | Analysis, ms: tuple[int, ...]) -> _State:
        rounded = learnt.original if isinstance(learnt, IDC) else bool(learnt.settings["original"])
        most = max(ms)
        return _State(
            learnt.centroids[:most],
            # Rounded centroids have boundaries of their own, half way between them.
            None if rounded else tuple(one.boundaries for one in learnt.clusters[:most]),
            ms,
        )

    @property
    def sizes(self) -> list[int]:
        return [len(one) for one in self.centroids]

    def place(self, seen: Seen) -> dict[int, Codes]:
        """Return the cell of every input, for each number of neurons."""
        assignments = assign(seen.activations[:, : max(self.ms)], self.centroids, self.boundaries)
        return {m: encode(assignments[:, :m], self.sizes[:m]) for m in self.ms}


def _result(
    suite: Suite, first: Suite, seen: Mapping[str, Seen], reached: Mapping[str, dict[int, Codes]], state: _State
) -> SuiteResult:
    known = {part.fingerprint for part in first.parts}
    answers = join_answers([seen[part.fingerprint].answers for part in suite.parts])
    cells = {}
    for m in state.ms:
        codes = np.concatenate([reached[part.fingerprint][m] for part in suite.parts])
        base = np.unique(np.concatenate([reached[part.fingerprint][m] for part in first.parts]))
        cells[m] = _cells(m, codes, base, total(state.sizes[:m]))
    added = np.concatenate([np.full(part.count, part.fingerprint not in known) for part in suite.parts])
    extra = _measured(answers, suite, added) if added.any() else (None, None, None)
    everything = np.ones(len(suite), bool)
    return SuiteResult(
        suite.name,
        suite.label,
        suite.fingerprint,
        len(suite),
        int(added.sum()),
        *_measured(answers, suite, everything),
        *extra,
        answers,
        cells,
    )


def _measured(
    answers: Answers, suite: Suite, which: NDArray[np.bool_]
) -> tuple[float | None, float | None, float | None]:
    """Return accuracy, root mean squared error and mean confidence of some tests, each where it has a meaning."""
    if suite.task == "regression":
        errors = answers.confidence[which].astype(np.float64) - suite.targets[which]
        return None, float(np.sqrt(np.square(errors).mean())), None
    return float(answers.correct[which].mean()), None, float(answers.confidence[which].mean(dtype=np.float64))


def _cells(m: int, codes: Codes, base: Codes, cells: int) -> SuiteCells:
    reached, first = np.unique(codes, return_index=True)
    new = ~among(reached, base)
    return SuiteCells(m, codes, len(reached), cells, reached[new], first[new].astype(np.int64))


def _shared(cells: Sequence[SuiteCells]) -> NDArray[np.int64]:
    reached = [np.unique(one.codes) for one in cells]
    return np.array([[int(among(one, other).sum()) for other in reached] for one in reached], np.int64)


def parts_of(suite: Suite) -> list[tuple[Part, NDArray[Any]]]:
    """Return the parts of a suite, each with its right answers."""
    return [
        (part, suite.targets[start : start + part.count]) for start, part in zip(suite.starts, suite.parts, strict=True)
    ]


def _check(suites: tuple[Suite, ...], least: int) -> None:
    if not least <= len(suites) <= MOST_SUITES:
        fewest = ("one", "two")[least - 1]
        raise SettingError(f"Expected {fewest} to {MOST_SUITES} suites to compare, got {len(suites)}.")
    first = suites[0]
    for number, suite in enumerate(suites):
        if (suite.shape, suite.task, suite.class_names) != (first.shape, first.task, first.class_names):
            raise DataError(f"Suites {first.label!r} and {suite.label!r} are not for the same network.")
        same = [other.label for other in suites[:number] if other.fingerprint == suite.fingerprint]
        if same:
            raise SettingError(f"Suites {same[0]!r} and {suite.label!r} have the same inputs; compare different ones.")


def _check_ms(ms: Sequence[int], neurons: int, layer: str) -> tuple[int, ...]:
    if not len(ms) or not all(is_whole(m, 1) for m in ms):
        raise SettingError(f"ms must be whole numbers of at least 1, not {ms!r}.")
    if max(ms) > neurons:
        raise SettingError(
            f"Clusters of {max(ms)} important neurons are needed and those of {neurons} of layer {layer!r} are given: "
            f"fit with m={max(ms)}, or compare with m of at most {neurons}."
        )
    return tuple(sorted({int(m) for m in ms}))
