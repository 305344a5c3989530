"""Ways to split one neuron's activations into clusters, by name: k-means and three alternatives.

Each finds runs of the sorted values; centroids, boundaries, silhouettes and counts are then measured the same way, so
that the ways differ in nothing but where they part the values. Memory is linear in the number of values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idc_core.base.arrays import Ints
from idc_core.base.config import config
from idc_core.base.registry import Registry
from idc_core.clustering.kmeans import (
    MAX_CLUSTERS,
    Clusters,
    Partitions,
    Split,
    check_clusters,
    optimal_edges,
    partition,
)
from idc_core.clustering.points import Partition, Points
from idc_core.clustering.sketch import Sketch
from idc_core.clustering.sketched import SketchedPartitions
from idc_core.errors import SettingError

_STEPS = 100  # of expectation maximisation; started at the k-means optimum it needs about ten


@dataclass(frozen=True)
class Clustering:
    """A way to split one neuron's activations."""

    name: str
    label: str
    help: str
    split: Split  # parts the points
    takes_k: bool = True  # whether it can be told how many clusters to find
    sketched: bool = False  # whether very many values are clustered by a sketch, with proven bounds

    def check(self, clusters: Sequence[int]) -> None:
        """Refuse numbers that cannot be, and a number chosen by hand where the way finds the number itself."""
        numbers = check_clusters(clusters)
        if not self.takes_k and len(numbers) == 1:
            raise SettingError(
                f"{self.label} finds the number of clusters itself, so it cannot be {numbers[0]} by choice. "
                f"Leave the number to it, or choose another way to cluster."
            )

    def sketches(self, count: int) -> bool:
        """Whether it parts a sketch of so many values: k-means, from ``sketch_from`` of the config file on."""
        return self.sketched and count >= config().sketch_from

    def partition(
        self, values: ArrayLike | Sketch, clusters: Sequence[int], drop_zeros: bool = False
    ) -> Partitions | SketchedPartitions:
        """Part activations into every one of several numbers of clusters, as `idc_core.clustering.kmeans.partition`.

        Very many are parted by a sketch of them, as `sketches` says, and what is a sketch already in any case.
        """
        if isinstance(values, Sketch) or self.sketches(np.size(values)):
            return SketchedPartitions.of(values, clusters, drop_zeros)
        return partition(values, clusters if self.takes_k else self.numbers(clusters), drop_zeros, self.split)

    def numbers(self, clusters: Sequence[int]) -> Sequence[int]:
        """Return the numbers of clusters that may come out where these are asked for."""
        return clusters if self.takes_k else range(2, MAX_CLUSTERS + 1)

    def cluster(
        self, values: ArrayLike | Sketch, clusters: Sequence[int] = (2, 3, 4), drop_zeros: bool = False
    ) -> Clusters:
        """Split one neuron's activations (n,), in any order, or a sketch of them, into clusters."""
        self.check(clusters)
        return self.partition(values, clusters, drop_zeros).choose(self.numbers(clusters))


CLUSTERINGS: Registry[Clustering] = Registry("clustering")
"""Ways to cluster by name, entered by `clustering`; "k-means" is the paper's."""


def clustering(
    name: str, *, label: str, help: str, takes_k: bool = True, sketched: bool = False
) -> Callable[[Split], Split]:
    """Enter a way to cluster into `CLUSTERINGS`.

    The decorated function ``split(points, ks) -> {k: edges}`` parts `Points`, the different values in ascending order,
    into every number of clusters in `ks` that is possible. Edges are ascending int64 (k + 1,) from 0 to ``points.n``:
    cluster i holds the points from edge i to edge i + 1. `takes_k`: whether it can be told how many clusters to find.
    `sketched`: whether very many values are clustered by a sketch, whose bounds are proven for k-means.
    """

    def enter(split: Split) -> Split:
        CLUSTERINGS.enter(name, Clustering(name, label, help, split, takes_k, sketched))
        return split

    return enter


clustering(
    "k-means",
    label="k-means",
    help="Squared distances to the centroids are as small as they can be; the paper's way.",
    sketched=True,
)(optimal_edges)


@clustering(
    "hierarchical",
    label="Hierarchical (Ward)",
    help="Starts from single values and joins what adds least to the squared distances.",
)
def _ward_edges(points: Points, ks: list[int]) -> dict[int, Ints]:
    """Part points by agglomeration: clusters that add least to the sum of squares are joined first.

    J. H. Ward (1963), by scikit-learn's ``ward_tree`` with every value joined to its two neighbours. That loses
    nothing: in one dimension the pair that adds least is always a pair of neighbours. For clusters A and C of a and c
    values with B between them, at distances x and y from it, joining A and C adds (x + y)^2 / (1/a + 1/c); for that to
    be less than what joining A and B, and B and C, add (below a x^2 and c y^2), the shares x / (x + y) and y / (x + y)
    would have to have squares that sum to more than 1.
    """
    if points.n == 1:
        return {1: np.array([0, 1])}
    from scipy.sparse import diags_array
    from sklearn.cluster import ward_tree

    values = np.repeat(_standardised(points), points.weight.astype(np.int64))
    n = len(values)
    neighbours = diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=(-1, 1), format="csr")
    joined = ward_tree(values[:, None], connectivity=neighbours)[0]
    start = [*range(n), *[0] * (n - 1)]  # where the run of every cluster begins
    places = []  # where the two runs of every join meet
    for step, (first, other) in enumerate(joined.tolist(), start=n):
        start[step] = min(start[first], start[other])
        places.append(max(start[first], start[other]))
    # A place among all values is a place among the different ones: equal values are joined before any others.
    parted = np.searchsorted(points.count, places[::-1]).astype(np.int64)
    return {k: np.concatenate(([0], np.sort(parted[: k - 1]), [points.n])) for k in ks}


@clustering(
    "dbscan",
    label="DBSCAN",
    help="Clusters are crowded stretches with thin ones between them; it finds their number itself.",
    takes_k=False,
)
def _dense_edges(points: Points, ks: list[int]) -> dict[int, Ints]:
    """Part points by density: a cluster is a run of crowded places, and thin places lie between clusters.

    `ks` is not used: the density says how many clusters there are. Which places are crowded says `_density_rule`.

    M. Ester, H.-P. Kriegel, J. Sander, X. Xu, "A Density-Based Algorithm for Discovering Clusters", KDD 1996. Labels
    equal those of scikit-learn's ``DBSCAN``, which lists all pairs of values within reach of each other: quadratic in
    their number. On a line it takes two binary searches a value. What DBSCAN calls noise goes to the cluster whose mean
    is nearest; where no place is crowded, all values are one cluster.
    """
    label = _dense_labels(points.value, points.weight, *_density_rule(points))
    if (label < 0).all():
        return {1: np.array([0, points.n])}
    inside = label >= 0
    size = np.bincount(label[inside], points.weight[inside])
    means = np.bincount(label[inside], (points.weight * points.value)[inside]) / size
    label[~inside] = np.searchsorted((means[:-1] + means[1:]) / 2, points.value[~inside])
    edges = np.concatenate(([0], 1 + np.flatnonzero(np.diff(label)), [points.n]))
    return {len(edges) - 1: edges}


def _density_rule(points: Points) -> tuple[float, int]:
    """Return how far a value's surroundings reach, and how many values there make its place crowded.

    The reach is 1.06 s n^(-1/5) for n values with standard deviation s: D. W. Scott's (1979) rule for the width of a
    kernel that shows the density of n values. A place is crowded where at least as many values lie within reach as if
    all were spread evenly with the same deviation, over a stretch of s sqrt(12); and at least 4.
    """
    n = float(points.count[-1])
    width = 1.06 * n**-0.2  # in units of the deviation
    return width * _deviation(points), max(4, int(np.ceil(n * 2 * width / np.sqrt(12))))


def _dense_labels(value: NDArray[np.float64], weight: NDArray[np.float64], reach: float, least: int) -> Ints:
    """Label ascending different values by DBSCAN: 0 for the lowest cluster, -1 for noise."""
    count = np.concatenate(([0.0], np.cumsum(weight)))
    first, last = np.searchsorted(value, value - reach, "left"), np.searchsorted(value, value + reach, "right")
    core = np.flatnonzero(count[last] - count[first] >= least)
    label = np.full(len(value), -1, dtype=np.int64)
    if not len(core):
        return label
    cluster = np.cumsum(np.diff(value[core], prepend=value[core[0]]) > reach)
    # The nearest crowded place below and above each value; of two in reach the lower one counts.
    place = np.searchsorted(core, np.arange(len(value)), "right")
    below, above = np.maximum(place - 1, 0), np.minimum(place, len(core) - 1)
    for nearest in (above, below):
        near = np.abs(value - value[core[nearest]]) <= reach
        label[near] = cluster[nearest[near]]
    return label


@clustering(
    "gaussian-mixture",
    label="Gaussian mixture",
    help="Fits bell curves; a value belongs to the one that makes it most probable.",
)
def _mixture_edges(points: Points, ks: list[int]) -> dict[int, Ints]:
    """Part points where one normal distribution of a mixture becomes more probable than its neighbour.

    scikit-learn's ``GaussianMixture``, by expectation maximisation from the exact k-means partition, so that nothing is
    random. Neighbouring components are compared between their means only, where the odds fall from one side to the
    other; the tails of a wide component beyond a narrow one belong to the narrow one, so that clusters are runs. A
    number for which a component is nowhere the more probable one is left out; where that holds for all numbers, the
    result has as many clusters as came out at most.
    """
    if ks == [1]:
        return {1: np.array([0, points.n])}
    fits = [_mixture(points, edges) for edges in optimal_edges(points, ks).values()]
    complete = {k: edges for k, edges in zip(ks, fits, strict=True) if len(edges) == k + 1}
    most = max(fits, key=len)
    return complete or {len(most) - 1: most}


def _mixture(points: Points, start: Ints) -> Ints:
    """Return the edges of a fitted mixture; fewer than those it starts from where a component holds no point."""
    from sklearn.mixture import GaussianMixture

    begun, k = Partition.of(points, start), len(start) - 1
    values, deviation = _standardised(points), _deviation(points)
    spread = np.array(
        [np.average((values[a:b] - values[a:b].mean()) ** 2, weights=points.weight[a:b]) for a, b in _runs(start)]
    )
    mixture = GaussianMixture(
        k,
        covariance_type="spherical",
        max_iter=_STEPS,
        random_state=0,
        weights_init=begun.counts / begun.counts.sum(),
        precisions_init=1 / np.maximum(spread, 1e-6),
        means_init=((begun.centroids - points.origin - points.mean) / deviation)[:, None],
    )
    mixture.fit(np.repeat(values, points.weight.astype(np.int64))[:, None])
    order = np.argsort(mixture.means_[:, 0], kind="stable")
    mean, width, share = mixture.means_[order, 0], mixture.covariances_[order], mixture.weights_[order]
    odds = np.log(share) - np.log(width) / 2 - (values[:, None] - mean) ** 2 / (2 * width)
    edges = [0]
    for component in range(k - 1):
        low, high = np.searchsorted(values, mean[component : component + 2], "right")
        above = odds[low:high, component + 1] > odds[low:high, component]
        edges.append(int(low + np.argmax(above)) if above.any() else int(high))
    return np.unique([*edges, points.n])


def _runs(edges: Ints) -> list[tuple[int, int]]:
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _deviation(points: Points) -> float:
    """Return the standard deviation; 1 where all values are equal."""
    return float(np.sqrt(points.square[-1] / points.count[-1])) or 1.0


def _standardised(points: Points) -> NDArray[np.float64]:
    """Return the values with mean 0 and standard deviation 1, so that limits within scikit-learn are relative."""
    values: NDArray[np.float64] = (points.value - points.mean) / _deviation(points)
    return values
