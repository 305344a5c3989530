"""Which additional tests are worth having: suites side by side, by the cells that each adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.predictions import Predictions, join_predictions
from idc_core.analysis.result import Analysis
from idc_core.base.arrays import Floats
from idc_core.base.parameters import is_whole
from idc_core.base.progress import Progress, part_of
from idc_core.coverage.cell_table import among
from idc_core.coverage.cells import Codes, assign, decode, encode, total
from idc_core.coverage.idc import IDC
from idc_core.errors import DataError, SettingError
from idc_core.suites.responses import PartResponses, part_responses
from idc_core.suites.suite import Suite

MS = (6, 8, 10, 12)
"""Numbers of important neurons of the paper's tables."""

_MOST_SUITES = 6

_ARRAYS = ("predictions", "cells")


@dataclass(frozen=True, eq=False)
class SuiteCells:
    """The cells a suite reaches with `m` important neurons.

    `codes` (n,) is the cell of every test, as `idc_core.coverage.cells.encode` gives it; `added` (a,) the cells that
    the first suite does not reach, ascending, and `first`, int64 (a,), the position of the first test in each.
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
    """What one suite shows; `extra` counts the inputs that the first suite does not have.

    `accuracy` is of classifications, `rmse` of regressions; `confidence` is the mean softmax probability of the
    predicted classes, None for regression. `extra_*` are those of the extra inputs alone, None where there are none;
    `cells` is by number of important neurons.
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
    predictions: Predictions
    cells: dict[int, SuiteCells]


@dataclass(frozen=True, eq=False)
class SuiteComparison:
    """Suites side by side; the first is what the others are measured against.

    `shared` holds for each m, int64 (s, s), how many cells both suites reach, on the diagonal how many one does;
    `sizes` the clusters of each important neuron, as many as the largest of `ms`.
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
        """Count the cells that each suite adds to those before it, int64 (s,), in the order given (or their own)."""
        numbers = list(range(len(self.suites))) if order is None else [int(place) for place in order]
        if sorted(numbers) != list(range(len(self.suites))):
            raise SettingError(f"order must name each suite of 0..{len(self.suites) - 1} once, not {order!r}.")
        reached: set[int] = set()
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

    def rows(self) -> list[dict[str, object]]:
        """Return one record per suite and number of neurons, for tables and files."""
        columns = [field.name for field in fields(SuiteResult) if field.name not in ("name", "fingerprint", *_ARRAYS)]
        return [
            {
                "suite": suite.name,
                **{column: getattr(suite, column) for column in columns},
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

    def _reached(self, m: int) -> list[set[int]]:
        if m not in self.ms:
            raise SettingError(f"m must be one of {', '.join(map(str, self.ms))}, not {m!r}.")
        return [set(suite.cells[m].codes.tolist()) for suite in self.suites]


def compare_suites(
    model: nn.Module,
    suites: Sequence[Suite],
    learnt: IDC | Analysis,
    ms: Sequence[int] = MS,
    *,
    on_progress: Progress | None = None,
) -> SuiteComparison:
    """Measure suites by accuracy, confidence and the cells they reach.

    The first of 2 to `_MOST_SUITES` suites is what the others are measured against. `learnt` is fitted once, with at
    least as many important neurons as the largest of `ms`; the first ones count. Raises SettingError if there are too
    few or too many suites, two have the same inputs, or the neurons do not reach for `ms`; DataError if the suites are
    not for the same network; and as `idc_core.tracing.trace.trace`.

    Parts that suites share run once. Memory holds one block of inputs, and a number a test for each of `ms`.
    """
    suites = tuple(suites)
    _check(suites, 2)
    ms = _check_ms(ms, len(learnt.important), learnt.layer)
    important = learnt.important[: max(ms)]
    parts = {part.fingerprint: (part, targets, suite) for suite in suites for part, targets in suite.parts_with_targets}
    everything, done = sum(part.count for part, _, _ in parts.values()), 0
    responses: dict[str, PartResponses] = {}
    for fingerprint, (part, targets, suite) in parts.items():
        progress = part_of(on_progress, done, everything)
        responses[fingerprint] = part_responses(model, part, targets, suite.task, learnt.layer, important, progress)
        done += part.count
    return compare_responses(suites, responses, learnt, ms)


def compare_responses(
    suites: Sequence[Suite], responses: Mapping[str, PartResponses], learnt: IDC | Analysis, ms: Sequence[int] = MS
) -> SuiteComparison:
    """Compare 1 to `_MOST_SUITES` suites as `compare_suites` does, from responses that are there already.

    These are by fingerprint, at least of the suites' parts, with at least as many neurons as the largest of `ms`: those
    of `learnt.important` in that order.
    """
    suites = tuple(suites)
    _check(suites, 1)
    ms = _check_ms(ms, len(learnt.important), learnt.layer)
    clusters = _Clusters.of(learnt, ms)
    reached = {
        part.fingerprint: clusters.cells(responses[part.fingerprint]) for suite in suites for part in suite.parts
    }
    results = tuple(_result(suite, suites[0], responses, reached, clusters) for suite in suites)
    shared = {m: _shared([result.cells[m] for result in results]) for m in ms}
    return SuiteComparison(learnt.layer, ms, results, shared, tuple(clusters.sizes))


@dataclass(frozen=True, eq=False)
class _Clusters:
    """Where the clusters of the important neurons end."""

    centroids: tuple[Floats, ...]
    boundaries: tuple[Floats, ...] | None
    ms: tuple[int, ...]

    @staticmethod
    def of(learnt: IDC | Analysis, ms: tuple[int, ...]) -> _Clusters:
        rounded = learnt.idc.original if isinstance(learnt, IDC) else bool(learnt.settings["original"])
        most = max(ms)
        # Rounded centroids have boundaries of their own, half way between them.
        boundaries = None if rounded else tuple(neuron.boundaries for neuron in learnt.clusters[:most])
        return _Clusters(learnt.centroids[:most], boundaries, ms)

    @property
    def sizes(self) -> list[int]:
        return [len(centroids) for centroids in self.centroids]

    def cells(self, responses: PartResponses) -> dict[int, Codes]:
        """Return the cell of every input, for each number of neurons."""
        assignments = assign(responses.activations[:, : max(self.ms)], self.centroids, self.boundaries)
        return {m: encode(assignments[:, :m], self.sizes[:m]) for m in self.ms}


def _result(
    suite: Suite,
    first: Suite,
    responses: Mapping[str, PartResponses],
    reached: Mapping[str, dict[int, Codes]],
    clusters: _Clusters,
) -> SuiteResult:
    known = {part.fingerprint for part in first.parts}
    predictions = join_predictions([responses[part.fingerprint].predictions for part in suite.parts])
    cells = {}
    for m in clusters.ms:
        codes = np.concatenate([reached[part.fingerprint][m] for part in suite.parts])
        base = np.unique(np.concatenate([reached[part.fingerprint][m] for part in first.parts]))
        cells[m] = _cells(m, codes, base, total(clusters.sizes[:m]))
    extra = np.concatenate([np.full(part.count, part.fingerprint not in known) for part in suite.parts])
    everything = np.ones(len(suite), bool)
    return SuiteResult(
        suite.name,
        suite.label,
        suite.fingerprint,
        len(suite),
        int(extra.sum()),
        *_quality(predictions, suite, everything),
        *(_quality(predictions, suite, extra) if extra.any() else (None, None, None)),
        predictions,
        cells,
    )


def _quality(
    predictions: Predictions, suite: Suite, which: NDArray[np.bool_]
) -> tuple[float | None, float | None, float | None]:
    """Return accuracy, root mean squared error and mean confidence of some tests, each where it has a meaning."""
    some = predictions.only(which)
    accuracy, rmse = some.quality(suite.targets[which], suite.task)
    return accuracy, rmse, None if accuracy is None else float(some.confidence.mean(dtype=np.float64))


def _cells(m: int, codes: Codes, base: Codes, cells: int) -> SuiteCells:
    reached, first = np.unique(codes, return_index=True)
    new = ~among(reached, base)
    return SuiteCells(m, codes, len(reached), cells, reached[new], first[new].astype(np.int64))


def _shared(cells: Sequence[SuiteCells]) -> NDArray[np.int64]:
    reached = [np.unique(suite.codes) for suite in cells]
    return np.array([[int(among(suite, other).sum()) for other in reached] for suite in reached], np.int64)


def _check(suites: tuple[Suite, ...], least: int) -> None:
    if not least <= len(suites) <= _MOST_SUITES:
        raise SettingError(f"Expected {least} to {_MOST_SUITES} suites to compare, got {len(suites)}.")
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
