"""What DeepInspect's distances are compared with: last-layer weights (MODE), coincidence of labels, and chance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.ground_truth import Floats, Ints, Labels
from idc_core.errors import DataError

SIZES = {"negligible": 0.2, "small": 0.5, "medium": 0.8, "large": np.inf}
"""Effect sizes by name: Cohen's d below the number, and not below the one before."""


def weight_distance(weights: NDArray[np.floating]) -> Floats:
    """Return how far the last layer's weights (classes, features) of two classes lie apart, (classes, classes).

    Notes
    -----
    DeepInspect's stand-in for MODE (S. Ma et al., ESEC/FSE 2018), of which its text says little: the Euclidean distance
    of rows of the last layer gives its Table III to the pair on CIFAR-100, robust CIFAR-10 small and COCO.
    """
    rows = np.asarray(weights, np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise DataError(f"Expected weights of two classes or more, (classes, features), got shape {rows.shape}.")
    return np.stack([np.sqrt(np.square(rows - row).sum(1)) for row in rows])


def coincidence(labels: Labels) -> Floats:
    """Return in which share of the inputs with either label both are true, (classes, classes); NaN where neither is.

    `labels`, 0 or 1, (inputs, classes), have several classes an input; with one class an input nothing coincides.
    """
    given = np.asarray(labels, np.float64)
    if given.ndim != 2:
        raise DataError("Labels coincide where an input has several: expected labels (inputs, classes) of 0 and 1.")
    both, each = given.T @ given, given.sum(0)
    with np.errstate(invalid="ignore"):
        return np.asarray(both / (each[:, None] + each - both), np.float64)


@dataclass(frozen=True)
class ByChance:
    """True pairs among as many that are drawn at random: their mean, and the range of 95 % of the draws."""

    mean: float
    low: int
    high: int


def by_chance(pairs: int, true_pairs: int, reported: int) -> ByChance:
    """Return how many of `reported` random pairs are true (hypergeometric): the paper's random baseline."""
    from idc_core.base.scipy_parts import stats

    drawn = stats.hypergeom(pairs, true_pairs, reported)
    return ByChance(float(drawn.mean()), int(drawn.ppf(0.025)), int(drawn.ppf(0.975)))


@dataclass(frozen=True)
class ToldApart:
    """How far a number that every input has tells classes apart.

    Attributes
    ----------
    statistic, p : float
        Of Kruskal and Wallis over all classes.
    sizes : dict of str to float
        Share of the pairs of classes by the size of Cohen's d, percent.
    """

    statistic: float
    p: float
    sizes: dict[str, float]


def told_apart(values: NDArray[np.floating], classes: Ints) -> ToldApart:
    """Test whether values (n,) differ between classes (n,), and measure by how much for every pair of classes.

    Cohen's d has the pooled deviation; two classes that are constant and equal have 0. DataError with fewer than two
    classes of two inputs, or where all values are the same.

    Notes
    -----
    Tian et al., ICSE 2020, RQ1: a Kruskal-Wallis test and Cohen's d of each input's neuron coverage by class.
    """
    from idc_core.base.scipy_parts import stats

    groups = [np.asarray(values[classes == one], np.float64) for one in np.unique(classes)]
    groups = [group for group in groups if len(group) > 1]
    if len(groups) < 2 or np.ptp(values) == 0:
        raise DataError("Expected two classes or more with two inputs each, and values that differ.")
    found = stats.kruskal(*groups)
    sizes = np.array([abs(_cohen(*pair)) for pair in combinations(groups, 2)])
    place = np.searchsorted(list(SIZES.values()), sizes, side="right")
    shares = {name: float(100 * (place == number).mean()) for number, name in enumerate(SIZES)}
    return ToldApart(float(found.statistic), float(found.pvalue), shares)


def _cohen(first: Floats, second: Floats) -> float:
    """Return Cohen's d; infinite between constants that differ."""
    freedom = len(first) + len(second) - 2
    pooled = ((len(first) - 1) * first.var(ddof=1) + (len(second) - 1) * second.var(ddof=1)) / freedom
    apart = float(first.mean() - second.mean())
    if not pooled:
        return float(np.copysign(np.inf, apart)) if apart else 0.0
    return apart / float(np.sqrt(pooled))
