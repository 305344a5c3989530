"""Importance-Driven Coverage: the share of important-neuron cluster combinations that a test set reaches."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.clustering.kmeans import Clusters
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.coverage.cells import CellCounts, assign, encode
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion, criterion
from idc_core.errors import DataError, SettingError
from idc_core.growing import give_back
from idc_core.importance.important_neurons import PRIORITIES, most_important
from idc_core.importance.training_pass import RankedLayer, SketchedLayer, rank_layers
from idc_core.limits import M
from idc_core.lrp.rules import NamedRule, RelevanceSettings
from idc_core.progress import Progress, report
from idc_core.tracing.batching import Inputs
from idc_core.tracing.neurons import neuron_activation, neuron_axes
from idc_core.tracing.trace import trace
from idc_core.tracing.transfers import brought_back

DECIMALS = 2
"""To how many places the original program rounds its centroids."""


@criterion(
    "idc",
    label="Importance-Driven Coverage",
    help="Share of the combinations of important neurons' clusters that the tests reach.",
    citation="Gerasimou, Eniser, Sen, Cakan, ICSE 2020, equations 5 and 6",
)
class IDC(Criterion):
    """Importance-Driven Coverage of one layer.

    Parameters
    ----------
    model : Module
        Any network that returns scores.
    layer : str
        A name from ``named_modules()``.
    m : int
        Number of important neurons.
    rule : str, mapping or RelevanceSettings
        Relevance rule: a name from `RULES`, a table of rules for layers, or the rule with its parameters.
    clusters : sequence of int
        Numbers of clusters to choose from, by silhouette.
    drop_zeros : bool
        Leave activations of exactly zero out of the clustering.
    clustering : str
        Way to cluster, a name from `CLUSTERINGS`; "k-means" is the paper's.
    priority : {"sum", "absolute"}
        What makes a neuron important.
    original : bool
        Follow the original program: only correctly classified training inputs take part, activations of zero are
        dropped in dense layers, and centroids are rounded to two decimals.
    batch_size : int, optional
        Default: chosen from the network's size.
    in_memory : int, optional
        Bytes of training activations that `fit` holds in memory; more go to files in the cache folder, which are gone
        when they are no longer used. Default: ``activations_mib`` of the config file.
    **parameters
        Of the rule, such as `epsilon`, `gamma`, `alpha` and `bias`, as in `RelevanceSettings`.

    Attributes
    ----------
    importance : ndarray, float64 (neurons,)
        Priority of every neuron of the layer, summed over the training inputs.
    important : ndarray, int64 (m,)
        The important neurons, most important first.
    clusters : tuple of Clusters
        The clusters of each important neuron.
    centroids : tuple of ndarray, float64 (k,)
        Their centroids, ascending.

    Raises
    ------
    SettingError
        If a parameter is outside what the method defines.

    References
    ----------
    .. [1] S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing",
       ICSE 2020, Algorithms 1 and 2, equations 1 to 6.
    """

    def __init__(
        self,
        model: nn.Module,
        layer: str,
        m: int = 6,
        rule: NamedRule = "epsilon",
        clusters: Sequence[int] = (2, 3, 4),
        drop_zeros: bool = False,
        *,
        clustering: str = "k-means",
        priority: str = "sum",
        original: bool = False,
        batch_size: int | None = None,
        in_memory: int | None = None,
        **parameters: Any,
    ) -> None:
        self.model, self.layer, self.m = model, layer, int(M.check(m))
        self.settings = RelevanceSettings.of(rule, **parameters)
        self.priority = PRIORITIES[priority]
        self.cluster_numbers, self.drop_zeros, self.original = tuple(clusters), drop_zeros, original
        self.clustering = CLUSTERINGS[clustering]
        self.clustering.check(self.cluster_numbers)
        self.batch_size, self.in_memory = batch_size, in_memory
        self._axis = neuron_axes(model, [layer])[layer]
        self._counts: CellCounts | None = None

    def fit(self, inputs: Inputs, targets: Any = None, *, on_progress: Progress | None = None) -> Self:
        """Find the important neurons and their clusters from training inputs; nothing is covered yet.

        Parameters
        ----------
        inputs : Tensor, array, Dataset or iterable of batches, (n, ...)
        targets : int (n,), optional
            True classes; needed for ``original=True`` unless `inputs` is a `Dataset`.
        on_progress : Progress, optional

        Raises
        ------
        ModelError, UnsupportedOperationError, DataError
            As `idc_core.tracing.trace.trace`.
        SettingError
            If m is larger than the layer, or targets are missing.
        """
        truth = self._truth(getattr(inputs, "targets", None) if targets is None else targets)
        ranked = rank_layers(
            self.model,
            inputs,
            [self.layer],
            self.m,
            self.settings,
            priority=self.priority.name,
            truth=truth,
            exactly=True,
            batch_size=self.batch_size,
            in_memory=self.in_memory,
            on_progress=on_progress,
        )
        return self.cluster(ranked[self.layer], on_progress=on_progress)

    def learn(
        self,
        activations: NDArray[Any],
        importance: NDArray[np.float64],
        *,
        dense: bool = True,
        on_progress: Progress | None = None,
    ) -> Self:
        """Find the important neurons and their clusters from activations (n, neurons) that a trace has already given.

        `importance` (neurons,) is summed over the inputs; `original` drops zeros only of `dense` layers.
        """
        important = most_important(importance, self.m)
        ranked = RankedLayer(self.layer, importance, important, activations[:, important], dense)
        return self.cluster(ranked, on_progress=on_progress)

    def check_inputs(self, count: int) -> None:
        """Raise DataError where so many training inputs are too few to choose a number of clusters from.

        A silhouette compares clusters, and distances within one: it takes fewer clusters than inputs.
        """
        numbers = self.cluster_numbers if self.clustering.takes_k else (2,)
        if count <= max(numbers):
            raise DataError(
                f"{count} training input{'s are' if count != 1 else ' is'} too few to find up to {max(numbers)} "
                f"clusters per neuron: at least {max(numbers) + 1} are needed. Use more training inputs."
            )

    def cluster(self, ranked: RankedLayer | SketchedLayer, *, on_progress: Progress | None = None) -> Self:
        """Find the clusters of the important neurons that a pass over the training inputs has given."""
        if not ranked.inputs:
            raise DataError("No training input is classified correctly, so original=True has nothing to learn from.")
        self.check_inputs(ranked.inputs)
        self.importance, self.important = ranked.importance, ranked.important
        drop = self.drop_zeros or (self.original and ranked.dense)
        found: list[Clusters] = []
        for place in range(self.m):
            report(on_progress, place, self.m, "neurons clustered")
            values = ranked.values(place)
            found.append(self.clustering.cluster(values, self.cluster_numbers, drop))
            give_back(values)
        self.clusters = tuple(found)
        self.centroids = tuple(
            np.round(one.centroids, DECIMALS) if self.original else one.centroids for one in self.clusters
        )
        # Rounded centroids have boundaries of their own, half way between them.
        self._boundaries = None if self.original else tuple(one.boundaries for one in self.clusters)
        self._counts = CellCounts([len(centroids) for centroids in self.centroids])
        return self

    def update(self, inputs: Inputs, *, on_progress: Progress | None = None) -> Self:
        """Count the cells that more test inputs, as `fit` takes them, reach; SettingError before `fit`."""
        self._fitted()
        for active in self._observe(inputs, on_progress):
            self.count(active)
        return self

    def count(self, activations: NDArray[Any]) -> NDArray[np.uint8]:
        """Count the cells of inputs by the important neurons' activations (n, m); return the clusters, uint8 (n, m)."""
        counts = self._fitted()
        assignments = assign(activations, self.centroids, self._boundaries)
        counts.update(assignments)
        return assignments

    def profile(self, inputs: Inputs, *, on_progress: Progress | None = None) -> Profiles:
        """Find the cell of each input, without counting it: one target each, numbered from 0 by the cells' codes."""
        total, codes = self.total, []
        for active in self._observe(inputs, on_progress):
            assignments = assign(active, self.centroids, self._boundaries)
            codes.append(encode(assignments, [len(centroids) for centroids in self.centroids]))
        numbers = np.unique(np.concatenate(codes), return_inverse=True)[1]
        return Profiles.of_codes(numbers.reshape(-1, 1), total)

    def _observe(self, inputs: Inputs, on_progress: Progress | None) -> Iterator[NDArray[Any]]:
        """Yield the activations (batch, m) of the important neurons."""
        batches = trace(self.model, inputs, [self.layer], batch_size=self.batch_size, on_progress=on_progress)
        reduced = (
            (None, {"active": neuron_activation(batch.activations[self.layer], self._axis, batch.kept)})
            for batch in batches
        )
        for _, arrays in brought_back(reduced):
            yield arrays["active"][:, self.important]

    def fresh(self) -> Self:
        """Return another with the same clusters and nothing covered."""
        sizes = self._fitted().sizes
        other = copy.copy(self)
        other._counts = CellCounts(sizes)
        return other

    def merge(self, other: Self) -> Self:
        """Add the cells that another worker has counted with the same clusters."""
        mine, theirs = self._fitted(), other._fitted()
        ours, others = ((one.important, *one.centroids, *(one._boundaries or ())) for one in (self, other))
        same = self.layer == other.layer and len(ours) == len(others)
        if not same or not all(map(np.array_equal, ours, others)):
            raise SettingError(
                "Only criteria fitted to the same layer, neurons and clusters can be merged. Fit once, copy the "
                "fitted criterion to each worker, and merge what they counted."
            )
        mine.merge(theirs)
        return self

    @property
    def covered(self) -> int:
        """Number of cells reached."""
        return self._fitted().covered

    @property
    def total(self) -> int:
        """Number of cells there are: the product of the cluster numbers; can pass 2**64."""
        return self._fitted().total

    @property
    def score(self) -> float:
        """Share of the cells that are reached, 0..1."""
        return self.covered / self.total

    @property
    def counts(self) -> CellCounts:
        """How many inputs fell into each cell."""
        return self._fitted()

    def _fitted(self) -> CellCounts:
        if self._counts is None:
            raise SettingError("IDC has no clusters yet: call fit with training inputs first.")
        return self._counts

    def _truth(self, targets: Any) -> NDArray[np.int64] | None:
        if not self.original:
            return None
        if targets is None:
            raise SettingError("original=True learns from correctly classified inputs only: pass fit(inputs, targets).")
        return np.asarray(targets).astype(np.int64)
