"""Orders of a layer's neurons by something else than relevance summed over inputs, to be silenced beside it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from idc_core.attribution.methods import attribute
from idc_core.datasets import Dataset
from idc_core.importance.important_neurons import PRIORITIES, most_important
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.neurons import neuron_axes, neuron_relevance
from idc_core.tracing.trace import collect

_AT_ONCE = 1_000
"""Inputs whose gradients are held at a time."""


def other_orders(
    model: nn.Module, train: Dataset, layer: str, settings: RelevanceSettings
) -> dict[str, NDArray[np.int64]]:
    """Return all neurons of a layer, most important first, int64 (neurons,), by every other order.

    "absolute" and "normalised" are priorities of the same relevance; "sensitivity" is how much the score of the
    predicted class changes with a neuron, the gradient's absolute value, summed over positions and inputs: the plain
    alternative that relevance has to be better than.
    """
    relevance = collect(model, train, [layer], settings).relevance[layer]
    totals = {name: entry.total(relevance) for name, entry in PRIORITIES.items() if name in ("absolute", "normalised")}
    totals["sensitivity"] = sensitivity(model, train, layer)
    return {name: most_important(total, len(total)) for name, total in totals.items()}


def sensitivity(model: nn.Module, train: Dataset, layer: str) -> NDArray[np.float64]:
    """Return the gradient's absolute value for every neuron, float64 (neurons,), summed over inputs and positions."""
    axis, total = neuron_axes(model, [layer])[layer], np.zeros(())
    for start in range(0, len(train), _AT_ONCE):
        steepness = torch.from_numpy(attribute(model, train.inputs[start : start + _AT_ONCE], "saliency", layer))
        total = total + neuron_relevance(steepness, axis).double().sum(0).numpy()
    return total
