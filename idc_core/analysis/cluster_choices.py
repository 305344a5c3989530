"""What other choices of clusters would make of the same activations: how many cells there are, and are covered."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress, report
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.clustering.points import Partition
from idc_core.coverage.cells import assign, encode
from idc_core.errors import SettingError

_AUTOMATIC = (2, 3, 4)
"""Numbers of clusters that the silhouette chooses from where none is chosen by hand."""

_BY_HAND = (2, 3, 4, 5, 6, 7, 8)
"""Numbers of clusters that can be chosen by hand."""


INDICES: dict[str, Callable[[Partition], float]] = {
    "silhouette": lambda one: one.silhouette,
    "Calinski-Harabasz": lambda one: one.calinski_harabasz,
    "Davies-Bouldin": lambda one: -one.davies_bouldin,
}
"""Indices of how well activations are parted, by which the number of clusters can be chosen: larger is better."""


@dataclass(frozen=True)
class ClusterChoice:
    """What one choice of clusters gives."""

    clustering: str  # a name from `CLUSTERINGS`
    drop_zeros: bool  # whether activations of exactly zero were left out
    k: int | None  # number of clusters chosen by hand; None for the automatic one
    sizes: tuple[int, ...]  # clusters of each neuron
    total: int  # cells there are
    covered: int  # cells that the tests reach
    silhouette: float  # mean over the neurons that have one, -1..1; nan where none has
    calinski_harabasz: float  # the same, 0 or more, larger is better
    davies_bouldin: float  # the same, 0 or more, smaller is better
    index: str = "silhouette"  # of `INDICES`, by which each neuron's number was chosen where it was not by hand

    @property
    def score(self) -> float:
        """Share of the cells that the tests reach, 0..1."""
        return self.covered / self.total


def try_choices(
    train: NDArray[np.floating],
    test: NDArray[np.floating],
    clustering: str = "k-means",
    drop_zeros: bool = False,
    numbers: Sequence[int] = _BY_HAND,
    *,
    on_progress: Progress | None = None,
) -> tuple[ClusterChoice, ...]:
    """Cluster the same activations for the automatic number of clusters, which comes first, and for all of `numbers`.

    The last ones have automatic numbers by other indices than the paper's silhouette, of equals the larger number.
    `train` (n, m) is clustered, `test` (t, m) assigned; a way that finds the number itself has the automatic one only.
    Each neuron is parted once for all numbers; what is measured equals what `idc_core.coverage.idc.IDC` measures.
    """
    if train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1]:
        raise SettingError(
            f"Expected activations of the same neurons, shapes (n, m) and (t, m); got {train.shape} and {test.shape}."
        )
    entry = CLUSTERINGS[clustering]
    tried = sorted({*_AUTOMATIC, *numbers})
    parted = []
    for neuron in range(train.shape[1]):
        report(on_progress, neuron, train.shape[1], "neurons clustered")
        parted.append(entry.partition(train[:, neuron], tried, drop_zeros))
    choices = []
    own, *others = INDICES
    by_index = [(None, index) for index in others] if entry.takes_k else []
    for k, index in [(None, own), *((k, own) for k in (numbers if entry.takes_k else ())), *by_index]:
        usual = entry.numbers(_AUTOMATIC) if k is None else (k,)
        clusters = [of_neuron.choose(_by(of_neuron.partitions, usual, index)) for of_neuron in parted]
        sizes = tuple(of_neuron.k for of_neuron in clusters)
        sorted_in = assign(
            test, [of_neuron.centroids for of_neuron in clusters], [of_neuron.boundaries for of_neuron in clusters]
        )
        covered = len(np.unique(encode(sorted_in, sizes)))
        taken = [of.partitions[one.k] for of, one in zip(parted, clusters, strict=True) if one.k in one.silhouettes]
        scores = (
            _mean([one.silhouette for one in taken]),
            _mean([one.calinski_harabasz for one in taken]),
            _mean([one.davies_bouldin for one in taken]),
        )
        choices.append(ClusterChoice(clustering, drop_zeros, k, sizes, math.prod(sizes), covered, *scores, index=index))
    return tuple(choices)


def _by(partitions: Mapping[int, Partition], numbers: Sequence[int], index: str) -> Sequence[int]:
    """Return the number of clusters that an index chooses, as the only one; all numbers where the silhouette does."""
    possible = [k for k in numbers if k in partitions and k > 1]
    if index == "silhouette" or not possible:
        return numbers
    return (max(possible, key=lambda k: (INDICES[index](partitions[k]), k)),)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
