"""Importance-Driven Coverage: the share of important-neuron cluster combinations that a test set reaches."""

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.arrays import Arrays
from idc_core.base.growing import give_back
from idc_core.base.parameters import class_numbers, shown, whole_number
from idc_core.base.progress import Progress, report
from idc_core.base.ranges import M
from idc_core.clustering.kmeans import Clusters
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.coverage.cells import CellCounts, assign, decode, encode
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion, alike, all_or_nothing, criterion
from idc_core.coverage.saved import Saved, pack_clusters, read_clusters
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.importance.important_neurons import check_m, most_important
from idc_core.importance.training_pass import RankedLayer, SketchedLayer, check_activations, rank_layers
from idc_core.lrp.rules import NamedRule, RelevanceSettings
from idc_core.lrp.session import check_layers
from idc_core.tracing.neurons import neuron_activation, neuron_axes
from idc_core.tracing.sources import Inputs, PairedTargets
from idc_core.tracing.trace import TraceBatch, trace
from idc_core.tracing.transfers import brought_back

_DECIMALS = 2
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
    m : int, optional
        Number of important neurons. Default 6, or all neurons of a layer that has fewer.
    rule : str, mapping, RelevanceSettings or IdcSettings
        Relevance rule: a name from `RULES`, a table of rules for layers, or the rule with its parameters; or all
        settings.
    batch_size : int, optional
        Default: chosen from the network's size.
    in_memory : int, optional
        Bytes of training activations that `fit` holds in memory; more go to files in the cache folder, which are gone
        when they are no longer used. Default: ``activations_mib`` of the config file.
    **parameters
        Options, such as `clusters`, `clustering` and `priority`, as in `IdcOptions`; and those of the rule, such as
        `epsilon`, `gamma`, `alpha` and `bias`, as in `RelevanceSettings`.

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

    counted = ("_counts",)

    def __init__(
        self,
        model: nn.Module,
        layer: str,
        m: int | None = None,
        rule: NamedRule | IdcSettings = "epsilon",
        *,
        batch_size: int | None = None,
        in_memory: int | None = None,
        **parameters: object,
    ) -> None:
        if not isinstance(layer, str):
            raise SettingError(f"layer must be the name of one layer, not {shown(layer)}.")
        self.model, self.layer, self.m = model, layer, int(M.check(M.default if m is None else m))
        self.least = 1 if m is None else self.m  # neurons that the layer must have
        self.idc = IdcSettings.of(rule, **parameters)
        self.batch_size = batch_size
        self.in_memory = None if in_memory is None else whole_number("in_memory", in_memory)
        self._axis = neuron_axes(model, [layer])[layer]
        self._counts: CellCounts | None = None

    @property
    def settings(self) -> RelevanceSettings:
        """How relevance is propagated."""
        return self.idc.relevance

    def fit(self, inputs: Inputs, targets: object = None, *, on_progress: Progress | None = None) -> Self:
        """Find the important neurons and their clusters from training inputs; nothing is covered yet.

        Parameters
        ----------
        inputs : Tensor, array, Dataset or iterable of batches, (n, ...)
        targets : int (n,), optional
            True classes; needed for ``original=True`` unless `inputs` brings them: a `Dataset`, or batches of pairs.
        on_progress : Progress, optional

        Raises
        ------
        ModelError, UnsupportedOperationError, DataError
            As `idc_core.tracing.trace.trace`.
        ModelError
            If each important neuron has one cluster only, so that nothing can be covered.
        SettingError
            If m is larger than the layer, or targets are missing.
        """
        targets = getattr(inputs, "targets", None) if targets is None else targets
        paired = PairedTargets.of(inputs) if self.idc.original and targets is None else None
        inputs, truth = (inputs, self._truth(targets)) if paired is None else (paired, paired)
        ranked = rank_layers(
            self.model,
            inputs,
            [self.layer],
            self.m,
            self.settings,
            priority=self.idc.priority,
            truth=truth,
            least=self.least,
            batch_size=self.batch_size,
            in_memory=self.in_memory,
            on_progress=on_progress,
        )
        return self.cluster(ranked[self.layer], on_progress=on_progress)

    def learn(
        self,
        activations: NDArray[np.floating],
        importance: NDArray[np.float64],
        *,
        dense: bool = True,
        on_progress: Progress | None = None,
    ) -> Self:
        """Find the important neurons and their clusters from activations (n, neurons) that a trace has already given.

        `importance` (neurons,) is summed over the inputs; `original` drops zeros only of `dense` layers.
        """
        important = most_important(importance, self.m_of(len(importance)))
        ranked = RankedLayer(self.layer, importance, important, activations[:, important], dense)
        return self.cluster(ranked, on_progress=on_progress)

    def m_of(self, neurons: int) -> int:
        """Return how many of a layer's neurons are important; SettingError where it has fewer than were asked for."""
        check_m(self.least, neurons)
        return min(self.m, neurons)

    def check_inputs(self, count: int) -> None:
        """Raise DataError where so many training inputs are too few to choose a number of clusters from.

        A silhouette compares clusters, and distances within one: it takes fewer clusters than inputs.
        """
        numbers = self.idc.clusters if CLUSTERINGS[self.idc.clustering].takes_k else (2,)
        if count <= max(numbers):
            raise DataError(
                f"{count} training input{'s are' if count != 1 else ' is'} too few to find up to {max(numbers)} "
                f"clusters per neuron: at least {max(numbers) + 1} are needed. Use more training inputs."
            )

    def cluster(self, ranked: RankedLayer | SketchedLayer, *, on_progress: Progress | None = None) -> Self:
        """Find the clusters of the important neurons that a pass over the training inputs has given.

        ModelError where each has one cluster only, so that nothing can be covered.
        """
        parted = self.find_clusters(ranked, on_progress=on_progress)
        if all(of_neuron.k == 1 for of_neuron in parted):
            same = self.idc.clustering == "k-means" and not self._drops(ranked)
            raise ModelError(
                f"Nothing can be covered in layer {self.layer!r}: each of its {len(parted)} important neurons has one "
                "cluster only, so that there is one cell. "
                + (
                    "They give the same for all training inputs: choose another layer, or look for what silences this."
                    if same
                    else "They vary too little for this way to cluster: choose another way, or another layer."
                )
            )
        return self._adopt(ranked.importance, ranked.important, parted)

    def _adopt(
        self, importance: NDArray[np.float64], important: NDArray[np.int64], clusters: tuple[Clusters, ...]
    ) -> Self:
        self.m, self.importance, self.important, self.clusters = len(clusters), importance, important, clusters
        self.centroids = tuple(
            np.round(of_neuron.centroids, _DECIMALS) if self.idc.original else of_neuron.centroids
            for of_neuron in self.clusters
        )
        # Rounded centroids have boundaries of their own, half way between them.
        self._boundaries = None if self.idc.original else tuple(of_neuron.boundaries for of_neuron in self.clusters)
        self._counts = CellCounts([len(centroids) for centroids in self.centroids])
        return self

    def find_clusters(
        self, ranked: RankedLayer | SketchedLayer, *, on_progress: Progress | None = None
    ) -> tuple[Clusters, ...]:
        """Return the clusters of important neurons without taking them over."""
        if not ranked.inputs:
            raise DataError("No training input is classified correctly, so original=True has nothing to learn from.")
        self.check_inputs(ranked.inputs)
        clusters: list[Clusters] = []
        clustering = CLUSTERINGS[self.idc.clustering]
        for place in range(len(ranked.important)):
            report(on_progress, place, len(ranked.important), "neurons clustered")
            values = ranked.values(place)
            clusters.append(clustering.cluster(values, self.idc.clusters, self._drops(ranked)))
            give_back(values)
        return tuple(clusters)

    def _drops(self, ranked: RankedLayer | SketchedLayer) -> bool:
        return self.idc.drop_zeros or (self.idc.original and ranked.dense)

    def update(self, inputs: Inputs, *, on_progress: Progress | None = None) -> Self:
        """Count the cells that more test inputs, as `fit` takes them, reach.

        An update that fails or is stopped counts none.

        Raises
        ------
        SettingError
            Before `fit`.
        ModelError, DataError
            As `idc_core.tracing.trace.trace`; DataError also where activations are not finite.
        """
        self._fitted()
        with all_or_nothing(self):
            for active in self._observe(inputs, on_progress):
                self.count(active)
        return self

    def count(self, activations: NDArray[np.floating]) -> NDArray[np.uint8]:
        """Count the cells of inputs by the important neurons' activations (n, m); return the clusters, uint8 (n, m)."""
        counts = self._fitted()
        assignments = assign(activations, self.centroids, self._boundaries)
        counts.update(assignments)
        return assignments

    def profile(self, inputs: Inputs, *, on_progress: Progress | None = None) -> Profiles:
        """Find the cell of each input, without counting it: one target each, named by the cell's code."""
        sizes = self._fitted().sizes
        observed = self._observe(inputs, on_progress)
        codes = [encode(assign(active, self.centroids, self._boundaries), sizes) for active in observed]
        return Profiles.of_names(np.concatenate(codes), self.total)

    def _observe(self, inputs: Inputs, on_progress: Progress | None) -> Iterator[NDArray[np.floating]]:
        """Yield the activations (batch, m) of the important neurons."""
        batches = trace(self.model, inputs, [self.layer], batch_size=self.batch_size, on_progress=on_progress)
        for start, arrays in brought_back(map(self._active, batches)):
            active = arrays["active"]
            if active.shape[1] != len(self.importance):
                raise DataError(
                    f"Layer {self.layer!r} has {active.shape[1]} neurons for these inputs and had "
                    f"{len(self.importance)} before: give inputs of one shape."
                )
            check_activations(self.layer, start, active)
            yield active[:, self.important]

    def _active(self, batch: TraceBatch) -> tuple[int, dict[str, Tensor]]:
        """Return where a batch starts, and one activation per neuron and input."""
        return batch.start, {"active": neuron_activation(batch.activations[self.layer], self._axis, batch.kept)}

    def fresh(self) -> Self:
        """Return another with the same clusters and nothing covered."""
        other = alike(self)
        other._counts = CellCounts(self._fitted().sizes)
        return other

    def merge(self, other: Self) -> Self:
        """Add the cells that another worker has counted with the same clusters."""
        mine, theirs = self._fitted(), other._fitted()
        ours, others = ((fitted.important, *fitted.centroids, *(fitted._boundaries or ())) for fitted in (self, other))
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

    def _settings(self) -> dict[str, object]:
        return {
            "layer": self.layer,
            "m": self.m,
            **self.idc.as_dict(),
            "clusters": list(self.idc.clusters),
            "batch_size": self.batch_size,
            "in_memory": self.in_memory,
        }

    def _state(self) -> Arrays:
        counts = self._fitted()
        cells: Arrays = {"cells": decode(counts.codes, counts.sizes), "inputs": counts.counts}
        return {"importance": self.importance, "important": self.important, **pack_clusters(self.clusters), **cells}

    def _restore(self, saved: Saved) -> None:
        check_layers(self.model, [self.layer])
        importance = saved.take("importance", "f", None)
        important = saved.indices("important", len(importance), self.m)
        self._adopt(importance, important, read_clusters(saved, self.m))
        counts = self._fitted()
        cells = saved.take("cells", "u", None, self.m).astype(np.uint8)
        counts._add(encode(cells, counts.sizes), saved.take("inputs", "i", len(cells)))

    def _truth(self, targets: object) -> NDArray[np.int64] | None:
        if not self.idc.original:
            return None
        if targets is None:
            raise SettingError(
                "original=True learns from correctly classified inputs only: pass fit(inputs, targets), or batches of "
                "pairs (inputs, targets)."
            )
        return class_numbers("targets", targets).astype(np.int64)
