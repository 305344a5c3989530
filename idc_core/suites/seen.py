"""What a network shows of a part of a suite: answers, and how active its important neurons are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.datasets.base import Task
from idc_core.progress import Progress
from idc_core.suites.answers import Answers, answer, watch_part
from idc_core.suites.suite import Part
from idc_core.trace import neuron_activation, neuron_axes


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
        As `idc_core.trace.trace`.
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
