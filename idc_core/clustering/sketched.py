"""k-means of a sketch: the clusters of very many values, with proven bounds on how far they are from the exact ones.

Notes
-----
A sketch has cells b = 1..B in ascending order with c_b values of mean v_b, smallest value l_b and width w_b.
*Aligned* is a partition whose cuts lie between cells. Here the cheapest aligned partition P is found; P* is the
cheapest of all, with means mu_1 < .. < mu_k and cuts at their midpoints m_t (values up to m_t lie below cut t), and
D_t = mu_(t+1) - mu_t.

1. *Costs.* The cost of an aligned partition is that of its cells' means plus the scatter within cells, which is the
   same for all aligned partitions and at most sum c_b w_b^2 / 4. So exact k-means of the means, weighted, finds P,
   and the means of its clusters are those of their values, without error.
2. *Rounding cuts.* Measured to fixed centres mu, moving value x across cut t changes the cost by 2 D_t |m_t - x|, for
   each cut on its own. If cut t lies inside cell b, move it to the end of the cell where the sum of that is smaller.
   Below m_t lie a share p of the values, within a share q of the width: the smaller sum is at most c_b w_b min(p q,
   (1 - p)(1 - q)) <= c_b w_b / 4, as the product of both is at most 1/16. Cuts in one cell keep their order, as the
   lower sum grows and the upper one falls with m_t. So an aligned partition P' with every cut in the cell of P*'s, or
   at its ends, costs at most X = sum_t c_b(t) w_b(t) D_t / 2 more than P*: cost(P*) <= cost(P) <= cost(P') <=
   cost(P*) + X.
3. *Where cuts lie.* Let A_t(p) be the cost of the cheapest aligned partition whose cut t is at edge p: chains of
   clusters from both sides give it for all p. By 2, A_t(p) <= cost(P) + X at the cut of P', and P*'s cut lies in a
   cell beside such an edge: between the cells a_t and z_t. X itself is bounded by the range times the largest c_b w_b
   / 2 at first, then by the cells and distances that are left, again until nothing changes.
4. *Centroids and boundaries.* The mean of a run of ascending values falls when either end moves down, and rises when
   either moves up. So mu_j lies between the means of the runs of cells a_(j-1)..a_j and z_(j-1)..z_j, and m_t between
   the midpoints of these.
5. *Silhouettes* s = (b - a) / max(a, b), a the mean distance to the others of the own cluster, b that to the mean of
   the nearest other one. If a changes by at most f and b by at most g, s changes by at most (f + g) / (max(a, b) -
   max(f, g)), and never by more than 2: where the larger stays the larger, |a/b - a'/b'| <= (f + g) / b; where it
   changes, the two parts (b - a)/b and (a' - b')/a' have numerators that sum to at most f + g. Values in cells
   between a_t and z_t count 2. For a value of cell b that is surely in cluster j: its own move is at most w_b, that
   of the others w_j on average; the cluster gains and loses at most h values beside its n that are sure, at distances
   of at most its diameter d, which moves a by at most 2 d h / (n - 1 + h); the nearest mean moves by at most e. So f
   = w_b + w_j + 2 d h / (n - 1 + h) and g = w_b + e.

Where two different partitions cost nearly the same, the bounds are as large as their difference: then no summary
could tell which of them is the exact one. All of this holds up to the rounding of float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from idc_core.base.arrays import Floats, Ints
from idc_core.clustering.kmeans import (
    MIN_NONZERO,
    Clusters,
    SketchBounds,
    best_number,
    boundaries_between,
    check_clusters,
    extend,
    one_at_zero,
    optimal_edges,
)
from idc_core.clustering.points import Partition, Points, own_distances
from idc_core.clustering.sketch import Sketch

_ROUNDS = 20  # of narrowing where cuts lie; three are usual


@dataclass(frozen=True, eq=False)
class SketchedPartitions:
    """A sketch of one neuron's activations parted into several numbers of clusters, to choose one from."""

    sketch: Sketch
    points: Points
    edges: dict[int, Ints]
    partitions: dict[int, Partition]  # by number of clusters; empty where too few values were left to part

    @classmethod
    def of(cls, values: ArrayLike | Sketch, clusters: Sequence[int], drop_zeros: bool = False) -> SketchedPartitions:
        """Part one neuron's activations (n,), or a sketch of them, as `idc_core.clustering.kmeans.partition` does."""
        tried = check_clusters(clusters)
        sketch = values if isinstance(values, Sketch) else Sketch.of(values)
        sketch = sketch.without_zeros() if drop_zeros else sketch
        if drop_zeros and sketch.n_values < MIN_NONZERO:
            return cls(sketch, Points.weighted(np.zeros(1), np.ones(1)), {}, {})
        points = sketch.points()
        edges = optimal_edges(points, [k for k in tried if k <= points.n] or [points.n])
        return cls(sketch, points, edges, {k: Partition.of(points, cut) for k, cut in edges.items()})

    def choose(self, clusters: Sequence[int]) -> Clusters:
        """Return the partition with the best silhouette, and how far it can be from that of all values."""
        if not self.partitions:
            return one_at_zero(np.repeat(self.sketch.sum / self.sketch.count, self.sketch.count))
        k, possible = best_number(self.partitions, clusters)
        tried, best, inner = possible or [k], self.partitions[k], self.edges[k][1:-1]
        boundaries = boundaries_between(best, self.sketch.high[inner - 1], self.sketch.low[inner])
        bounding = _Bounding(self.sketch, self.points, max(tried))
        exact = {number: bounding.ranges(self.edges[number]) for number in tried}
        low, high = exact[k].low, exact[k].high
        low_ends, high_ends = (low[:-1] + low[1:]) / 2, (high[:-1] + high[1:]) / 2
        return Clusters(
            centroids=best.centroids,
            boundaries=boundaries,
            silhouettes={number: self.partitions[number].silhouette for number in possible},
            inertia={number: self.partitions[number].inertia for number in tried},
            counts=best.counts,
            n_values=self.sketch.n_values,
            sketch=SketchBounds(
                cells=len(self.sketch.cell),
                width=float(self.sketch.width.max()),
                centroids=np.maximum(best.centroids - low, high - best.centroids),
                boundaries=np.maximum(boundaries - low_ends, high_ends - boundaries),
                silhouettes={number: bounding.silhouette(self.edges[number], exact[number]) for number in possible},
                inertia={number: max(exact[number].excess, bounding.scatter) for number in tried},
            ),
        )


@dataclass(frozen=True, eq=False)
class _Ranges:
    """Where the exact partition lies."""

    first: Ints  # (k + 1,), for every cut, ends included, the lowest edge that it is not below
    last: Ints  # (k + 1,), and the highest edge that it is not above
    low: Floats  # (k,), the smallest that each centroid can be
    high: Floats  # (k,), the largest
    excess: float  # how much less than the partition found it can cost


class _Bounding:
    """What bounds the exact partitions of the values of a sketch into at most so many clusters."""

    def __init__(self, sketch: Sketch, points: Points, most: int) -> None:
        self.low, self.high = sketch.low - points.origin, sketch.high - points.origin
        self.width, self.points = sketch.width, points
        self.loose: Floats = points.weight * self.width
        self.scatter = float((self.loose * self.width).sum()) / 4
        self._below = _chains(points, most - 1)
        mirrored = replace(points, count=points.count[-1] - points.count[::-1], sum=points.sum[-1] - points.sum[::-1])
        self._above = [chain[::-1] for chain in _chains(mirrored, most - 1)]

    def ranges(self, edges: Ints) -> _Ranges:
        """Narrow down where the cuts of the exact partition lie, given the cheapest aligned one."""
        k, points = len(edges) - 1, self.points
        reached = [self._below[t] + self._above[k - 2 - t] for t in range(k - 1)]
        rounding = 4 * np.finfo(np.float64).eps * points.n * points.square[-1]
        excess = float(self.loose.max()) * float(points.value[-1] - points.value[0]) / 2
        for _ in range(_ROUNDS):
            narrowed = self._ranges(reached, excess, rounding)
            gaps = narrowed.high[1:] - narrowed.low[:-1]
            inside = zip(narrowed.first[1:-1], narrowed.last[1:-1], gaps, strict=True)
            narrower = sum(float(self.loose[a:z].max(initial=0.0) * gap) / 2 for a, z, gap in inside)
            if narrower >= excess:
                break
            excess = narrower
        return replace(narrowed, low=narrowed.low + points.origin, high=narrowed.high + points.origin)

    def _ranges(self, reached: list[Floats], excess: float, rounding: float) -> _Ranges:
        """Return where cuts lie if rounding them costs at most `excess`; centroids are measured from the origin."""
        first, last = [0], [0]
        for gain in reached:
            near = np.flatnonzero(gain >= gain.max() - excess - rounding)
            a, z = int(near[0]), int(near[-1])
            # A cut inside a cell beside an edge; a cell of one value has no inside.
            first.append(a - int(a > 0 and self.width[a - 1] > 0))
            last.append(z + int(z < self.points.n and self.width[z] > 0))
        first.append(self.points.n)
        last.append(self.points.n)
        low = [self._mean(a, b, float(self.low[a])) for a, b in pairwise(first)]
        high = [self._mean(a, b, float(self.high[b - 1])) for a, b in pairwise(last)]
        return _Ranges(np.array(first), np.array(last), np.array(low), np.array(high), excess)

    def _mean(self, start: int, end: int, empty: float) -> float:
        """Return the mean of the values of the cells start..end-1."""
        if end <= start:
            return empty
        weight = self.points.count[end] - self.points.count[start]
        return float(self.points.mean + (self.points.sum[end] - self.points.sum[start]) / weight)

    def silhouette(self, edges: Ints, exact: _Ranges) -> float:
        """Return how far the mean silhouette can be from that of the exact partition."""
        points, weight = self.points, self.points.weight
        if len(edges) == 2:
            return 0.0
        means = np.array([self._mean(a, b, 0.0) for a, b in pairwise(edges)])
        shift = np.maximum(means + points.origin - exact.low, exact.high - means - points.origin)
        change = np.full(points.n, 2.0)
        for j, (a, b) in enumerate(pairwise(edges)):
            sure = slice(exact.last[j], exact.first[j + 1])
            if sure.start >= sure.stop or weight[sure].sum() <= 1:
                continue
            value = points.value[a:b] - means[j]
            left = value + (means[j] - means[j - 1]) if j else np.inf
            right = (means[j + 1] - means[j]) - value if j + 1 < len(means) else np.inf
            larger = np.maximum(own_distances(value, weight[a:b]), np.minimum(left, right))
            own, other = self._moves(a, b, sure, exact, j, float(shift[max(0, j - 1) : j + 2].max()))
            room = larger - np.maximum(own, other)
            least = np.divide(own + other, room, out=np.full(b - a, 2.0), where=room > 0)
            change[sure] = np.minimum(least, 2.0)[sure.start - a : sure.stop - a]
        return float((change * weight).sum() / points.count[-1])

    def _moves(self, a: int, b: int, sure: slice, exact: _Ranges, j: int, shift: float) -> tuple[Floats, Floats]:
        """Return how much both distances of the values of a cluster's cells can change."""
        points = self.points
        n = points.count[sure.stop] - points.count[sure.start]
        start, end = exact.first[j], exact.last[j + 1]
        h = points.count[end] - points.count[start] - n
        diameter = self.high[end - 1] - self.low[start]
        others = self.loose[a:b].sum() / max(points.count[b] - points.count[a] - 1, 1.0)
        return self.width[a:b] + others + 2 * diameter * h / (n - 1 + h), self.width[a:b] + shift


def _chains(points: Points, most: int) -> list[Floats]:
    """Return for 1..most clusters, at each of the n + 1 edges, the largest sum of sum^2 / count of what lies before."""
    every = np.arange(1, points.n + 1)
    chains = [points.sum[1:] ** 2 / points.count[1:]]
    for _ in range(most - 1):
        chains.append(np.maximum(chains[-1], extend(points, every, chains[-1], every)[0]))
    return [np.concatenate(([0.0], chain)) for chain in chains]
