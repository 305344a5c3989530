"""Activations for criteria: one per neuron and input, batch by batch, from a pass or from traces already taken."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.arrays import Floats
from idc_core.base.progress import Progress, report
from idc_core.errors import DataError, SettingError
from idc_core.importance.training_pass import check_activations
from idc_core.tracing.neurons import kept_places, neuron_activation, neuron_axes
from idc_core.tracing.sources import Inputs
from idc_core.tracing.trace import TraceBatch, trace
from idc_core.tracing.traces import Traces
from idc_core.tracing.transfers import brought_back

_ROWS = 1024
"""Inputs of a block that is cut from traces already taken."""

_ROUNDING = 32
"""Units in the last place by which an activation can differ where it is computed again; 3 to 15 have been measured."""

Extremes = tuple[NDArray[np.floating], NDArray[np.floating]]
"""Smallest and largest output of a layer for each input, two arrays (n,)."""


def rounding(scales: Floats, precision: float) -> Floats:
    """Return by how much activations of these magnitudes can differ between batches of other sizes, same shape.

    `precision` is the distance from 1 to the next number of the activations' type: 1.2e-7 in single precision.
    """
    return _ROUNDING * precision * scales


class ActivationBatch:
    """One batch of inputs as a criterion looks at it; refuses activations that are not finite.

    `values`, float32 or float64 (n, neurons), are the activations of all neurons of its `layers`, layer after layer,
    `sizes` in number: unit outputs, or channel means over positions; `scores`, (n, classes), are before the softmax.
    `start` is the number of its first input among all.
    """

    def __init__(
        self,
        layers: Sequence[str],
        parts: Sequence[NDArray[np.floating]],
        scores: NDArray[np.floating],
        start: int,
        extremes: Sequence[Extremes] | None = None,
    ) -> None:
        self.layers, self.scores, self._extremes = tuple(layers), scores, extremes
        self.sizes = tuple(part.shape[1] for part in parts)
        self.values: NDArray[np.floating] = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
        # A nan or an infinity anywhere in a column shows in its extremes.
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            for layer, part in zip(layers, parts, strict=True):
                check_activations(layer, start, part)

    @cached_property
    def low(self) -> NDArray[np.floating]:
        """Smallest activation of each neuron in the batch, (neurons,)."""
        return np.asarray(self.values.min(0))

    @cached_property
    def high(self) -> NDArray[np.floating]:
        """Largest activation of each neuron in the batch, (neurons,)."""
        return np.asarray(self.values.max(0))

    @property
    def precision(self) -> float:
        """Distance from 1 to the next number of the activations' type."""
        return float(np.finfo(self.values.dtype).eps)

    @cached_property
    def predictions(self) -> NDArray[np.int64]:
        """The class with the highest score, int64 (n,)."""
        return np.asarray(self.scores.argmax(1), np.int64)

    def by_layer(self, values: NDArray[np.floating]) -> list[NDArray[np.floating]]:
        """Cut an array (n, neurons) into one array per layer."""
        return np.split(values, np.cumsum(self.sizes)[:-1], axis=1)

    @property
    def extremes(self) -> Sequence[Extremes]:
        """Smallest and largest output of each layer at any position, for criteria of which one has `positions`."""
        if self._extremes is None:
            raise SettingError("Traces hold channel means only: outputs at every position need inputs, not traces.")
        return self._extremes


BatchOf = Callable[[tuple[str, ...]], ActivationBatch]
"""Gives one batch for a criterion of these layers; criteria of the same layers share it."""


def activation_batches(
    model: nn.Module,
    layers: tuple[str, ...],
    inputs: Inputs,
    batch_size: int | None,
    on_progress: Progress | None,
    positions: bool = False,
) -> Iterator[BatchOf]:
    """Yield inputs batch by batch for criteria of any of these layers, with `trace`'s errors; `Traces` need no pass.

    With `positions` the layers' extremes at any position come along.
    """
    if isinstance(inputs, Traces):
        yield from _cut(inputs, layers, on_progress)
        return
    axes = neuron_axes(model, layers)

    def reduced(batch: TraceBatch) -> tuple[int, dict[tuple[str, str], Tensor]]:
        parts = {("scores", ""): _real(batch.scores)}
        for layer in layers:
            value = _real(batch.activations[layer])
            parts["values", layer] = neuron_activation(value, axes[layer], batch.kept)
            if positions:
                there = kept_places(value, axes[layer], batch.kept)
                low, high = (value,) * 2 if there is None else (value.masked_fill(~there, e) for e in (inf, -inf))
                parts["low", layer], parts["high", layer] = low.flatten(1).amin(1), high.flatten(1).amax(1)
        return batch.start, parts

    passed = trace(model, inputs, layers, batch_size=batch_size, on_progress=on_progress)
    for start, arrays in brought_back(map(reduced, passed)):  # which holds one batch at a time
        extremes = {layer: (arrays["low", layer], arrays["high", layer]) for layer in layers} if positions else None
        yield _shared({layer: arrays["values", layer] for layer in layers}, arrays["scores", ""], start, extremes)


def _cut(traces: Traces, layers: tuple[str, ...], on_progress: Progress | None) -> Iterator[BatchOf]:
    missing = [layer for layer in layers if layer not in traces.activations]
    if missing:
        raise DataError(f"The traces hold no activations of {', '.join(missing)}: collect them for these layers too.")
    count = len(traces.scores)
    for start in range(0, count, _ROWS):
        rows = slice(start, start + _ROWS)
        parts: dict[str, NDArray[np.floating]] = {layer: traces.activations[layer][rows] for layer in layers}
        yield _shared(parts, traces.scores[rows], start)
        report(on_progress, min(start + _ROWS, count), count, "inputs looked at")


def _shared(
    parts: dict[str, NDArray[np.floating]],
    scores: NDArray[np.floating],
    start: int,
    extremes: dict[str, Extremes] | None = None,
) -> BatchOf:
    made: dict[tuple[str, ...], ActivationBatch] = {}

    def batch_of(layers: tuple[str, ...]) -> ActivationBatch:
        if layers not in made:
            of_these = None if extremes is None else [extremes[layer] for layer in layers]
            made[layers] = ActivationBatch(layers, [parts[layer] for layer in layers], scores, start, of_these)
        return made[layers]

    return batch_of


def _real(value: Tensor) -> Tensor:
    """Return numbers that numpy can hold and average."""
    return value if value.dtype in (torch.float32, torch.float64) else value.float()
