"""The pass over the training inputs: the important neurons of layers, and their activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.errors import DataError
from idc_core.importance.important_neurons import PRIORITIES, check_m, most_important
from idc_core.lrp.rules import RelevanceSettings
from idc_core.progress import Progress
from idc_core.tracing.batching import Inputs
from idc_core.tracing.trace import Traces, neuron_activation, neuron_axes, neuron_relevance, trace

Floats = NDArray[Any]


@dataclass(frozen=True, eq=False)
class RankedLayer:
    """The important neurons of a layer."""

    layer: str
    importance: NDArray[np.float64]  # (neurons,), relevance of every neuron, summed over the training inputs
    important: NDArray[np.int64]  # (k,), most important first
    activations: Floats
    """(train inputs, k), of these neurons, in their order; read-only. float32, of a float64 network float64."""
    dense: bool  # whether the layer's neurons are units, not channels

    @classmethod
    def of(
        cls, traces: Traces, layer: str, m: int, priority: str = "sum", used: NDArray[np.bool_] | None = None
    ) -> RankedLayer:
        """Rank a layer by traces that were collected with relevance, from the inputs that are `used`."""
        activations, relevance = traces.activations[layer], traces.relevance[layer]
        if used is not None:
            activations, relevance = activations[used], relevance[used]
        dense = len(traces.shapes[layer]) == 1
        return cls._keep(layer, PRIORITIES[priority].total(relevance), [activations], m, dense)

    @classmethod
    def _keep(
        cls, layer: str, importance: NDArray[np.float64], parts: Sequence[Floats], m: int, dense: bool
    ) -> RankedLayer:
        important = most_important(importance, m)
        activations = np.concatenate([part[:, important] for part in parts])
        activations.setflags(write=False)
        return cls(layer, importance, important, activations, dense)


def rank_layers(
    model: nn.Module,
    train: Inputs,
    layers: Sequence[str],
    most: int,
    settings: RelevanceSettings | None = None,
    *,
    priority: str = "sum",
    truth: NDArray[np.int64] | None = None,
    exactly: bool = False,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, RankedLayer]:
    """Find the important neurons of several layers in one pass over the training inputs.

    `truth`: int64 (n,), true classes: only inputs that are classified correctly take part.

    Which neurons are important is known only at the end of the pass, so until then it holds one float32 an input and
    neuron of all layers together: 62 MB for LeNet-5 and 60,000 inputs. Relevance is summed on the way.
    """
    ranked, axes = PRIORITIES[priority], neuron_axes(model, layers)
    parts: dict[str, list[Floats]] = {layer: [] for layer in layers}
    importance: dict[str, NDArray[np.float64]] = {layer: np.zeros(()) for layer in layers}
    dense, done = {}, 0
    batches = trace(
        model, train, layers, settings or RelevanceSettings(), batch_size=batch_size, on_progress=on_progress
    )
    for batch in batches:
        done = batch.start + len(batch.scores)
        used = slice(None) if truth is None else batch.scores.argmax(1).cpu().numpy() == _rows(truth, batch.start, done)
        for layer in layers:
            active = _array(neuron_activation(batch.activations[layer], axes[layer]))
            if exactly:
                check_m(most, active.shape[1])
            relevance = _array(neuron_relevance(batch.relevance[layer], axes[layer]))
            importance[layer] = importance[layer] + ranked.total(relevance[used])
            parts[layer].append(active[used])
            dense[layer] = batch.activations[layer].dim() == 2
    if truth is not None and len(truth) != done:
        raise DataError(f"There are {len(truth)} targets for {done} inputs; expected one per input.")
    return {
        layer: RankedLayer._keep(layer, total, parts.pop(layer), min(most, len(total)), dense[layer])
        for layer, total in importance.items()
    }


def _array(value: Tensor) -> Floats:
    found: Floats = (value if value.dtype == torch.float64 else value.float()).cpu().numpy()
    return found


def _rows(truth: NDArray[np.int64], start: int, end: int) -> NDArray[np.int64]:
    if len(truth) < end:
        raise DataError(f"There are {len(truth)} targets for at least {end} inputs; expected one per input.")
    return truth[start:end]
