"""Importance-Driven Coverage of every layer for several numbers of important neurons and several test sets.

One pass over the training inputs and one over each test set serve all layers. A layer's neurons are clustered once,
for the largest number of neurons: the important neurons of a smaller number are the first ones of a larger.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.analysis.predictions import predictions_of
from idc_core.base.parameters import is_whole, shown
from idc_core.base.progress import Progress
from idc_core.base.ranges import M
from idc_core.base.statistics import NORMAL
from idc_core.clustering.kmeans import Clusters
from idc_core.coverage.cells import assign, encode, total
from idc_core.coverage.idc import IDC
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.datasets import Dataset
from idc_core.errors import SettingError
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import Control, Finding
from idc_core.importance.training_pass import RankedLayer, rank_layers
from idc_core.lrp.rules import NamedRule
from idc_core.lrp.session import layer_names
from idc_core.tracing.neurons import neuron_activation, neuron_axes
from idc_core.tracing.trace import TraceBatch, trace
from idc_core.tracing.transfers import brought_back


@dataclass(frozen=True, eq=False)
class LayerClusters:
    """The clusters of a layer's important neurons."""

    layer: str
    neurons: int  # how many neurons the layer has
    important: NDArray[np.int64]  # (k,), the important neurons, most important first
    clusters: tuple[Clusters, ...]


@dataclass(frozen=True, eq=False)
class LayerResponses:
    """What a test set showed."""

    activations: dict[str, NDArray[np.float32]]
    """(tests, k), of each layer's important neurons, in their order; read-only."""
    accuracy: float | None  # share of tests classified correctly
    rmse: float | None  # root mean squared error of a regression


@dataclass(frozen=True)
class LayerCoverage:
    """IDC of one layer, one number of neurons and one test set."""

    suite: str
    layer: str
    m: int  # the number asked for
    used: int  # the number taken: m, or all neurons of a layer that has fewer
    covered: int  # cells reached
    total: int  # cells there are; can pass 2**64
    left: Discovery | None = None  # how much the tests leave to be reached; None for fewer than two tests

    @property
    def coverable(self) -> bool:
        """Whether there is anything to cover: not where none of the neurons varies, so that there is one cell."""
        return self.total > 1

    @property
    def score(self) -> float:
        """IDC, 0..1; NaN where nothing can be covered."""
        return self.covered / self.total if self.coverable else math.nan


@dataclass(frozen=True, eq=False)
class Sweep:
    """IDC over layers, numbers of important neurons and test sets."""

    layers: tuple[str, ...]  # in forward order
    ms: tuple[int, ...]  # numbers of important neurons asked for, ascending
    suites: tuple[str, ...]  # names of the test sets
    cells: tuple[LayerCoverage, ...]  # suite by suite, layer by layer, m by m; fewer where the work was stopped
    neurons: dict[str, NDArray[np.int64]]  # (k,), the important neurons of each layer, most important first
    accuracy: dict[str, float | None]  # of each test set
    rmse: dict[str, float | None]

    def cell(self, suite: str, layer: str, m: int) -> LayerCoverage | None:
        """Return the result of one combination, or None where the work was stopped before it."""
        key = (suite, layer, m)
        return next((cell for cell in self.cells if (cell.suite, cell.layer, cell.m) == key), None)

    def table(self) -> list[dict[str, object]]:
        """Return one row a combination: tests, layer, m, used, covered, total, idc (0..1; None of a single cell).

        ``new_cell``, ``new_cell_low`` and ``new_cell_high`` are the chance that the next test reaches a new cell, 0..1,
        with its 95 % interval; None for fewer than two tests.
        """
        return [
            {
                "tests": cell.suite,
                "layer": cell.layer,
                "m": cell.m,
                "used": cell.used,
                "covered": cell.covered,
                "total": cell.total,
                "idc": cell.score if cell.coverable else None,
                "new_cell": cell.left and cell.left.chance,
                "new_cell_low": cell.left and cell.left.low,
                "new_cell_high": cell.left and cell.left.high,
            }
            for cell in self.cells
        ]


def cluster_layer(
    model: nn.Module,
    ranked: RankedLayer,
    settings: NamedRule | IdcSettings = "epsilon",
    *,
    on_progress: Progress | None = None,
) -> LayerClusters:
    """Cluster the important neurons of a layer."""
    important = ranked.important
    criterion = IDC(model, ranked.layer, len(important), settings)
    clusters = criterion.find_clusters(ranked, on_progress=on_progress)
    return LayerClusters(ranked.layer, len(ranked.importance), important, clusters)


def run_tests(
    model: nn.Module,
    test: Dataset,
    neurons: Mapping[str, NDArray[np.int64]],
    class_names: Sequence[str],
    *,
    on_progress: Progress | None = None,
) -> LayerResponses:
    """Record what the important neurons of several layers, (k,) by layer, show on a test set, in one pass.

    Tests of other classes than `class_names`, with which the network answers, have no accuracy.
    """
    axes = neuron_axes(model, neurons)
    parts: dict[str, list[NDArray[np.float32]]] = {layer: [] for layer in neurons}
    scores = []

    def reduced(batch: TraceBatch) -> tuple[None, dict[str | None, Tensor]]:
        found: dict[str | None, Tensor] = {None: batch.scores.float()}  # under no layer's name
        for name in neurons:
            found[name] = neuron_activation(batch.activations[name], axes[name], batch.kept).float()
        return None, found

    for _, arrays in brought_back(map(reduced, trace(model, test, list(neurons), on_progress=on_progress))):
        scores.append(arrays[None])
        for layer, important in neurons.items():
            parts[layer].append(arrays[layer][:, important])
    activations = {layer: np.concatenate(values) for layer, values in parts.items()}
    for values in activations.values():
        values.setflags(write=False)
    predictions = predictions_of(np.concatenate(scores), test.targets, test.task)
    accuracy, rmse = predictions.quality(test.targets, test.task)
    comparable = tuple(class_names) == tuple(test.class_names)
    return LayerResponses(activations, accuracy if comparable else None, rmse)


def count_cells(
    states: LayerClusters, suite: str, activations: NDArray[np.float32], ms: Sequence[int]
) -> tuple[LayerCoverage, ...]:
    """Count the cells of a layer that tests (n, k) reach, once for each of `ms`; more than k neurons are all k."""
    assignments = assign(
        activations,
        [of_neuron.centroids for of_neuron in states.clusters],
        [of_neuron.boundaries for of_neuron in states.clusters],
    )
    return count_assigned(states.layer, suite, assignments, [of_neuron.k for of_neuron in states.clusters], ms)


def count_assigned(
    layer: str, suite: str, assignments: NDArray[np.uint8], sizes: Sequence[int], ms: Sequence[int]
) -> tuple[LayerCoverage, ...]:
    """Count cells as `count_cells` does, of tests whose clusters (n, k) are known; `sizes` (k,): how many there are."""
    counts: dict[int, tuple[int, int, Discovery | None]] = {}
    for used in {min(m, len(sizes)) for m in ms}:
        tests = np.unique(encode(assignments[:, :used], sizes[:used]), return_counts=True)[1]
        cells = total(sizes[:used])
        counts[used] = (len(tests), cells, Discovery.of_counts(tests, cells) if len(assignments) > 1 else None)
    return tuple(LayerCoverage(suite, layer, m, used, *counts[used]) for m in ms for used in [min(m, len(sizes))])


def highest_chance(cells: Sequence[LayerCoverage]) -> Finding | None:
    """Compare the layer with the highest chance of a new cell with the next, at one m on one test set.

    Shares of grids of different sizes cannot be compared, these chances can. They are of the same tests, and taken as
    independent: the interval of their difference is rather too wide. None where there are no two layers to compare.
    """
    known = [(cell.layer, cell.left) for cell in cells if cell.coverable and cell.left is not None]
    if len(known) < 2:
        return None
    (layer, most), (other, next_) = sorted(known, key=lambda one: -one[1].chance)[:2]
    difference = most.chance - next_.chance
    error = math.hypot(most.high - most.low, next_.high - next_.low) / 2  # NORMAL standard errors
    return Finding(
        "layer",
        f"The chance of a new cell is highest in layer {layer}",
        most.chance,
        Control(f"in layer {other}", next_.chance, next_.low, next_.high),
        difference - error,
        difference + error,
        math.erfc(NORMAL * difference / error / math.sqrt(2)) if error else 1.0,
        looks=len(known) - 1,
        unit="%",
    )


def sweep(
    model: nn.Module,
    train: Dataset,
    tests: Mapping[str, Dataset],
    layers: str | Sequence[str],
    ms: int | Sequence[int] = (2, 4, 6, 8, 10, 12),
    rule: NamedRule | IdcSettings = "epsilon",
    *,
    on_progress: Progress | None = None,
    **parameters: object,
) -> Sweep:
    """Measure IDC for every layer, number of important neurons and test set.

    `layers`: names from ``named_modules()``; `ms`: numbers of important neurons, a layer with fewer takes all of them;
    `rule` and `parameters` as in `IDC`. The numbers are those that `analyze` gives for one combination after the other
    (S. Gerasimou et al., ICSE 2020, Table 5).
    """
    layers, ms = layer_names(layers), check_ms(ms)
    if not isinstance(tests, Mapping):
        raise SettingError(f"Expected data sets by name as tests of a sweep, not {shown(tests)}.")
    if not layers or not tests:
        raise SettingError(f"A sweep needs at least one layer and one test set; got {len(layers)} and {len(tests)}.")
    settings = IdcSettings.of(rule, **parameters)
    settings.refuse_original("A sweep")
    ranked_layers = rank_layers(
        model, train, layers, max(ms), settings.relevance, priority=settings.priority, on_progress=on_progress
    )
    neurons = {layer: ranked.important for layer, ranked in ranked_layers.items()}
    states = [cluster_layer(model, ranked, settings, on_progress=on_progress) for ranked in ranked_layers.values()]
    answered = {
        suite: run_tests(model, test, neurons, train.class_names, on_progress=on_progress)
        for suite, test in tests.items()
    }
    return Sweep(
        layers,
        ms,
        tuple(tests),
        tuple(
            cell
            for suite, responses in answered.items()
            for state in states
            for cell in count_cells(state, suite, responses.activations[state.layer], ms)
        ),
        neurons,
        {suite: responses.accuracy for suite, responses in answered.items()},
        {suite: responses.rmse for suite, responses in answered.items()},
    )


def check_ms(ms: int | Sequence[int]) -> tuple[int, ...]:
    """Return numbers of important neurons, or the only one, ascending, each once."""
    numbers = list(ms) if isinstance(ms, Iterable) else [ms]
    if not numbers or not all(is_whole(m, M.low, M.high) for m in numbers):
        raise SettingError(
            f"Expected numbers of important neurons, each a whole number from {M.low} to {M.high}; "
            f"got {shown(numbers)}."
        )
    return tuple(sorted({int(m) for m in numbers}))
