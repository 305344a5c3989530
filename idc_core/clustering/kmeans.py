"""Algorithm 2 of the paper: one neuron's activations in clusters, their number chosen by the silhouette.

In one dimension clusters are runs of the sorted values, so both halves of the algorithm are exact here: the
optimal k-means partition comes from dynamic programming over the sorted values, the silhouette from prefix
sums. Nothing is sampled and nothing is random. Other ways to part the values are in `idc_core.clustering.methods`.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idc_core.base.arrays import Floats, Ints
from idc_core.base.parameters import is_whole, shown
from idc_core.base.ranges import CLUSTERS
from idc_core.clustering.points import Partition, Points
from idc_core.errors import SettingError

MAX_CLUSTERS = int(CLUSTERS.high)

_MAX_MAGNITUDE = 1e100
"""Sums of squares of larger activations could leave the range of float64."""

Split = Callable[[Points, list[int]], dict[int, Ints]]
"""A way to part points into the given numbers of clusters: for each possible one its edges (0, ..., n)."""

MIN_NONZERO = 10  # the original program's limit: below it a neuron gets one centroid, 0
_BLOCKS = 64  # granularity of the bounds on boundary positions; more blocks cost more than they prune


@dataclass(frozen=True)
class SketchBounds:
    """How far clusters of a sketch can be from those of all values, as `idc_core.clustering.sketched` proves."""

    cells: int  # of the sketch, that hold values
    width: float  # the widest, in the unit of the activations
    centroids: Floats  # (k,), how far each centroid can be from the exact one
    boundaries: Floats  # (k - 1,), the same of the boundaries
    silhouettes: dict[int, float]  # the same of the mean silhouettes
    inertia: dict[int, float]  # the same of the inertia


def sketch_sentence(bounds: Sequence[SketchBounds | None], values: int) -> str:
    """Say how far clusters of several neurons can be from the exact ones; "" where all of them are exact."""
    used = [bound for bound in bounds if bound is not None]
    if not used:
        return ""
    centroids = max(float(bound.centroids.max()) for bound in used)
    boundaries = max(float(bound.boundaries.max(initial=0.0)) for bound in used)
    silhouettes = max((value for bound in used for value in bound.silhouettes.values()), default=0.0)
    return (
        f"Clusters are those of a sketch of {values:,} values per neuron. "
        f"Proven bounds on the distance to exact k-means: centroids {centroids:.2g}, boundaries {boundaries:.2g} "
        f"(unit of the activations), silhouettes {silhouettes:.2g}."
    )


@dataclass(frozen=True)
class Clusters:
    """The clusters of one neuron's activations."""

    centroids: Floats  # (k,), means of the clusters, ascending, in the unit of the activations
    boundaries: Floats
    """(k - 1,), midpoints between neighbouring centroids; a value on a boundary belongs to the lower centroid. Where a
    midpoint does not part the clusters, which k-means never leaves so, the middle of the gap between them."""
    silhouettes: dict[int, float]
    """Mean silhouette, -1..1, for every number of clusters that was tried; empty where none was possible."""
    inertia: dict[int, float]
    """Sum of squared distances to the cluster's centroid, for the same numbers of clusters and for `k`."""
    counts: Ints  # (k,), how many of the clustered values each cluster holds
    n_values: int  # how many values were clustered
    sketch: SketchBounds | None = None  # where a sketch of the values was clustered

    @property
    def k(self) -> int:
        """Number of clusters."""
        return len(self.centroids)


def optimal_edges(points: Points, ks: list[int]) -> dict[int, Ints]:
    """Return for each k the k + 1 edges (0, ..., n) of the partition with the smallest sum of squares.

    A partition is a choice of k - 1 boundary positions. A bound on the cost of every partition that has its
    t-th boundary in a given block of positions rules most blocks out; dynamic programming over the positions
    that are left gives the exact optimum.
    """
    if ks == [1]:
        return {1: np.array([0, points.n])}
    bounds = _Bounds.of(points, max(ks))
    inner = {k: _best_boundaries(points, bounds.candidates(k)) for k in ks}
    return {k: np.concatenate(([0], boundaries, [points.n])) for k, boundaries in inner.items()}


def cluster(values: ArrayLike, clusters: int | Sequence[int] = (2, 3, 4), drop_zeros: bool = False) -> Clusters:
    """Split one neuron's activations (n,) into the number of clusters with the best silhouette, of equals the larger.

    S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing", ICSE 2020, Algorithm
    2. The silhouette follows P. J. Rousseeuw (1987): single points score 0, and the mean distance within a cluster of n
    points is taken over the n - 1 others; equation (3) of the paper prints 1 - n there. k-means is solved to the global
    optimum (up to the rounding of float64) instead of from random starts.
    """
    return partition(values, clusters, drop_zeros).choose(clusters)


@dataclass(frozen=True, eq=False)
class Partitions:
    """One neuron's activations parted into several numbers of clusters, to choose one from."""

    ordered: NDArray[np.generic]  # (n,), the values that were parted, ascending
    partitions: dict[int, Partition]  # by number of clusters; empty where too few values were left to part

    def choose(self, clusters: int | Sequence[int]) -> Clusters:
        """Return the partition with the best silhouette, as `cluster` does for these numbers of clusters."""
        if not self.partitions:
            return one_at_zero(self.ordered)
        k, possible = best_number(self.partitions, clusters)
        best = self.partitions[k]
        first = np.cumsum(best.counts)[:-1]
        below, above = self.ordered[first - 1].astype(np.float64), self.ordered[first].astype(np.float64)
        return Clusters(
            centroids=best.centroids,
            boundaries=boundaries_between(best, below, above),
            silhouettes={k: self.partitions[k].silhouette for k in possible},
            inertia={k: self.partitions[k].inertia for k in possible or [k]},
            counts=best.counts,
            n_values=len(self.ordered),
        )


def partition(
    values: ArrayLike, clusters: int | Sequence[int], drop_zeros: bool = False, split: Split = optimal_edges
) -> Partitions:
    """Part one neuron's activations into every one of several numbers of clusters."""
    tried = check_clusters(clusters)
    ordered = _check_values(values)
    if drop_zeros:
        ordered = ordered[ordered != 0]
        if len(ordered) < MIN_NONZERO:
            return Partitions(ordered, {})
    points = Points.of(ordered)
    possible = [k for k in tried if k <= points.n] or [points.n]
    return Partitions(ordered, {k: Partition.of(points, edges) for k, edges in split(points, possible).items()})


def best_number(partitions: dict[int, Partition], clusters: int | Sequence[int]) -> tuple[int, list[int]]:
    """Return the number of clusters with the best silhouette, of equals the larger, and those that were possible."""
    possible = [k for k in check_clusters(clusters) if k in partitions]
    return max(possible, key=lambda k: (partitions[k].silhouette, k), default=max(partitions)), possible


def boundaries_between(found: Partition, below: Floats, above: Floats) -> Floats:
    """Return the values up to which each cluster but the last one reaches.

    `below` (k - 1,) are their largest values, `above` (k - 1,) the smallest ones of the clusters that follow.
    """
    midpoints: Floats = (found.centroids[:-1] + found.centroids[1:]) / 2
    parting = (below <= midpoints) & (midpoints < above)
    return np.where(parting, midpoints, np.minimum((below + above) / 2, np.nextafter(above, -np.inf)))


def check_clusters(clusters: int | Iterable[int]) -> list[int]:
    """Return the numbers of clusters to try, or the only one, ascending; SettingError where one comes twice."""
    text = f"Expected clusters to be whole numbers from 2 to {MAX_CLUSTERS}, for example (2, 3, 4)"
    try:
        tried = list(clusters) if isinstance(clusters, Iterable) else [operator.index(clusters)]
    except TypeError:
        raise SettingError(f"{text}; got {shown(clusters)}.") from None
    for k in tried:
        if not is_whole(k, 2, MAX_CLUSTERS):
            raise SettingError(f"{text}; got {shown(k)}.")
    if not tried:
        raise SettingError(f"{text}; got none.")
    if len(set(map(int, tried))) < len(tried):
        raise SettingError(f"{text}, each once; got {shown(tuple(map(int, tried)))}.")
    return sorted(map(int, tried))


def _check_values(values: ArrayLike) -> NDArray[np.generic]:
    """Return the values in ascending order, in their own type."""
    array = check_kind(values)
    ordered = np.sort(array)  # puts nan last, so the two ends tell whether everything is finite
    check_range(array, float(ordered[0]), float(ordered[-1]))
    return ordered


def check_kind(values: ArrayLike) -> NDArray[np.generic]:
    """Return values as an array, and refuse what is not one neuron's activations."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.ndim != 1:
        raise SettingError(
            f"Expected one neuron's activations as a one-dimensional array of real numbers, "
            f"got {array.dtype} of shape {array.shape}; pass one column."
        )
    if not len(array):
        raise SettingError("Expected activations to cluster, got none; fit on some training inputs.")
    return array


def check_range(array: NDArray[np.generic], low: float, high: float) -> None:
    """Refuse values that are not finite, or too large; `low` and `high` are the ends in sorted order."""
    if not (low >= -_MAX_MAGNITUDE and high <= _MAX_MAGNITUDE):
        nan, inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        large = int((np.abs(array.astype(np.float64)) > _MAX_MAGNITUDE).sum()) - inf
        raise SettingError(
            f"Expected finite activations of at most {_MAX_MAGNITUDE:g}, got {nan} nan, {inf} infinite and "
            f"{large} larger ones among {len(array)}; check the weights and the scale of the inputs."
        )


def one_at_zero(nonzero: NDArray[np.generic]) -> Clusters:
    """Return what the original program makes of a neuron with too few non-zero activations."""
    inertia = float(np.square(nonzero, dtype=np.float64).sum())
    return Clusters(np.zeros(1), np.zeros(0), {}, {1: inertia}, np.array([len(nonzero)]), len(nonzero))


@dataclass(frozen=True)
class _Bounds:
    """Lower bounds on the cost of partitions, by the block of positions each boundary lies in.

    A boundary in block a is at least at `first[a]` and at most at `last[a]`. With two neighbouring boundaries
    in blocks a < b the cluster between them holds at least the points last[a]..first[b]-1, and its cost can
    only be higher: `between[a, b]`. `before[t]` and `after[t]` are the cheapest chains of t + 1 clusters that
    end at, and start from, each block. A block makes the bound loose by the squares it holds, so blocks are
    cut where points are many and where they lie far out.
    """

    points: Points
    first: Ints
    last: Ints
    between: Floats
    before: list[Floats]
    after: list[Floats]

    @classmethod
    def of(cls, points: Points, most: int) -> "_Bounds":
        """Lay out the blocks, at least most - 1 of them, and chain the bounds for up to `most` clusters."""
        starts = [np.linspace(1, points.n - 1, max(most, _BLOCKS), dtype=np.int64)]
        for mass, blocks in ((points.count, 3 * _BLOCKS), (points.square, _BLOCKS)):
            starts.append(np.searchsorted(mass, np.linspace(0, mass[-1], blocks, endpoint=False)))
        first = np.unique(np.clip(np.concatenate(starts), 1, points.n - 1))
        last = np.append(first[1:] - 1, points.n - 1)
        between = points.cost(last[:, None], first[None, :])
        block = np.arange(len(first))
        between[block[:, None] > block] = np.inf
        between[block, block] = 0.0
        before = [points.cost(np.zeros_like(first), first)]
        after = [points.cost(last, np.full_like(last, points.n))]
        for _ in range(most - 2):
            before.append((before[-1][:, None] + between).min(axis=0))
            after.append((between + after[-1]).min(axis=1))
        return cls(points, first, last, between, before, after)

    def candidates(self, k: int) -> list[Ints]:
        """Return for each of the k - 1 boundaries the positions at which an optimal partition may have it."""
        # The bounds are differences of prefix sums, which carry the rounding of the whole sum.
        rounding = 4 * np.finfo(np.float64).eps * self.points.n * self.points.square[-1]
        limit = self._reached(k) + rounding
        kept = [self.before[t] + self.after[k - 2 - t] <= limit for t in range(k - 1)]
        sizes = self.last - self.first + 1
        return [1 + np.flatnonzero(np.repeat(keep, sizes)) for keep in kept]

    def _reached(self, k: int) -> float:
        """Cost of a good partition: the cheapest chain of blocks, its boundaries moved to midpoints."""
        points = self.points
        block = k - 2 + int(np.argmin(self.before[k - 2][k - 2 :] + self.after[0][k - 2 :]))
        path = [block]
        for t in range(k - 3, -1, -1):
            block = t + int(np.argmin(self.before[t][t:block] + self.between[t:block, block]))
            path.append(block)
        edges = np.concatenate(([0], self.first[path[::-1]], [points.n]))
        for _ in range(100):  # it need not settle: any partition's cost is a valid limit
            means = points.mean + np.diff(points.sum[edges]) / np.diff(points.count[edges])
            moved = edges.copy()
            moved[1:-1] = np.searchsorted(points.value, (means[:-1] + means[1:]) / 2, side="right")
            if (moved == edges).all() or (np.diff(moved) <= 0).any():
                break
            edges = moved
        return float(points.cost(edges[:-1], edges[1:]).sum())


def _best_boundaries(points: Points, candidates: list[Ints]) -> Ints:
    """Return the k - 1 boundary positions, one of each candidate set, of the cheapest partition.

    The sum of squares over all points is fixed, so the cheapest partition has the largest sum over clusters
    of (sum of values)^2 / count; that form cancels least.
    """
    value = points.sum[candidates[0]] ** 2 / points.count[candidates[0]]
    choices = []
    for columns, rows in pairwise(candidates):
        value, choice = extend(points, columns, value, rows)
        choices.append(choice)
    rest = points.sum[-1] - points.sum[candidates[-1]]
    value = value + rest**2 / (points.count[-1] - points.count[candidates[-1]])
    at = int(np.argmax(value))
    boundaries = [candidates[-1][at]]
    for columns, choice in zip(candidates[-2::-1], choices[::-1], strict=True):
        at = choice[at]
        boundaries.append(columns[at])
    return np.array(boundaries[::-1], dtype=np.int64)


def extend(points: Points, columns: Ints, value: Floats, rows: Ints) -> tuple[Floats, Ints]:
    """Add a cluster: for every row the best value[c] + (cluster columns[c]..row), and the c that gives it.

    The best column never decreases with the row (the cost is concave Monge), so rows are solved level by
    level: each searches between the choices of its two solved neighbours, all rows of a level at once.
    """
    limit = np.searchsorted(columns, rows) - 1  # the last column before each row
    unusable = int(np.searchsorted(limit, 0))  # rows that have none
    n = len(rows) - unusable
    best = np.full(len(rows), -np.inf)
    choice = np.zeros(n + 2, dtype=np.int64)  # from 1 on, between two fences
    choice[-1] = len(columns) - 1
    step = 1 << n.bit_length()
    while step > 1:
        half = step // 2
        solved = np.arange(half, n + 1, step)
        row = solved - 1 + unusable
        low = choice[solved - half]
        high = np.minimum(choice[np.minimum(solved + half, n + 1)], limit[row])
        lengths = high - low + 1
        starts = np.cumsum(lengths) - lengths
        column = np.arange(starts[-1] + lengths[-1]) + np.repeat(low - starts, lengths)
        position = columns[column]
        reached = np.repeat(points.sum[rows[row]], lengths) - points.sum[position]
        reached *= reached
        reached /= np.repeat(points.count[rows[row]], lengths) - points.count[position]
        reached += value[column]
        best[row] = np.maximum.reduceat(reached, starts)
        hits = np.flatnonzero(reached == np.repeat(best[row], lengths))
        choice[solved] = column[hits[np.searchsorted(hits, starts)]]
        step = half
    return best, np.concatenate((np.zeros(unusable, dtype=np.int64), choice[1:-1]))
