"""Explanations of one test: the contribution of each layer's values to a score, by any method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.figures.heatmaps import layer_map
from idc_core.figures.wording import readable_pieces
from idc_core.lrp.layer_parts import split_layer
from idc_core.tracing.patches import patch_grid, patches_over
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.jobs.wording import features, is_series

if TYPE_CHECKING:
    from idc_core.attribution.methods import MethodCard
    from idc_core.datasets import Dataset

EXPLANATIONS = JobKind("explanations", kept=96)

INPUT = "input"

ONE_PASS = ("z", "gamma", "alpha-beta", "composite", "gradient-x-input")
"""Methods that are compared by default: one pass each."""

_BLANK = "\u2423"
"""Stands for a blank where single characters are shown."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """One test explained by one method for the output `target`; `label` is method and class, for captions.

    `layers` go from the scores to the input; each in the layer's own shape. `tokens` are those that give features of
    tokens, (tokens, features). Where a `neuron` of the setup's layer is explained instead of an output, layers begin
    there.
    """

    method: MethodCard
    label: str
    target: int
    settings: dict[str, float | str]
    layers: dict[str, NDArray[np.float64]]
    tokens: frozenset[str] = frozenset()
    neuron: int | None = None

    @property
    def maps(self) -> dict[str, NDArray[np.float64]]:
        """The layers as pictures (h, w); words stay in their row, patches lie as in the picture."""
        return {layer: self._map(layer, values) for layer, values in self.layers.items()}

    def _map(self, layer: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if layer == INPUT and values.ndim == 1:
            return values[None]
        if layer not in self.tokens:
            return layer_map(values)
        of_tokens, given = values.sum(1), self.layers[INPUT]
        grid = patch_grid(len(of_tokens), *given.shape[1:]) if given.ndim == 3 else None
        return layer_map(of_tokens) if grid is None else of_tokens[grid[2] :].reshape(grid[:2])

    @property
    def over_input(self) -> list[str]:
        """Layers whose tokens lie over the input: patches of a picture, or the tokens of a text."""
        given = self.layers[INPUT]
        return [
            layer
            for layer in self.layers
            if layer in self.tokens
            and (
                patch_grid(len(self.layers[layer]), *given.shape[1:]) is not None
                if given.ndim == 3
                else len(self.layers[layer]) == given.shape[-1]
            )
        ]

    def seen_at(self, layer: str, test: Dataset, position: int) -> Explanation:
        """Return this explanation with the relevance of a layer's tokens in place of that of the input.

        Tokens of a text come in their order, those of padding after them.
        """
        values = self.layers[layer] if layer == INPUT else self.layers[layer].sum(1)
        if self.layers[INPUT].ndim == 3:
            spread = None if layer == INPUT else patches_over(values, *self.layers[INPUT].shape[1:])
            values = values if spread is None else spread[None]
        elif (ids := test.inputs[position]).dtype.kind in "iu":
            padding = ids == test.padding
            values = np.concatenate([values[~padding], values[padding]])
        elif layer != INPUT and self.layers[INPUT].ndim == 2:
            values = values[None]
        return replace(self, layers={**self.layers, INPUT: values})

    @property
    def parts(self) -> NDArray[np.float64]:
        """The relevance of each part of an input that is no picture: words, features, or steps of a time series."""
        values = self.layers[INPUT]
        return values.sum(0) if values.ndim == 2 else values

    @property
    def sums(self) -> dict[str, float]:
        """Sum of each layer."""
        return {layer: float(values.sum()) for layer, values in self.layers.items()}

    def signed(self, sign: int) -> list[float]:
        """Return the sum of each layer's values of one sign."""
        return [float(np.clip(sign * values, 0, None).sum()) * sign for values in self.layers.values()]


def scores(view: View, position: int) -> NDArray[np.float32]:
    """Return the scores (classes,) of one test before the softmax."""
    return _scores(view, view.test.inputs[position : position + 1], ("test", position))


def baseline_scores(view: View, value: float) -> NDArray[np.float32]:
    """Return the scores (classes,) of what methods compare a test with: an even picture, or an empty text."""
    return _scores(view, _even(view, value), ("baseline", value))


def baseline_activation(view: View, value: float, neuron: int) -> float:
    """Return the activation of a neuron of the setup's layer on what methods compare a test with."""

    def work(report: Progress) -> float:
        from idc_core.tracing.trace import collect

        found = collect(view.model, _even(view, value), [view.setup.layer], on_progress=report)
        return float(found.activations[view.setup.layer][0, neuron])

    key = (*view.key, "activation", view.setup.layer, neuron, value)
    return Waiting(1).get(EXPLANATIONS, key, "running the baseline", work)


def _even(view: View, value: float) -> NDArray[np.generic]:
    """Return an even picture, or an empty text, in a batch of one."""
    test = view.test.inputs[:1]
    return np.full_like(test, value) if test.ndim == 4 else np.zeros_like(test)


def _scores(view: View, one: NDArray[np.generic], which: tuple[str, float]) -> NDArray[np.float32]:
    def work(report: Progress) -> NDArray[np.float32]:
        from idc_core.tracing.trace import collect

        result: NDArray[np.float32] = collect(view.model, one, [], on_progress=report).scores[0]
        return result

    key = (*view.key, "scores", *which)
    return Waiting(1).get(EXPLANATIONS, key, "running the test", work)


def explain(
    view: View,
    position: int,
    method: str,
    target: int,
    settings: dict[str, float | str],
    label: str,
    neuron: int | None = None,
) -> Explanation:
    """Explain one test's score through all layers, or find it again; IdcError if the method cannot.

    With a `neuron` of the setup's layer its activation is explained, through the layers up to it.
    """
    from idc_core.attribution.methods import METHODS, attribute_layers
    from idc_core.tracing.batching import layers_until

    entry = METHODS[method]
    own = [parameter.name for parameter in entry.parameters]
    chosen: dict[str, Any] = entry.settings({name: value for name, value in settings.items() if name in own})

    def work(report: Progress) -> dict[str, NDArray[np.float64]]:
        # Parts of layers are not drawn: they are pieces of what is.
        whole = [layer for layer in view.card.layers if not split_layer(layer)[1]]
        test, end = view.test.inputs[position : position + 1], view.setup.layer
        if neuron is not None:
            whole = [layer for layer in layers_until(view.model, test, whole, end) if layer in whole]
        layers = (*(reversed(whole) if entry.inside else ()), INPUT)
        explained: dict[str, Any] = {"target": target} if neuron is None else {"of": (end, neuron)}
        maps = attribute_layers(view.model, test, layers, method, on_progress=report, **explained, **chosen)
        return {layer: maps[layer][0].astype(np.float64) for layer in layers}

    of_neuron = () if neuron is None else (view.setup.layer, neuron)
    key = (*view.key, position, method, target, tuple(chosen.items()), *of_neuron)
    layers = Waiting(1).get(EXPLANATIONS, key, f"explaining the test by {entry.label}", work)
    return Explanation(entry, label, target, chosen, layers, _token_layers(view, layers), neuron)


def lost_digits(view: View, position: int, one: Explanation) -> str:
    """Say where an explanation by relevance propagation loses all its digits, and which rule holds; empty where not."""
    from idc_core.attribution.digits import first_lost, said_lost
    from idc_core.lrp.rules import RULES, RelevanceSettings

    if one.method.name not in RULES:
        return ""
    in_single = {layer: values.astype(np.float32) for layer, values in one.layers.items()}
    start = float(np.abs(scores(view, position)).max())
    if one.neuron is not None or first_lost(in_single, start) is None:
        return ""
    test = view.test.inputs[position : position + 1]
    settings = RelevanceSettings(one.method.name, **one.settings)
    key = (*view.key, "digits", position, one.method.name, one.target, tuple(one.settings.items()))
    return Waiting(1).get(
        EXPLANATIONS,
        key,
        "looking for a rule that holds",
        lambda report: said_lost(view.model, test, settings, one.target),
    )


def _token_layers(view: View, layers: Mapping[str, NDArray[np.float64]]) -> frozenset[str]:
    """Return the layers that give features of tokens: two axes, neurons in the last one."""
    from idc_core.tracing.neurons import axis_in, neuron_axes

    flat = [layer for layer, values in layers.items() if values.ndim == 2 and layer != INPUT]
    if not flat:
        return frozenset()  # the network is not opened for it
    return frozenset(layer for layer, axis in neuron_axes(view.model, flat).items() if axis_in(3, axis) == 2)


def read_tokens(test: Dataset, position: int) -> list[str]:
    """Return the words or characters of a text, dots for unknown ones and marks for blanks; or features, or steps."""
    ids = test.inputs[position]
    if is_series(test):
        return [f"step {number}" for number in range(ids.shape[1])]
    if ids.dtype.kind == "f":
        return features(test, ids)
    words = test.words(ids[ids != test.padding])
    return readable_pieces(words) if test.is_pieces else [_BLANK if word == " " else word for word in words]


def marks_of(test: Dataset) -> set[str]:
    """Return the words that stand for no word, such as the mark of the beginning."""
    return {test.vocabulary[token] for token in test.special[2:]} if test.inputs.dtype.kind in "iu" else set()
