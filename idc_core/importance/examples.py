"""The tests that show what neurons respond to, each with the part of it where the neuron looks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.attribution.relevance import relevance
from idc_core.base.progress import Progress
from idc_core.importance.maximisation import USUAL, Measure, Strongest, locate, shares_of_relevance
from idc_core.importance.receptive import receptive_fields
from idc_core.tracing.neurons import Neuron
from idc_core.tracing.traces import Traces


@dataclass(frozen=True, eq=False)
class NeuronExamples:
    """The tests in which each of some neurons mattered most, and where.

    Attributes
    ----------
    neurons : ndarray of int64, shape (m,)
    positions : ndarray of int64, shape (k, m)
        Of the tests, the strongest first; in the pass that `find_examples` was given.
    values : ndarray of float64, shape (k, m)
        Share of the layer's absolute relevance, -1 to 1; or mean activation.
    boxes : ndarray of int64, shape (k, m, 4)
        Top, bottom, left, right of what the neuron looks at, ends not included; of texts, features and time series left
        and right alone count: tokens without those of padding, or steps.
    """

    neurons: NDArray[np.int64]
    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    boxes: NDArray[np.int64]

    def are_parts(self, shape: tuple[int, ...]) -> bool:
        """Whether neurons look at a part of inputs that are pictures or time series, given the inputs' shape."""
        ends = (shape[-2] if len(shape) == 4 else 1, shape[-1])
        sizes = self.boxes[0, 0, 1] - self.boxes[0, 0, 0], self.boxes[0, 0, 3] - self.boxes[0, 0, 2]
        return len(shape) > 2 and sizes != ends

    def shown(self, column: int) -> NDArray[np.int64]:
        """Return the rows of a neuron's tests in which it mattered at all."""
        return np.flatnonzero(self.values[:, column] > 0).astype(np.int64)


def find_examples(
    model: nn.Module,
    inputs: Any,
    traces: Traces,
    layer: str,
    neurons: NDArray[np.int64],
    chosen: NDArray[np.int64],
    *,
    by: Measure = "relevance",
    padding: int = 0,
    k: int = USUAL,
    on_progress: Progress | None = None,
) -> NeuronExamples:
    """Find the tests in which neurons mattered most from what the layer showed on all of them.

    Only the tests that are found run again, to say where in them; relevance flows from the predicted class.

    Parameters
    ----------
    model, layer
        As in `trace`.
    inputs : ndarray, shape (n, ...)
    traces : Traces
        Of these inputs, with relevance by the usual rule.
    neurons : ndarray of int64, shape (m,)
    chosen : ndarray of int64
        Positions of the inputs to choose from.
    by : "relevance" or "activation"
    padding : int
        Token that stands where a text has ended.
    k : int
        Tests per neuron.
    on_progress : Progress, optional

    Returns
    -------
    NeuronExamples
    --------
    """
    rows = traces.relevance[layer][chosen] if by == "relevance" else traces.activations[layer][chosen]
    ranked = Strongest.of((shares_of_relevance(rows) if by == "relevance" else rows)[:, neurons], k)
    found = replace(ranked, inputs=chosen[ranked.inputs])
    places = int(np.prod(traces.shapes[layer])) // rows.shape[1]
    if places > 1:
        found = locate(model, inputs, layer, found, by=by, neurons=neurons, on_progress=on_progress)
    if inputs.dtype.kind == "f" and inputs.ndim > 2:
        fields = receptive_fields(model, layer, inputs[0])
        start = fields.boxes(np.maximum(found.places, 0))
        ends = start + fields.size
        boxes = np.stack([start[..., 0], ends[..., 0], start[..., 1], ends[..., 1]], -1)
    else:
        spans = [
            _span(
                model, inputs[found.inputs[:, column]], (layer, int(neuron)), found.places[:, column], places, padding
            )
            for column, neuron in enumerate(neurons)
        ]
        boxes = np.stack(spans, 1)
    return NeuronExamples(neurons, found.inputs, found.values, boxes)


def _span(
    model: nn.Module, inputs: NDArray[Any], of: Neuron, places: NDArray[np.int64], count: int, padding: int
) -> NDArray[np.int64]:
    """Return the boxes (k, 4) of a neuron in texts or features: those of its `places`, of which the layer has `count`.

    Where the layer has no places along the text, it is the token with most relevance for the neuron's activation.
    """
    is_text = inputs.dtype.kind in "iu"
    kept = inputs != padding if is_text else np.ones(inputs.shape, np.bool_)
    first, tokens = places, inputs.shape[1]
    if not is_text or not 1 < count <= tokens:
        maps = relevance(model, inputs, ["input"], of=of)["input"].reshape(inputs.shape)
        first, count = np.where(kept, maps, -np.inf).argmax(1), tokens
    before = np.concatenate([np.zeros((len(kept), 1), np.int64), kept.cumsum(1)], 1)  # tokens without padding
    rows, last = np.arange(len(inputs)), first + tokens - count + 1
    return np.stack([0 * first, 0 * first + 1, before[rows, first], before[rows, last]], 1).astype(np.int64)
