"""Searches from tests on which all networks agree, each kept as a record: what DeepXplore's tables are read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.base.threads import number
from idc_core.coverage.neuron import NC
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.generation import Disagreements, differential_search, distances
from idc_core.lrp.session import named_layers
from idc_core.models.network import Network
from idc_core.store.cache import Record, stored
from idc_core.tracing.neurons import countable_layers
from idc_core.tracing.trace import collect

FORMAT = 1
"""Goes up when the numbers of a record change."""


@dataclass(frozen=True, eq=False)
class AgreeingNetworks:
    """Two or more classifiers of pictures, and the tests that searches start from.

    Raises
    ------
    SettingError
        With fewer than two networks.
    DataError
        If the tests are no pictures with classes, or the networks agree on none.
    """

    models: Sequence[Network]
    test: Dataset
    fresh: bool = False
    """Whether to make anew what is kept."""

    def __post_init__(self) -> None:
        if len(self.models) < 2:
            raise SettingError(f"A difference needs at least two networks; got {len(self.models)}.")
        if self.test.task != "classification" or self.test.inputs.ndim != 4:
            raise DataError("A search starts from pictures with classes; choose such a data set.")

    @property
    def names(self) -> list[str]:
        """Short names of the networks, as the tables have them."""
        return [model.card.label.split(" o")[0] for model in self.models]

    @cached_property
    def agreed(self) -> NDArray[np.int64]:
        """Positions of the tests that all networks answer alike: elsewhere a difference is not found, it is there."""
        answers = np.stack([collect(model, self.test, []).scores.argmax(1) for model in self.models], 1)
        places = np.flatnonzero((answers == answers[:, :1]).all(1))
        if not len(places):
            raise DataError("The networks agree on none of the tests: there is nothing to search from.")
        return places

    def seeds(self, count: int, seed: int) -> NDArray[np.int64]:
        """Return positions of tests on which all agree, as many of every class as `count` and the tests allow."""
        order = np.random.default_rng(seed).permutation(self.agreed)
        classes = self.test.targets[order]
        rank = np.zeros(len(order), np.int64)
        for one in np.unique(classes):
            own = classes == one
            rank[own] = np.arange(own.sum())
        return order[np.argsort(rank, kind="stable")][:count]

    def criterion(self, place: int, threshold: float, layers: Sequence[str] | None = None) -> NC:
        """Return neuron coverage of one network, scaled as the published program scales."""
        model = self.models[place]
        return NC(model, countable_layers(model) if layers is None else layers, threshold, "positions")

    def convolutions(self, place: int) -> tuple[str, ...]:
        """Return the layers that full coverage is asked of: all but the dense ones."""
        model = self.models[place]
        modules = named_layers(model)
        return tuple(name for name in countable_layers(model) if "Conv" in type(modules[name]).__name__)

    def search(
        self, count: int, seed: int, threshold: float = 0.25, *, on_progress: Progress | None = None, **options: Any
    ) -> Record:
        """Search from `count` tests, and return what was found as plain values.

        Returns
        -------
        Record
            "seeds", their number; "steps", "l1" and "seed" (its position among the seeds) of every find; "coverage",
            for each network that of the finds up to each one, by all layers, and "convolutions", by these alone;
            "seconds" of the search.

        Raises
        ------
        CancelledError
            If `on_progress` returned False.
        """
        key = {
            "format": FORMAT,
            "threads": number(),
            "networks": [model.card.fingerprint for model in self.models],
            "test": self.test.fingerprint,
            "count": count,
            "seed": seed,
            "threshold": threshold,
            "options": dict(sorted(options.items())),
        }
        return stored(
            "differences", key, lambda: self._searched(count, seed, threshold, options, on_progress), fresh=self.fresh
        )

    def _searched(
        self, count: int, seed: int, threshold: float, options: dict[str, Any], on_progress: Progress | None
    ) -> Record:
        seeds = self.test.inputs[self.seeds(count, seed)]
        guidance = [self.criterion(place, threshold) for place in range(len(self.models))]
        found = differential_search(
            self.models, seeds, guidance=guidance, seed=seed, on_progress=on_progress, **options
        )
        if found.stopped:
            raise CancelledError("Stopped on request while differences were searched for.")
        return {
            "seeds": len(seeds),
            "steps": found.iterations.tolist(),
            "l1": distances(found.inputs, seeds[found.seed_index]).l1.tolist(),
            "seed": found.seed_index.tolist(),
            "coverage": self._growth(found, threshold, False),
            "convolutions": self._growth(found, threshold, True),
            "seconds": found.seconds,
        }

    def _growth(self, found: Disagreements, threshold: float, convolutions: bool) -> list[list[float]]:
        places = range(len(self.models)) if len(found) else ()
        layers = [self.convolutions(place) if convolutions else None for place in places]
        return [self.growth(place, found.inputs, threshold, layers[place]) for place in places]

    def growth(
        self, place: int, inputs: NDArray[np.generic], threshold: float, layers: Sequence[str] | None = None
    ) -> list[float]:
        """Return the neuron coverage of one network by the first 1, 2, ... inputs, each 0..1."""
        profiles = self.criterion(place, threshold, layers).profile(inputs)
        return [float(value) for value in profiles.gains().cumsum() / (profiles.total or 1)]

    def active(self, place: int, inputs: NDArray[np.generic], threshold: float) -> NDArray[np.bool_]:
        """Return which neurons of one network inputs activate, bool (n, neurons)."""
        return self.criterion(place, threshold).profile(inputs).dense
