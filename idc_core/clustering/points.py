"""One neuron's activations as weighted points on a line, and how good a way to part them is.

In one dimension clusters are runs of the sorted values: a partition is a list of edges, and its centroids, sums of
squares and silhouette come from prefix sums, exactly and without a matrix of distances.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats, Ints


@dataclass(frozen=True)
class Points:
    """Different values in ascending order, with how often each occurs and prefix sums over them.

    Equal values never need to be parted (a ReLU's zeros collapse into one point). Values are measured from
    `origin`, their median, and summed as distances from their mean: sums of values far from 0 would lose the
    digits that tell the values apart. Prefix arrays have n + 1 entries; entry i sums the first i points.
    """

    n: int
    origin: float
    value: Floats  # (n,)
    weight: Floats  # (n,)
    mean: float
    count: Floats  # (n + 1,) prefix sum of weight
    sum: Floats  # (n + 1,) of weight * (value - mean)
    square: Floats  # (n + 1,) of weight * (value - mean)^2

    @classmethod
    def of(cls, ordered: NDArray[np.generic]) -> "Points":
        """Collapse equal neighbours of sorted values and sum up."""
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        weight = np.diff(starts, append=len(ordered)).astype(np.float64)
        return cls._summed(ordered[starts].astype(np.float64), weight, float(ordered[len(ordered) // 2]), len(ordered))

    @classmethod
    def weighted(cls, values: Floats, weight: Floats) -> "Points":
        """Sum up ascending values that occur as often as their weight says."""
        count = np.cumsum(weight)
        middle = int(np.searchsorted(count, count[-1] / 2))
        return cls._summed(values, weight, float(values[middle]), int(count[-1]))

    @classmethod
    def _summed(cls, values: Floats, weight: Floats, origin: float, number: int) -> "Points":
        value = values - origin
        mean = float((value * weight).sum()) / number
        centred = value - mean
        moments = (weight, weight * centred, weight * centred * centred)
        count, total, square = (np.concatenate(([0.0], np.cumsum(moment))) for moment in moments)
        return cls(len(value), origin, value, weight, mean, count, total, square)

    def cost(self, start: Ints, end: Ints) -> Floats:
        """Squared distances to their mean of the points start..end-1; 0 where there are none."""
        count = np.maximum(self.count[end] - self.count[start], 1.0)
        total = self.sum[end] - self.sum[start]
        cost: Floats = self.square[end] - self.square[start] - total * total / count
        return cost


@dataclass(frozen=True)
class Partition:
    """One partition, measured: sums are taken around each cluster's own mean, so that no digits cancel."""

    centroids: Floats
    counts: Ints
    inertia: float
    silhouette: float
    calinski_harabasz: float
    """Squared distances between clusters over those within, each per degree of freedom: larger is better; infinite
    where all values are at their centroids, NaN for one cluster (T. Calinski, J. Harabasz, 1974)."""
    davies_bouldin: float
    """How near each cluster is to the one most like it, in their mean widths, on average: smaller is better; NaN
    for one cluster (D. L. Davies, D. W. Bouldin, 1979)."""

    @classmethod
    def of(cls, points: Points, edges: Ints) -> "Partition":
        """Measure the clusters that start and end at the given edges."""
        pairs = list(pairwise(edges))
        counts = np.diff(points.count[edges])
        means = np.array([_mean(points.value[a:b], points.weight[a:b]) for a, b in pairs])
        inertia = silhouette = 0.0
        widths = np.zeros(len(means))
        for i, (a, b) in enumerate(pairs):
            value, weight = points.value[a:b] - means[i], points.weight[a:b]
            inertia += float((weight * value * value).sum())
            widths[i] = float((weight * np.abs(value)).sum()) / counts[i]
            # Means are ordered, so the nearest other cluster is a neighbour; all its points lie on one side,
            # so the mean distance to them is the distance to their mean.
            left = value + (means[i] - means[i - 1]) if i else np.inf
            right = (means[i + 1] - means[i]) - value if i + 1 < len(means) else np.inf
            if counts[i] > 1 and len(means) > 1:
                silhouette += _silhouette_sum(value, weight, np.minimum(left, right))
        silhouette /= float(points.count[-1])
        return cls(
            means + points.origin,
            counts.astype(np.int64),
            inertia,
            silhouette,
            _calinski_harabasz(means, counts, inertia),
            _davies_bouldin(means, widths),
        )


def _calinski_harabasz(means: Floats, counts: Floats, inertia: float) -> float:
    k, n = len(means), float(counts.sum())
    if k < 2:
        return float("nan")
    between = float((counts * (means - (counts * means).sum() / n) ** 2).sum())
    return between / (k - 1) / (inertia / (n - k)) if inertia > 0 else float("inf")


def _davies_bouldin(means: Floats, widths: Floats) -> float:
    if len(means) < 2:
        return float("nan")
    apart = np.abs(means[:, None] - means) + np.diag(np.full(len(means), np.inf))
    return float(((widths[:, None] + widths) / apart).max(1).mean())


def _mean(value: Floats, weight: Floats) -> float:
    """Weighted mean, summed around one of the values so that a large common part costs no digits."""
    near = float(value[len(value) // 2])
    return near + float(((value - near) * weight).sum()) / float(weight.sum())


def _silhouette_sum(value: Floats, weight: Floats, other: Floats) -> float:
    """Sum of (other - own) / max(other, own) over a cluster; 0 where both are 0.

    `own` is the mean distance of a point to the other points of its cluster; `other` the mean distance to the points of
    the nearest other cluster.
    """
    own = own_distances(value, weight)
    larger = np.maximum(other, own)
    scores = np.divide(other - own, larger, out=np.zeros_like(own), where=larger > 0)
    return float((scores * weight).sum())


def own_distances(value: Floats, weight: Floats) -> Floats:
    """Return the mean distance of every point of a cluster to the other points, from prefix sums."""
    count, total = np.cumsum(weight), np.cumsum(weight * value)
    own: Floats = (value * (2 * count - count[-1]) + (total[-1] - 2 * total)) / (count[-1] - 1)
    return own
