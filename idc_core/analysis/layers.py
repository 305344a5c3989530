"""What one pass shows of several layers: their important neurons on training inputs, and these neurons on tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.analysis.predictions import predictions_of
from idc_core.datasets import Dataset
from idc_core.importance.important_neurons import PRIORITIES, most_important
from idc_core.lrp.rules import RelevanceSettings
from idc_core.progress import Progress
from idc_core.tracing.batching import Inputs
from idc_core.tracing.trace import neuron_activation, neuron_axes, neuron_relevance, trace


@dataclass(frozen=True, eq=False)
class Activity:
    """What the training inputs tell of a layer.

    Attributes
    ----------
    layer : str
    importance : ndarray, float64 (neurons,)
        Relevance of every neuron, summed over the training inputs.
    important : ndarray, int64 (k,)
        The important neurons, most important first; k is the number asked for or the whole layer.
    activations : ndarray, float32 (train inputs, k)
        Of these neurons, in their order; read-only.
    """

    layer: str
    importance: NDArray[np.float64]
    important: NDArray[np.int64]
    activations: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Responses:
    """What a test set showed.

    Attributes
    ----------
    activations : dict of str to ndarray, float32 (tests, k)
        Of each layer's important neurons, in their order; read-only.
    accuracy, rmse : float or None
        Share of tests classified correctly, or the root mean squared error of a regression.
    """

    activations: dict[str, NDArray[np.float32]]
    accuracy: float | None
    rmse: float | None


def observe(
    model: nn.Module,
    train: Inputs,
    layers: Sequence[str],
    most: int,
    settings: RelevanceSettings | None = None,
    *,
    priority: str = "sum",
    on_progress: Progress | None = None,
) -> dict[str, Activity]:
    """Find the important neurons of several layers in one pass over the training inputs.

    Parameters
    ----------
    model : Module
    train : Tensor, array, Dataset or iterable of batches, (n, ...)
    layers : sequence of str
        Names from ``named_modules()``.
    most : int
        How many neurons of each layer to keep; a layer with fewer keeps all.
    settings : RelevanceSettings, optional
        How relevance is propagated; default: the epsilon rule.
    priority : str
        What makes a neuron important, a name from `PRIORITIES`.
    on_progress : Progress, optional

    Returns
    -------
    dict of str to Activity
        In the order of `layers`.

    Raises
    ------
    IdcError
        As `idc_core.tracing.trace.trace` and `idc_core.importance.important_neurons.most_important`.

    Notes
    -----
    Which neurons are important is known only at the end of the pass, so until then it holds one float32 an input and
    neuron of all layers together: 62 MB for LeNet-5 and 60,000 inputs. Relevance is summed on the way.
    """
    ranked = PRIORITIES[priority]
    axes = neuron_axes(model, layers)
    parts: dict[str, list[NDArray[np.float32]]] = {layer: [] for layer in layers}
    importance: dict[str, Any] = dict.fromkeys(layers, 0.0)
    for batch in trace(model, train, layers, settings or RelevanceSettings(), on_progress=on_progress):
        for layer in layers:
            relevance = neuron_relevance(batch.relevance[layer], axes[layer]).float().cpu().numpy()
            importance[layer] = importance[layer] + ranked.total(relevance)
            parts[layer].append(_activations(batch.activations[layer], axes[layer]))
    found = {}
    for layer in layers:
        important = most_important(importance[layer], min(most, len(importance[layer])))
        activations = np.concatenate([part[:, important] for part in parts.pop(layer)])
        activations.setflags(write=False)
        found[layer] = Activity(layer, importance[layer], important, activations)
    return found


def _activations(value: Tensor, axis: int) -> NDArray[np.float32]:
    active: NDArray[np.float32] = neuron_activation(value, axis).float().cpu().numpy()
    return active


def respond(
    model: nn.Module,
    test: Dataset,
    neurons: Mapping[str, NDArray[np.int64]],
    class_names: Sequence[str],
    *,
    on_progress: Progress | None = None,
) -> Responses:
    """Record what the important neurons of several layers show on a test set, in one pass.

    Parameters
    ----------
    model : Module
    test : Dataset
    neurons : mapping of str to ndarray, int64 (k,)
        The neurons to record, by layer.
    class_names : sequence of str
        The classes that the network answers with; tests of other classes have no accuracy.
    on_progress : Progress, optional

    Returns
    -------
    Responses

    Raises
    ------
    IdcError
        As `idc_core.tracing.trace.trace`.
    """
    axes = neuron_axes(model, neurons)
    parts: dict[str, list[NDArray[np.float32]]] = {layer: [] for layer in neurons}
    scores = []
    for batch in trace(model, test, list(neurons), on_progress=on_progress):
        scores.append(batch.scores.float().cpu().numpy())
        for layer, important in neurons.items():
            parts[layer].append(_activations(batch.activations[layer], axes[layer])[:, important])
    activations = {layer: np.concatenate(found) for layer, found in parts.items()}
    for found in activations.values():
        found.setflags(write=False)
    predictions = predictions_of(np.concatenate(scores), test.targets, test.task)
    accuracy, rmse = predictions.quality(test.targets, test.task)
    comparable = tuple(class_names) == tuple(test.class_names)
    return Responses(activations, accuracy if comparable else None, rmse)
