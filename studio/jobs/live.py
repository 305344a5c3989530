"""What a changed input gives at once: computed in this process, which has the network, and kept nowhere else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.errors import UnsupportedOperationError
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.tracing.live_program import LiveProgram

_LIVE = JobKind("live", kept=64, lives="here")

_BINS = 32
"""Bars of a neuron's histogram."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What the network shows on one input, and the relevance of that input for the class it predicts."""

    scores: NDArray[np.float32]  # (classes,)
    activations: NDArray[np.float32]  # (neurons,), of the setup's layer
    relevance: NDArray[np.float32]  # of the input's shape, by LRP-epsilon


@dataclass(frozen=True, eq=False)
class NeuronPlace:
    """How often training inputs give each activation of an important neuron, and where its clusters end."""

    counts: list[int]
    low: float
    high: float
    boundaries: list[float]


def show(view: View, one: NDArray[np.generic]) -> Shown:
    """Run one input, without the axis of inputs, and explain it."""

    def work(report: Progress) -> Shown:
        from idc_core.lrp.captures import INPUT
        from idc_core.lrp.rules import RelevanceSettings
        from idc_core.tracing.neurons import neuron_activation, neuron_axes
        from idc_core.tracing.trace import trace

        layer = view.setup.layer
        batch = next(trace(view.model, one[None], [INPUT, layer], RelevanceSettings()))
        axis = neuron_axes(view.model, [layer])[layer]
        activations = neuron_activation(batch.activations[layer], axis, batch.kept)
        values = (batch.scores, activations, batch.relevance[INPUT])
        return Shown(*(value[0].float().cpu().numpy() for value in values))

    content = hashlib.sha256(np.ascontiguousarray(one).tobytes()).hexdigest()
    key = (*view.learnt_key, view.setup.layer, one.shape, content)
    return Waiting(1).get(_LIVE, key, "running the changed test", work)


def program(view: View) -> LiveProgram | str:
    """Return the network as a chain that a browser runs, or say why it is none."""

    def work(report: Progress) -> LiveProgram | str:
        from idc_core.tracing.live_program import live_program

        try:
            return live_program(view.model, view.test.inputs[:1], view.setup.layer)
        except UnsupportedOperationError as error:
            return literal(error)

    key = ("program", *view.key, view.setup.layer)
    return Waiting(1).get(_LIVE, key, "looking whether the network can run in the browser", work)


def direction(view: View, position: int) -> NDArray[np.float32]:
    """Return along which signs of its pixels a test's loss grows, for its true class or value, else the predicted."""

    def work(report: Progress) -> NDArray[np.float32]:
        from idc_core.perturbation.editing import loss_direction

        known = not view.is_classifier or view.is_comparable
        target = float(view.test.targets[position] if known else view.analysis.predictions[position])
        try:
            return loss_direction(view.model, view.test.inputs[position], target, view.train.task)
        except UnsupportedOperationError:
            return np.zeros(view.test.inputs.shape[1:], np.float32)

    return Waiting(1).get(_LIVE, ("direction", *view.key, position), "looking where the loss grows", work)


def neuron_places(view: View) -> list[NeuronPlace]:
    """Return histogram and boundaries of every important neuron, most important first."""

    def work(report: Progress) -> list[NeuronPlace]:
        places = []
        for column, (clusters, centroids) in enumerate(
            zip(view.analysis.clusters, view.analysis.centroids, strict=True)
        ):
            values = view.analysis.train_activations[:, column]
            middles = (centroids[1:] + centroids[:-1]) / 2
            ends = middles if view.analysis.settings["original"] else clusters.boundaries
            counts, edges = np.histogram(values, _BINS)
            places.append(NeuronPlace(counts.tolist(), float(edges[0]), float(edges[-1]), ends.tolist()))
        return places

    return Waiting(1).get(_LIVE, ("neurons", *view.learnt_key, view.setup), "counting activations", work)
