"""Distinct faults: misclassified tests that look alike to another network, and are mistaken for the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.arrays import Floats, Ints
from idc_core.base.parameters import whole_number
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.models.weights import fingerprint
from idc_core.tracing.trace import collect
from idc_core.worth.mutants import predicted_classes
from idc_core.worth.yardstick import Yardstick

LEAST_TESTS = 5
"""Misclassified tests that make a fault, unless another number is asked for."""

_COMPONENTS = 10
"""Principal components of the features at most: distances among many dimensions tell little."""


@dataclass(frozen=True, eq=False)
class Faults:
    """The distinct faults of a network that a pool of tests shows.

    Attributes
    ----------
    fault : int64 (n,)
        Number of each test's fault, 0, 1, ...; -1 where it is classified rightly, or misclassified unlike others.
    wrong : bool (n,)
        Whether it is misclassified.
    """

    fault: Ints
    wrong: NDArray[np.bool_]

    @property
    def alone(self) -> int:
        """Misclassified tests that belong to no fault."""
        return int((self.wrong & (self.fault < 0)).sum())

    def yardstick(self) -> Yardstick:
        """Return faults as targets, each found by any of its tests."""
        return Yardstick("distinct faults", self.fault[:, None] == np.arange(self.fault.max(initial=-1) + 1))


def distinct_faults(
    model: nn.Module, other: nn.Module, pool: Dataset, layer: str, *, least: int = LEAST_TESTS
) -> Faults:
    """Cluster the tests that a classifier gets wrong by how another network sees them.

    Parameters
    ----------
    model, other : Module
        The classifier, and a network for the same inputs that is not under test: what a criterion looks at in the
        classifier must not decide which faults are distinct.
    pool : Dataset
        Tests with their true classes.
    layer : str
        Layer of `other` whose neurons are the features.
    least : int
        Tests of a fault, 2 or more.

    Raises
    ------
    DataError
        If the tests have no classes.
    SettingError
        If both are one network, or `least` is below 2.
    """
    if pool.task != "classification":
        raise DataError(f"Faults are of tests with classes; the task of {pool.name!r} is {pool.task}.")
    if fingerprint(model) == fingerprint(other):
        raise SettingError("Faults are told apart by a network that is not under test: give another one.")
    features = collect(other, pool.inputs, [layer]).activations[layer].astype(np.float64)
    return cluster_faults(features, pool.targets, predicted_classes(model, pool), least=least)


def cluster_faults(features: Floats, targets: Ints, predicted: Ints, *, least: int = LEAST_TESTS) -> Faults:
    """Cluster misclassified tests by features (n, d) within each pair of a true and a predicted class (n,), by HDBSCAN.

    Features are standardised over all tests and reduced to ten principal components of the misclassified ones. A pair
    with tests enough in which HDBSCAN finds no two clusters is one fault; where it finds some, tests in none of them
    belong to no fault.

    Raises
    ------
    SettingError
        If `least` is below 2.

    Notes
    -----
    Z. Aghababaeyan et al., "Black-Box Testing of Deep Neural Networks through Test Case Diversity", TSE 2023: there
    both classes are two more features, which are VGG-16's and reduced by UMAP. Appended as coordinates up to three
    times as far apart as features, they found none of four groups of digits that were relabelled in training: one fault
    among scattered mistakes is no cluster to HDBSCAN. Within pairs, each of the four was one fault.
    R. Campello, D. Moulavi, J. Sander, "Density-Based Clustering Based on Hierarchical Density Estimates", PAKDD 2013.
    """
    least = whole_number("least", least, 2)
    wrong, fault = targets != predicted, np.full(len(targets), -1, np.int64)
    if not wrong.any():
        return Faults(fault, wrong)
    spread = features.std(0)
    points = _reduced((features[wrong] - features.mean(0)) / np.where(spread > 0, spread, 1))
    places = np.flatnonzero(wrong)
    for true, given in np.unique(np.stack([targets, predicted], 1)[wrong], axis=0):
        rows = (targets[places] == true) & (predicted[places] == given)
        if rows.sum() >= least:
            found = _clusters(points[rows], least)
            fault[places[rows]] = np.where(found < 0, -1, found + fault.max() + 1)
    return Faults(fault, wrong)


def _reduced(points: Floats) -> Floats:
    """Return points (n, d) by their first principal components."""
    left, sizes, _ = np.linalg.svd(points - points.mean(0), full_matrices=False)
    return np.asarray((left * sizes)[:, :_COMPONENTS], np.float64)


def _clusters(points: Floats, least: int) -> Ints:
    """Return the cluster of each point (n, d), -1 for none; all are one where there are no two."""
    from sklearn.cluster import HDBSCAN  # only here: it takes a second to import

    found = np.asarray(HDBSCAN(min_cluster_size=least, copy=True).fit_predict(points), np.int64)
    return found if (found >= 0).any() else np.zeros(len(points), np.int64)
