"""Explanations of one test: the contribution of each layer's values to a score, by any method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idc_core.figures.heatmaps import layer_map
from idc_core.progress import Progress
from studio.engine.jobs import Waiting
from studio.engine.results import View
from studio.engine.wording import features

if TYPE_CHECKING:
    from idc_core.attribution.methods import MethodCard
    from idc_core.datasets import Dataset

INPUT = "input"

BLANK = "\u2423"
"""Stands for a blank where single characters are shown."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """One test explained by one method for the output `target`; `label` is method and class, for captions.

    `layers` go from the scores to the input; each in the layer's own shape.
    """

    method: MethodCard
    label: str
    target: int
    settings: dict[str, float | str]
    layers: dict[str, NDArray[np.float64]]

    @property
    def maps(self) -> dict[str, NDArray[np.float64]]:
        """The layers as pictures (h, w); words stay in their row."""
        return {
            layer: values[None] if layer == INPUT and values.ndim == 1 else layer_map(values)
            for layer, values in self.layers.items()
        }

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
    one = view.test.inputs[:1]
    even = np.full_like(one, value) if one.ndim == 4 else np.zeros_like(one)
    return _scores(view, even, ("baseline", value))


def _scores(view: View, one: NDArray[Any], which: tuple[str, float]) -> NDArray[np.float32]:
    def work(report: Progress) -> NDArray[np.float32]:
        from idc_core.tracing.trace import collect

        found: NDArray[np.float32] = collect(view.model, one, [], on_progress=report).scores[0]
        return found

    key = (*view.key, "scores", *which)
    found: NDArray[np.float32] = Waiting(1).get("explanations", key, "running the test", work, kept=96)
    return found


def explain(
    view: View, position: int, method: str, target: int, settings: dict[str, float | str], label: str
) -> Explanation:
    """Explain one test's score through all layers, or find it again; IdcError if the method cannot."""
    from idc_core.attribution.methods import METHODS, attribute_layers

    entry = METHODS[method]
    own = [parameter.name for parameter in entry.parameters]
    chosen: dict[str, Any] = entry.settings({name: value for name, value in settings.items() if name in own})

    def work(report: Progress) -> dict[str, NDArray[np.float64]]:
        layers = (*reversed(view.model.card.layers), INPUT)
        one = view.test.inputs[position : position + 1]
        found = attribute_layers(view.model, one, layers, method, target, on_progress=report, **chosen)
        return {layer: found[layer][0].astype(np.float64) for layer in layers}

    key = (*view.key, position, method, target, tuple(chosen.items()))
    layers = Waiting(1).get("explanations", key, f"explaining the test by {entry.label}", work, kept=96)
    return Explanation(entry, label, target, chosen, layers)


def read_tokens(test: Dataset, position: int) -> list[str]:
    """Return the words or characters of a text, dots for unknown ones and marks for blanks; or a vector's features."""
    ids = test.inputs[position]
    if ids.dtype.kind == "f":
        return features(test, ids)
    return [test.vocabulary[token].replace(" ", BLANK) if token > 1 else "…" for token in ids[ids > 0]]
