"""What a network answers to a part of a suite, and what it shows on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.datasets.dataset import Task
from idc_core.errors import ModelError
from idc_core.progress import Progress, report
from idc_core.suites.suite import BLOCK, Part, Positions
from idc_core.tracing.trace import TraceBatch, neuron_activation, neuron_axes, trace


@dataclass(frozen=True, eq=False)
class Answers:
    """A network's answers.

    Attributes
    ----------
    predictions : ndarray, int64 (n,)
        The class with the highest score; 0 for regression.
    confidence : ndarray, float32 (n,)
        Softmax probability of the predicted class; for regression the predicted value.
    correct : ndarray, bool (n,)
        Whether the prediction is right; True throughout for regression.
    """

    predictions: NDArray[np.int64]
    confidence: NDArray[np.float32]
    correct: NDArray[np.bool_]


def answer(scores: NDArray[Any], targets: NDArray[Any], task: Task) -> Answers:
    """Return what scores (n, classes) before the softmax say.

    Raises
    ------
    ModelError
        If a right class is none of the network's.
    """
    if task == "regression":
        return Answers(np.zeros(len(scores), np.int64), scores[:, 0].astype(np.float32), np.ones(len(scores), bool))
    if len(targets) and targets.max() >= scores.shape[1]:
        raise ModelError(
            f"The suite has tests of class {int(targets.max())}, but the network knows {scores.shape[1]} classes."
        )
    predictions = np.asarray(scores.argmax(1), np.int64)
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    confidence = (shifted.max(1) / shifted.sum(1)).astype(np.float32)
    return Answers(predictions, confidence, predictions == targets)


def watch_part(
    model: nn.Module, part: Part, layers: Sequence[str], on_progress: Progress | None = None
) -> Iterator[tuple[Positions, TraceBatch]]:
    """Run a part through a network, a block at a time.

    Parameters
    ----------
    model : Module
        Left as it was found.
    part : Part
    layers : sequence of str
        Layers to watch; may be none.
    on_progress : Progress, optional
        Called with inputs done of the part; while inputs are made that take long, also with those made of a block.

    Yields
    ------
    positions : ndarray, int64 (k,)
        Within the part.
    batch : TraceBatch
    """
    for positions, inputs in blocks_of(part, on_progress):
        for batch in trace(model, inputs, layers):
            end = batch.start + len(batch.scores)
            yield positions[batch.start : end], batch
            report(on_progress, int(positions[0]) + end, part.count, "inputs through the network")


def blocks_of(part: Part, on_progress: Progress | None = None) -> Iterator[tuple[Positions, NDArray[Any]]]:
    """Make the inputs of a part, no more than `BLOCK` at a time.

    Parameters
    ----------
    part : Part
    on_progress : Progress, optional
        Called while inputs are made that take long, with where in the part their block begins.

    Yields
    ------
    positions : ndarray, int64 (k,)
        Within the part.
    inputs : ndarray (k, ...)
    """
    for start in range(0, part.count, BLOCK):
        positions = np.arange(start, min(start + BLOCK, part.count), dtype=np.int64)
        yield positions, part.make(positions, _within(on_progress, start, part.count))


def _within(on_progress: Progress | None, start: int, count: int) -> Progress | None:
    """Return the callback of work on a block: it says where in the part the block is, and asks whether to stop."""
    if on_progress is None:
        return None
    return lambda done, total, label: on_progress(start, count, label)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a part showed.

    Attributes
    ----------
    answers : Answers
    activations : ndarray, float32 (n, m)
        Of the important neurons, most important first.
    """

    answers: Answers
    activations: NDArray[np.float32]


def look(
    model: nn.Module,
    part: Part,
    targets: NDArray[Any],
    task: Task,
    layer: str,
    important: Sequence[int] | NDArray[np.int64],
    on_progress: Progress | None = None,
) -> Seen:
    """Run a part through a network.

    Parameters
    ----------
    model : Module
        Left as it was found.
    part : Part
    targets : ndarray (n,)
        Right answers.
    task : {"classification", "regression"}
    layer : str
    important : int (m,)
        Neurons of that layer.
    on_progress : Progress, optional
        Called with inputs done of the part.

    Returns
    -------
    Seen

    Raises
    ------
    IdcError
        As `idc_core.tracing.trace.trace`.
    """
    axis = neuron_axes(model, [layer])[layer]
    neurons = np.asarray(important, np.int64)
    found: list[Answers] = []
    activations: list[NDArray[np.float32]] = []
    for positions, batch in watch_part(model, part, [layer], on_progress):
        found.append(answer(batch.scores.float().cpu().numpy(), targets[positions], task))
        active = neuron_activation(batch.activations[layer], axis).float().cpu().numpy()
        activations.append(active[:, neurons])
    return Seen(join_answers(found), np.concatenate(activations))


def seen_of(
    scores: NDArray[np.float32],
    activations: NDArray[np.float32],
    targets: NDArray[Any],
    task: Task,
    important: Sequence[int] | NDArray[np.int64],
) -> Seen:
    """Return what a pass that was taken already showed.

    Parameters
    ----------
    scores : ndarray, float32 (n, classes)
        Before the softmax.
    activations : ndarray, float32 (n, neurons)
        Of all neurons of the layer.
    targets, task, important
        As in `look`.
    """
    return Seen(answer(scores, targets, task), activations[:, np.asarray(important, np.int64)])


def join_answers(several: Sequence[Answers]) -> Answers:
    """Put answers one after the other."""
    return Answers(
        *(np.concatenate([getattr(one, name) for one in several]) for name in ("predictions", "confidence", "correct"))
    )
