"""Activations for criteria: one per neuron and input, batch by batch, from a pass or from traces already taken."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.progress import Progress, report
from idc_core.errors import DataError, SettingError
from idc_core.importance.training_pass import check_activations
from idc_core.tracing.batching import Inputs
from idc_core.tracing.neurons import neuron_activation, neuron_axes
from idc_core.tracing.trace import TraceBatch, trace
from idc_core.tracing.traces import Traces
from idc_core.tracing.transfers import brought_back

_ROWS = 1024
"""Inputs of a block that is cut from traces already taken."""


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
        raw: TraceBatch | None = None,
    ) -> None:
        self.layers, self.scores, self._raw = tuple(layers), scores, raw
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

    @cached_property
    def predictions(self) -> NDArray[np.int64]:
        """The class with the highest score, int64 (n,)."""
        return np.asarray(self.scores.argmax(1), np.int64)

    def by_layer(self, values: NDArray[np.floating]) -> list[NDArray[np.floating]]:
        """Cut an array (n, neurons) into one array per layer."""
        return np.split(values, np.cumsum(self.sizes)[:-1], axis=1)

    @cached_property
    def ranges(self) -> list[tuple[NDArray[np.floating], NDArray[np.floating]]]:
        """Smallest and largest output of each layer at any position, one pair of arrays (n,) per layer."""
        if self._raw is None:
            raise SettingError("Traces hold channel means only: outputs at every position need inputs, not traces.")
        outputs = [self._raw.activations[layer].flatten(1) for layer in self.layers]
        return [(_numpy(output.amin(1)), _numpy(output.amax(1))) for output in outputs]


BatchOf = Callable[[tuple[str, ...]], ActivationBatch]
"""Gives one batch for a criterion of these layers; criteria of the same layers share it."""


def activation_batches(
    model: nn.Module, layers: tuple[str, ...], inputs: Inputs, batch_size: int | None, on_progress: Progress | None
) -> Iterator[BatchOf]:
    """Yield inputs batch by batch for criteria of any of these layers, with `trace`'s errors; `Traces` need no pass."""
    if isinstance(inputs, Traces):
        yield from _cut(inputs, layers, on_progress)
        return
    axes = neuron_axes(model, layers)
    reduced = (
        (
            batch,
            {
                None: _real(batch.scores),  # under no layer's name
                **{name: neuron_activation(_real(batch.activations[name]), axes[name], batch.kept) for name in layers},
            },
        )
        for batch in trace(model, inputs, layers, batch_size=batch_size, on_progress=on_progress)
    )
    for batch, arrays in brought_back(reduced):
        yield _shared({layer: arrays[layer] for layer in layers}, arrays[None], batch.start, batch)


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
    parts: dict[str, NDArray[np.floating]], scores: NDArray[np.floating], start: int, raw: TraceBatch | None = None
) -> BatchOf:
    made: dict[tuple[str, ...], ActivationBatch] = {}

    def batch_of(layers: tuple[str, ...]) -> ActivationBatch:
        if layers not in made:
            made[layers] = ActivationBatch(layers, [parts[layer] for layer in layers], scores, start, raw)
        return made[layers]

    return batch_of


def _real(value: Tensor) -> Tensor:
    """Return numbers that numpy can hold and average."""
    return value if value.dtype in (torch.float32, torch.float64) else value.float()


def _numpy(value: Tensor) -> NDArray[np.floating]:
    return np.asarray(_real(value).cpu().numpy())
