"""The whole method on one setup: model, training data, tests, layer and m in; everything a page shows out."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.predictions import predictions_of
from idc_core.clustering.kmeans import Clusters
from idc_core.coverage.cells import Codes, assign, encode
from idc_core.coverage.idc import IDC
from idc_core.coverage.profiles import Profiles
from idc_core.datasets import Dataset
from idc_core.importance.important_neurons import check_m
from idc_core.importance.training_pass import RankedLayer
from idc_core.lrp.rules import RelevanceSettings
from idc_core.progress import Progress
from idc_core.tracing.trace import Traces, collect


@dataclass(frozen=True, eq=False)
class Analysis:
    """What the tests reach, and everything it was computed from.

    Attributes
    ----------
    layer : str
        The layer examined.
    m : int
        Number of important neurons.
    settings : dict
        Every other setting, by name.
    accuracy, rmse : float or None
        Share of tests classified correctly, or the root mean squared error of a regression.
    predictions : ndarray, int64 (tests,)
        Predicted class; 0 for regression.
    confidence : ndarray, float32 (tests,)
        Softmax probability of the predicted class; for regression the predicted value.
    correct : ndarray, bool (tests,)
        Whether the prediction is right; True throughout for regression.
    importance : ndarray, float64 (neurons,)
        Relevance of every neuron of the layer, summed over the training inputs.
    important : ndarray, int64 (m,)
        The important neurons, most important first.
    clusters : tuple of Clusters
        Their clusters; `centroids` holds the centroids that tests are assigned to.
    centroids : tuple of ndarray, float64 (k,)
        Ascending; equal to those in `clusters` unless ``original`` rounds them.
    train_activations : ndarray, float32 (train inputs, m)
        What was clustered.
    test_activations, test_relevance : ndarray, float32 (tests, m)
        Of the important neurons.
    assignments : ndarray, uint8 (tests, m)
        Cluster of every test and neuron.
    codes : ndarray, int64 or object (tests,)
        Cell of every test.
    covered, total : int
        Cells reached, and cells there are.
    score : float
        IDC, 0..1.
    seconds : dict of str to float
        How long each step took.
    """

    layer: str
    m: int
    settings: dict[str, Any]
    accuracy: float | None
    rmse: float | None
    predictions: NDArray[np.int64]
    confidence: NDArray[np.float32]
    correct: NDArray[np.bool_]
    importance: NDArray[np.float64]
    important: NDArray[np.int64]
    clusters: tuple[Clusters, ...]
    centroids: tuple[NDArray[np.float64], ...]
    train_activations: NDArray[np.float32]
    test_activations: NDArray[np.float32]
    test_relevance: NDArray[np.float32]
    assignments: NDArray[np.uint8]
    codes: Codes
    covered: int
    total: int
    score: float
    seconds: dict[str, float]

    def assign(self, activations: NDArray[Any]) -> NDArray[np.uint8]:
        """Return other inputs' cluster for every important neuron, uint8 (n, m), from activations (n, neurons)."""
        # Rounded centroids have boundaries of their own, half way between them.
        boundaries = None if self.settings["original"] else tuple(one.boundaries for one in self.clusters)
        return assign(activations[:, self.important], self.centroids, boundaries)

    def cell_profiles(self, activations: NDArray[Any]) -> Profiles:
        """Return the cell of other inputs, as `IDC.profile` does; activations as for `assign`."""
        codes = encode(self.assign(activations), [len(centroids) for centroids in self.centroids])
        numbers = np.unique(codes, return_inverse=True)[1]
        return Profiles.of_codes(numbers.reshape(-1, 1), self.total)


def analyze(
    model: nn.Module,
    train: Dataset,
    test: Dataset,
    layer: str,
    m: int = 6,
    *,
    rule: str | RelevanceSettings = "epsilon",
    priority: str = "sum",
    clusters: Sequence[int] = (2, 3, 4),
    drop_zeros: bool = False,
    clustering: str = "k-means",
    original: bool = False,
    traces: tuple[Traces, Traces] | None = None,
    on_progress: Progress | None = None,
    **parameters: Any,
) -> Analysis:
    """Find the important neurons of a layer, their clusters, and the cells the tests reach.

    Parameters
    ----------
    model : Module
    train, test : Dataset
        The clusters are learnt from `train`; `test` is measured.
    layer : str
        A name from ``named_modules()``.
    m, rule, priority, clusters, drop_zeros, clustering, original, **parameters
        As in `IDC`.
    traces : pair of Traces, optional
        What `collect` gave for the training inputs and the tests with the same layer and rule, so that nothing
        runs twice.
    on_progress : Progress, optional

    Returns
    -------
    Analysis

    Raises
    ------
    IdcError
        As `IDC` and `idc_core.tracing.trace.trace`.
    """
    seconds: dict[str, float] = {}
    settings = RelevanceSettings.of(rule, **parameters)
    criterion = IDC(
        model, layer, m, settings, clusters, drop_zeros, priority=priority, clustering=clustering, original=original
    )
    criterion.check_inputs(len(train))
    if traces is None:
        # One input tells how many neurons the layer has, so a mistake need not wait for all of them.
        check_m(criterion.m, collect(model, train.inputs[:1], [layer], settings).activations[layer].shape[1])
        with _timed(seconds, "run the training inputs"):
            learnt = collect(model, train, [layer], settings, on_progress=on_progress)
        with _timed(seconds, "run the tests"):
            seen = collect(model, test, [layer], settings, on_progress=on_progress)
    else:
        learnt, seen = traces
    with _timed(seconds, "cluster the important neurons"):
        used = learnt.predictions == train.targets if original else None
        ranked = RankedLayer.of(learnt, layer, m, priority, used)
        criterion.cluster(ranked, on_progress=on_progress)
    with _timed(seconds, "count the cells"):
        tested = seen.activations[layer][:, criterion.important]
        assignments = criterion.count(tested)
        codes = encode(assignments, criterion.counts.sizes)
        covered, total = criterion.covered, criterion.total
    predictions = predictions_of(seen.scores, test.targets, test.task)
    accuracy, rmse = predictions.quality(test.targets, test.task)
    return Analysis(
        layer=layer,
        m=m,
        settings={
            **settings.as_dict(),
            "priority": priority,
            "clusters": tuple(clusters),
            "drop_zeros": drop_zeros,
            "clustering": clustering,
            "original": original,
        },
        accuracy=accuracy,
        rmse=rmse,
        predictions=predictions.classes,
        confidence=predictions.confidence,
        correct=predictions.correct,
        importance=ranked.importance,
        important=ranked.important,
        clusters=criterion.clusters,
        centroids=criterion.centroids,
        train_activations=ranked.activations,
        test_activations=tested,
        test_relevance=seen.relevance[layer][:, criterion.important],
        assignments=assignments,
        codes=codes,
        covered=covered,
        total=total,
        score=covered / total,
        seconds=seconds,
    )


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[step] = time.perf_counter() - started
