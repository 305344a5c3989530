"""The tests that show what neurons respond to, each with the part of it where the neuron looks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.attribution.relevance import relevance
from idc_core.base.progress import Progress, report
from idc_core.errors import CancelledError, IdcError
from idc_core.importance.maximisation import USUAL, Measure, Strongest, locate, shares_of_relevance
from idc_core.importance.receptive import receptive_fields, relevant_boxes
from idc_core.tracing.neurons import Neuron
from idc_core.tracing.traces import Traces

_MARKED = 0.25
"""Share of the largest relevance in a text from which on a token has relevance."""


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
        Top, bottom, left, right of what the neuron looks at, ends not included, of one size per neuron; of texts,
        features and time series left and right alone count: tokens without those of padding, or steps.
    marks : ndarray of bool, shape (k, m, tokens)
        Tokens that the neuron looks at, those of padding included; of pictures and time series there are none.
    remark : str
        Why pictures are not cropped although the neurons' relevance would tell where; empty where they are.
    """

    neurons: NDArray[np.int64]
    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    boxes: NDArray[np.int64]
    marks: NDArray[np.bool_]
    remark: str = ""

    def are_parts(self, shape: tuple[int, ...]) -> bool:
        """Whether neurons look at a part of inputs that are pictures or time series, given the inputs' shape."""
        ends = (shape[-2] if len(shape) == 4 else 1, shape[-1])
        return len(shape) > 2 and bool((self.boxes[..., 1::2] - self.boxes[..., ::2] != ends).any())

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
        boxes, remark = _boxes(model, inputs, layer, neurons, found, on_progress)
        return NeuronExamples(neurons, found.inputs, found.values, boxes, np.zeros((*boxes.shape[:2], 0), bool), remark)
    spans = [
        _span(model, inputs[found.inputs[:, column]], (layer, int(neuron)), found.places[:, column], places, padding)
        for column, neuron in enumerate(neurons)
    ]
    boxes, marks = (np.stack(parts, 1) for parts in zip(*spans, strict=True))
    return NeuronExamples(neurons, found.inputs, found.values, boxes, marks)


def _boxes(
    model: nn.Module,
    inputs: NDArray[Any],
    layer: str,
    neurons: NDArray[np.int64],
    found: Strongest,
    on_progress: Progress | None,
) -> tuple[NDArray[np.int64], str]:
    """Return the boxes (k, m, 4) of neurons in pictures or time series, and why they are not smaller where they could.

    They are the receptive fields of the neurons' places; where these are whole inputs, what holds most relevance for
    the neurons' activations.
    """
    fields = receptive_fields(model, layer, inputs[0])
    start = fields.boxes(np.maximum(found.places, 0))
    ends = start + fields.size
    boxes = np.stack([start[..., 0], ends[..., 0], start[..., 1], ends[..., 1]], -1)
    if not fields.whole:
        return boxes, ""
    try:
        for column, neuron in enumerate(neurons.tolist()):
            maps = relevance(model, inputs[found.inputs[:, column]], ["input"], of=(layer, neuron))["input"]
            maps[found.values[:, column] <= 0] = 0  # in these it did not matter
            boxes[:, column] = relevant_boxes(maps)
            report(on_progress, column + 1, len(neurons), "neurons whose relevance is followed to the input")
    except CancelledError:
        raise
    except IdcError as error:
        return np.broadcast_to([0, fields.height, 0, fields.width], boxes.shape), str(error)
    return boxes, ""


def _span(
    model: nn.Module, inputs: NDArray[Any], of: Neuron, places: NDArray[np.int64], count: int, padding: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the boxes (k, 4) and marks (k, tokens) of a neuron in texts or features.

    They are those of its `places`, of which the layer has `count`. Where the layer has no places along the text, the
    box is the token with most relevance for the neuron's activation, and those with a `_MARKED` share of it are marked.
    """
    is_text = inputs.dtype.kind in "iu"
    kept = inputs != padding if is_text else np.ones(inputs.shape, np.bool_)
    tokens = np.arange(inputs.shape[1])
    if is_text and 1 < count <= len(tokens):
        first, last = places, places + len(tokens) - count + 1
        marks = kept & (tokens >= first[:, None]) & (tokens < last[:, None])
    else:
        maps = relevance(model, inputs, ["input"], of=of)["input"].reshape(inputs.shape)
        maps = np.where(kept, maps, -np.inf)
        first, most = maps.argmax(1), maps.max(1, keepdims=True)
        last, marks = first + 1, (maps > 0) & (maps >= _MARKED * most)
    before = np.concatenate([np.zeros((len(kept), 1), np.int64), kept.cumsum(1)], 1)  # tokens without padding
    rows = np.arange(len(inputs))
    boxes = np.stack([0 * first, 0 * first + 1, before[rows, first], before[rows, last]], 1).astype(np.int64)
    return boxes, marks
