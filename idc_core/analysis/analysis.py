"""The whole method on one setup: model, training data, tests, layer and m in; everything a page shows out."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.predictions import predictions_of
from idc_core.analysis.result import Analysis
from idc_core.base.progress import Progress
from idc_core.base.ranges import M
from idc_core.coverage.cells import encode
from idc_core.coverage.idc import IDC
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.datasets import Dataset
from idc_core.errors import DataError
from idc_core.importance.training_pass import RankedLayer
from idc_core.lrp.rules import NamedRule
from idc_core.store import Unfinished
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces


def analyze(
    model: nn.Module,
    train: Dataset,
    test: Dataset,
    layer: str,
    m: int | None = None,
    rule: NamedRule | IdcSettings = "epsilon",
    *,
    traces: tuple[Traces, Traces] | None = None,
    in_memory: int | None = None,
    unfinished: tuple[Unfinished, Unfinished] | None = None,
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
    m, rule, **parameters
        As in `IDC`.
    traces : pair of Traces, optional
        What `collect` gave for the training inputs and the tests with the same layer and rule, so that nothing
        runs twice.
    in_memory : int, optional
        Bytes of activations and relevance of one data set that are held in memory; more are mapped from files in the
        cache folder, which are gone when the result is. Default: ``activations_mib`` of the config file.
    unfinished : pair of Unfinished, optional
        Where the passes over the training inputs and over the tests keep what they have found, as in `collect`.
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
    criterion = IDC(model, layer, m, rule, in_memory=in_memory, **parameters)
    settings = criterion.idc
    for data in (train, test):
        if not (hasattr(data, "inputs") and hasattr(data, "targets")):
            raise DataError(
                f"Expected train and test to be data sets, as load_dataset gives them, not {type(data).__name__}. "
                "For arrays use IDC(model, layer).fit(train).update(test)."
            )
    criterion.check_inputs(len(train))
    if traces is None:
        # One input tells how many neurons the layer has, so a mistake need not wait for all of them.
        criterion.m_of(collect(model, train.inputs[:1], [layer], settings.relevance).activations[layer].shape[1])
        run = partial(collect, model, in_memory=in_memory, on_progress=on_progress)
        before, after = unfinished or (None, None)
        with timed(seconds, "run the training inputs"):
            learnt = run(train, [layer], settings.relevance, unfinished=before)
        with timed(seconds, "run the tests"):
            seen = run(test, [layer], settings.relevance, unfinished=after)
    else:
        learnt, seen = traces
    with timed(seconds, "cluster the important neurons"):
        used = learnt.predictions == train.targets if settings.original else None
        m = criterion.m_of(learnt.activations[layer].shape[1])
        ranked = RankedLayer.of(learnt, layer, m, settings.priority, used, in_memory)
        criterion.cluster(ranked, on_progress=on_progress)
    important = criterion.important
    measured = Measured(seen.scores, seen.activations[layer][:, important], seen.relevance[layer][:, important])
    return assembled(criterion, ranked, test, measured, seconds)


def usual_m(model: nn.Module, train: Dataset, layer: str) -> int:
    """Return how many important neurons `analyze` takes where no number is asked for: 6, or all of fewer."""
    return min(int(M.default), count_neurons(model, train, layer))


def count_neurons(model: nn.Module, train: Dataset, layer: str) -> int:
    """Return how many neurons a layer has; one input tells it."""
    return int(collect(model, train.inputs[:1], [layer]).activations[layer].shape[1])


@dataclass(frozen=True, eq=False)
class Measured:
    """What the tests showed: scores (n, classes), the important neurons' activations and relevance (n, m)."""

    scores: NDArray[np.float32]
    activations: NDArray[np.float32]
    relevance: NDArray[np.float32]


def assembled(
    criterion: IDC, ranked: RankedLayer, test: Dataset, measured: Measured, seconds: dict[str, float]
) -> Analysis:
    """Count the cells that tests reach by a criterion that is fitted, and return everything about it."""
    with timed(seconds, "count the cells"):
        tested = measured.activations
        assignments = criterion.count(tested)
        codes = encode(assignments, criterion.counts.sizes)
        covered, total = criterion.covered, criterion.total
    predictions = predictions_of(measured.scores, test.targets, test.task)
    accuracy, rmse = predictions.quality(test.targets, test.task)
    return Analysis(
        layer=criterion.layer,
        m=criterion.m,
        settings=criterion.idc.as_dict(),
        accuracy=accuracy,
        rmse=rmse,
        predictions=predictions.classes,
        confidence=predictions.confidence,
        correct=predictions.correct,
        importance=ranked.importance,
        important=ranked.important,
        clusters=criterion.clusters,
        centroids=criterion.centroids,
        # Row by row, as a kept analysis is read: sums in another order would end in other digits.
        train_activations=np.ascontiguousarray(ranked.activations),
        test_activations=np.ascontiguousarray(tested),
        test_relevance=np.ascontiguousarray(measured.relevance),
        assignments=assignments,
        codes=codes,
        covered=covered,
        total=total,
        score=covered / total,
        seconds=seconds,
    )


@contextmanager
def timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    """Note how long a step takes."""
    started = time.perf_counter()
    yield
    seconds[step] = time.perf_counter() - started
