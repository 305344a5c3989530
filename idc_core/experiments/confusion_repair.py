"""Whether training on what is confused parts the classes again: before and after, on tests not trained on."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from idc_core.confusion.class_pair import confused_in
from idc_core.confusion.evidence import Evidence
from idc_core.confusion.ground_truth import pair_confusion, type1_confusion
from idc_core.confusion.report import find_errors
from idc_core.confusion.scaled_activation import collect_statistics, countable_layers
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, DataError
from idc_core.experiments.random_neurons import Seeds
from idc_core.experiments.robustness import Examples, retrain
from idc_core.progress import Progress

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ADDITIONS = ("nothing", "confused", "random")
"""What is added to the training data: nothing, the inputs confused in the reported pairs, as many random ones."""


@dataclass(frozen=True, eq=False)
class Repair:
    """What retraining came to, on the half of the tests that nothing was chosen from.

    Attributes
    ----------
    class_names : tuple of str
    pairs : ndarray, int64 (k, 2)
        The pairs that were reported on the first half, without labels.
    added : int
        Inputs that were confused there, and added.
    measured : int
        Inputs of the other half.
    before : ndarray, float64 (3,)
        Accuracy, mean confusion of the reported pairs, and of all others, each 0..1.
    after : dict of str to ndarray, float64 (seeds, 3)
        The same after retraining, by a name of `ADDITIONS`; a row a seed that was finished.
    """

    class_names: tuple[str, ...]
    pairs: Ints
    added: int
    measured: int
    before: Floats
    after: dict[str, Floats]


def repair(
    model: nn.Module,
    train: Dataset,
    test: Dataset,
    layers: Sequence[str] | None = None,
    *,
    threshold: float = 0.5,
    deviations: float = 1.0,
    seeds: Seeds = 3,
    epochs: int = 2,
    on_progress: Progress | None = None,
) -> Repair:
    """Add the inputs that are confused in the reported pairs to the training data, and measure what that changes.

    Parameters
    ----------
    model : Module
        Left as it was; copies are trained.
    train, test : Dataset
        Of the network's own classes. A random half of `test` (seed 0) is looked at, the other half measures.
    layers : sequence of str, optional
        Layers whose neurons count; default all convolutions and linear layers.
    threshold, deviations : float
        As in `find_errors`.
    seeds, epochs, on_progress
        As in `idc_core.experiments.robustness.retrain`.

    Returns
    -------
    Repair

    Raises
    ------
    DataError
        If the tests have other classes, or nothing is confused in the reported pairs of the first half.
    CancelledError
        If the work was stopped before each addition was finished for a seed.
    SettingError, ModelError
        As `retrain`.

    Notes
    -----
    The future work that Tian et al. (ICSE 2020) name. Which pairs are reported needs no label; which inputs are
    confused in them, and training, do. Random inputs of the same half tell what belongs to the choice and what to
    more data.
    """
    if tuple(train.class_names) != tuple(test.class_names) or not test.class_names:
        raise DataError("Retraining needs tests of the classes that the network was trained on.")
    seen = collect_statistics(model, test, tuple(layers or countable_layers(model)), on_progress=on_progress)
    first, other = np.array_split(np.random.default_rng(0).permutation(len(test)), 2)
    first, other = np.sort(first), np.sort(other)
    names = tuple(test.class_names)
    evidence = Evidence(names, seen.predictions[first], test.targets[first], values=seen.values[first])
    found = find_errors(evidence, threshold, deviations=deviations)
    pairs = found.suspected
    pairs = pairs[found.distance[pairs[:, 0], pairs[:, 1]] < found.confusion_cutoff]
    rows = first[confused_in(evidence, pairs)]
    if not len(rows):
        raise DataError("No test of the half that is looked at is confused in a reported pair: nothing can be added.")

    def drawn(seed: int) -> Examples:
        some = np.random.default_rng(seed).choice(first, len(rows), replace=False)
        return test.inputs[some], test.targets[some]

    additions = dict(zip(ADDITIONS, (None, (test.inputs[rows], test.targets[rows]), drawn), strict=True))
    held = (test.inputs[other], test.targets[other])
    done = retrain(model, train, additions, {"other half": held}, seeds=seeds, epochs=epochs, on_progress=on_progress)
    before = _measured(seen.predictions[other], test.targets[other], pairs, len(names))
    after: dict[str, Floats] = {}
    for name in ADDITIONS:
        units = [unit for (addition, _), unit in done.units.items() if addition == name]
        networks = [_with_weights(model, unit.weights) for unit in units]
        values = [_measured(_answers(one, held[0]), test.targets[other], pairs, len(names)) for one in networks]
        after[name] = np.array(values).reshape(-1, 3)
    if not all(len(values) for values in after.values()):
        raise CancelledError("Stopped before every addition was finished once.")
    return Repair(names, pairs, len(rows), len(other), before, after)


def _with_weights(model: nn.Module, weights: dict[str, NDArray[Any]]) -> nn.Module:
    network = copy.deepcopy(model)
    network.load_state_dict({key: torch.as_tensor(np.array(value)) for key, value in weights.items()})
    return network.eval()


def _answers(network: nn.Module, inputs: NDArray[Any]) -> Ints:
    from idc_core.tracing.trace import collect

    return collect(network, inputs, countable_layers(network)[-1:]).predictions


def _measured(said: Ints, right: NDArray[Any], pairs: Ints, classes: int) -> Floats:
    """Return accuracy, and the mean confusion of some pairs and of all others."""
    confusion = pair_confusion(type1_confusion(right, said, classes))
    chosen = np.zeros((classes, classes), bool)
    chosen[pairs[:, 0], pairs[:, 1]] = True
    upper = np.triu(np.isfinite(confusion), 1)
    inside, outside = confusion[upper & chosen], confusion[upper & ~chosen]
    return np.array([(said == right).mean(), *(part.mean() if len(part) else np.nan for part in (inside, outside))])
