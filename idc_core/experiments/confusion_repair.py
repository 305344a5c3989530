"""Whether training on confused inputs separates the classes again: before and after, on held-out tests."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from idc_core.base.progress import Progress
from idc_core.confusion import collect_statistics, countable_layers
from idc_core.confusion.class_pair import confused_in
from idc_core.confusion.evidence import Evidence
from idc_core.confusion.ground_truth import pair_confusion, type1_confusion
from idc_core.confusion.report import find_errors
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, DataError
from idc_core.experiments.random_neurons import Seeds
from idc_core.experiments.retraining import Examples, RetrainingPlan, Store
from idc_core.experiments.retraining_results import Retraining
from idc_core.tracing.trace import collect

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

ADDITIONS = ("nothing", "confused", "random")
"""What is added to the training data: nothing, the inputs confused in the reported pairs, as many random ones."""

_HELD_OUT = "other half"


@dataclass(frozen=True, eq=False)
class Repair:
    """Accuracy and confusion before and after retraining, on the held-out half of the tests."""

    class_names: tuple[str, ...]
    pairs: _Ints
    """Pairs reported on the first half, without labels, (k, 2)."""
    added: int
    """Inputs that were confused there, and added."""
    measured: int
    """Inputs of the held-out half."""
    before: _Floats
    """Accuracy, mean confusion of the reported pairs, and of all others, each 0..1, (3,)."""
    after: dict[str, _Floats]
    """The same after retraining by a name of `ADDITIONS`, (seeds, 3)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RepairPlan(RetrainingPlan):
    """Retraining on the inputs confused in the reported pairs."""

    class_names: tuple[str, ...]
    pairs: _Ints
    added: int
    predictions: _Ints
    """Of the held-out half, before retraining."""

    def measured(self, done: Retraining) -> Repair:
        """Return accuracy and confusion before and after; CancelledError unless every addition was finished once."""
        test = self.tests[_HELD_OUT]
        assert isinstance(test, tuple)
        inputs, targets = test
        after: dict[str, _Floats] = {}
        for name in ADDITIONS:
            networks = [network for (addition, _), network in done.networks.items() if addition == name]
            copies = [_reweighted(self.model, network.weights) for network in networks]
            values = [
                self._confusion(collect(network, inputs, countable_layers(network)[-1:]).predictions, targets)
                for network in copies
            ]
            after[name] = np.array(values).reshape(-1, 3)
        if not all(len(values) for values in after.values()):
            raise CancelledError("Stopped before every addition was finished once.")
        before = self._confusion(self.predictions, targets)
        return Repair(self.class_names, self.pairs, self.added, len(targets), before, after)

    def _confusion(self, predictions: _Ints, targets: NDArray[np.generic]) -> _Floats:
        """Return accuracy, and the mean confusion of the reported pairs and of all others."""
        classes = len(self.class_names)
        confusion = pair_confusion(type1_confusion(targets, predictions, classes))
        chosen = np.zeros((classes, classes), bool)
        chosen[self.pairs[:, 0], self.pairs[:, 1]] = True
        upper = np.triu(np.isfinite(confusion), 1)
        inside, outside = confusion[upper & chosen], confusion[upper & ~chosen]
        accuracy = (predictions == targets).mean()
        return np.array([accuracy, *(part.mean() if len(part) else np.nan for part in (inside, outside))])


def prepare_repair(
    model: nn.Module,
    train: Dataset,
    test: Dataset,
    layers: Sequence[str] | None = None,
    *,
    threshold: float = 0.5,
    deviations: float = 1.0,
    epochs: int = 2,
    store: Store | None = None,
    on_progress: Progress | None = None,
) -> RepairPlan:
    """Find the inputs of one half of the tests that are confused in the reported pairs; the other half measures.

    The halves are random (seed 0). `threshold` and `deviations` are as in `find_errors`; `layers` are by default all
    convolutions and linear layers.

    The future work that Tian et al. (ICSE 2020) name. Which pairs are reported needs no label; which inputs are
    confused in them, and training, do. Random inputs of the same half tell the effect of the choice from that of more
    data.
    """
    if tuple(train.class_names) != tuple(test.class_names) or not test.class_names:
        raise DataError("Retraining needs tests of the classes that the network was trained on.")
    seen = collect_statistics(model, test, tuple(layers or countable_layers(model)), on_progress=on_progress)
    first, other = np.array_split(np.random.default_rng(0).permutation(len(test)), 2)
    first, other = np.sort(first), np.sort(other)
    names = tuple(test.class_names)
    evidence = Evidence(names, seen.predictions[first], test.targets[first], values=seen.values[first])
    errors = find_errors(evidence, threshold, deviations=deviations)
    pairs = errors.suspected
    pairs = pairs[errors.distance[pairs[:, 0], pairs[:, 1]] < errors.confusion_cutoff]
    rows = first[confused_in(evidence, pairs)]
    if not len(rows):
        raise DataError("No test of the half that is looked at is confused in a reported pair: nothing can be added.")

    def sampled(seed: int) -> Examples:
        some = np.random.default_rng(seed).choice(first, len(rows), replace=False)
        return test.inputs[some], test.targets[some]

    return RepairPlan(
        model,
        train,
        dict(zip(ADDITIONS, (None, (test.inputs[rows], test.targets[rows]), sampled), strict=True)),
        {_HELD_OUT: (test.inputs[other], test.targets[other])},
        {} if store is None else store,
        epochs,
        class_names=names,
        pairs=pairs,
        added=len(rows),
        predictions=seen.predictions[other],
    )


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
    """Retrain on the inputs confused in the reported pairs, and measure: `prepare_repair`, run, measured."""
    plan = prepare_repair(
        model, train, test, layers, threshold=threshold, deviations=deviations, epochs=epochs, on_progress=on_progress
    )
    return plan.measured(plan.run(seeds, on_progress=on_progress))


def _reweighted(model: nn.Module, weights: Mapping[str, NDArray[np.generic]]) -> nn.Module:
    """Return a copy of a network, in eval mode, with the weights of a retrained one."""
    network = copy.deepcopy(model)
    network.load_state_dict({key: torch.as_tensor(np.array(value)) for key, value in weights.items()})
    return network.eval()
