"""How a network responds to a part of a suite: its predictions, and the activations of important neurons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.analysis.predictions import Predictions, join_predictions, predictions_of
from idc_core.base.arrays import Array
from idc_core.base.progress import Progress, report
from idc_core.datasets.dataset import Task
from idc_core.errors import ModelError
from idc_core.suites.suite import Positions, SuitePart
from idc_core.tracing.neurons import neuron_activation, neuron_axes
from idc_core.tracing.trace import TraceBatch, trace
from idc_core.tracing.transfers import brought_back


@dataclass(frozen=True, eq=False)
class PartResponses:
    """Responses of a network to a part of a suite.

    `activations`, float32 (n, m), are of the important neurons, most important first.
    """

    predictions: Predictions
    activations: NDArray[np.float32]


def part_responses(
    model: nn.Module,
    part: SuitePart,
    targets: Array,
    task: Task,
    layer: str,
    important: Sequence[int] | NDArray[np.int64],
    on_progress: Progress | None = None,
) -> PartResponses:
    """Run a part through a network and record its `important` neurons (m,) of a layer; errors as `trace`.

    `targets` (n,) are true classes, or true values of a regression.
    """
    axis = neuron_axes(model, [layer])[layer]
    neurons = np.asarray(important, np.int64)
    predictions: list[Predictions] = []
    activations: list[NDArray[np.float32]] = []

    def reduced(given: tuple[Positions, TraceBatch]) -> tuple[Positions, dict[str, Tensor]]:
        positions, batch = given
        active = neuron_activation(batch.activations[layer], axis, batch.kept)
        return positions, {"scores": batch.scores.float(), "active": active.float()}

    for positions, arrays in brought_back(map(reduced, trace_part(model, part, [layer], on_progress))):
        predictions.append(predict(arrays["scores"], targets[positions], task))
        activations.append(arrays["active"][:, neurons])
    return PartResponses(join_predictions(predictions), np.concatenate(activations))


def responses_from_traces(
    scores: NDArray[np.float32],
    activations: NDArray[np.float32],
    targets: Array,
    task: Task,
    important: Sequence[int] | NDArray[np.int64],
) -> PartResponses:
    """Return responses that were traced already: scores (n, classes), activations (n, neurons) of the layer."""
    return PartResponses(predict(scores, targets, task), activations[:, np.asarray(important, np.int64)])


def predict(scores: NDArray[np.floating], targets: Array, task: Task) -> Predictions:
    """Return the predictions of scores (n, classes); raise `ModelError` if a true class is none of the network's."""
    if task == "classification" and len(targets) and targets.max() >= scores.shape[1]:
        raise ModelError(
            f"The suite has tests of class {int(targets.max())}, but the network knows {scores.shape[1]} classes."
        )
    return predictions_of(scores, targets, task)


def trace_part(
    model: nn.Module, part: SuitePart, layers: Sequence[str], on_progress: Progress | None = None
) -> Iterator[tuple[Positions, TraceBatch]]:
    """Trace a part a block at a time; yield positions within the part, int64 (k,), and their batch."""
    for positions, inputs in part_blocks(part, on_progress):
        for batch in trace(model, inputs, layers):
            end = batch.start + len(batch.scores)
            yield positions[batch.start : end], batch
            del batch  # the next one needs the memory
            report(on_progress, int(positions[0]) + end, part.count, "inputs through the network")


def part_blocks(part: SuitePart, on_progress: Progress | None = None) -> Iterator[tuple[Positions, Array]]:
    """Make the inputs of a part, as many at a time as it says; yield positions within the part, and inputs (k, ...).

    While inputs are made that take long, `on_progress` is called with where in the part their block begins.
    """
    for start in range(0, part.count, part.at_a_time):
        positions = np.arange(start, min(start + part.at_a_time, part.count), dtype=np.int64)
        yield positions, part.make(positions, _within(on_progress, start, part.count))


def _within(on_progress: Progress | None, start: int, count: int) -> Progress | None:
    if on_progress is None:
        return None
    return lambda done, total, label: on_progress(start, count, label)
