"""Cluster-based coverage: how many inputs are far from every input before them."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.arrays import Arrays, Floats, Ints
from idc_core.base.parameters import Parameter, finite
from idc_core.coverage.activations import ActivationBatch
from idc_core.coverage.adequacy import Neighbours
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import criterion
from idc_core.coverage.streamed import Layers, StreamedCriterion

if TYPE_CHECKING:
    from idc_core.coverage.saved import Saved


class _Centres:
    """Points each further than a threshold, a squared Euclidean distance, from all before it."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.points: Floats = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.points)

    def admit(self, values: NDArray[np.floating]) -> Ints:
        """Take in points (n, d) in order, far ones as centres; return the centre nearest to each when it came, (n,)."""
        values = np.asarray(values, np.float64)
        nearest = np.full(len(values), -1, np.int64)
        away = np.full(len(values), np.inf)
        if len(self):
            nearest = Neighbours(self.points).nearest(values, slice(0, len(self)))[0]
            away = np.square(values - self.points[nearest]).sum(1)
        added: list[int] = []
        while (far := np.flatnonzero(away > self.threshold)).size:
            first = int(far[0])
            later = np.square(values[first:] - values[first]).sum(1)
            closer = first + np.flatnonzero(later < away[first:])
            nearest[closer], away[closer] = len(self) + len(added), later[closer - first]
            added.append(first)
        if added:
            self.points = np.concatenate([self.points.reshape(len(self), values.shape[1]), values[added]])
        return nearest


@criterion(
    "cc",
    label="Cluster-based coverage",
    help="Number of tests whose activations are far from those of all earlier tests.",
    citation="Odena, Olsson, Andersen, Goodfellow (TensorFuzz), ICML 2019, section 3.3",
    parameters=(
        Parameter(
            "threshold",
            "threshold",
            "Squared distance between activations above which a test starts a new cluster.",
            10.0,
            0,
            10_000,
            step=5,
        ),
    ),
    unit="clusters",
    pairwise=True,
    order_matters=True,
)
class CC(StreamedCriterion):
    """Cluster-based coverage: an input covers something new where |a - c|^2 > threshold for all centres c before it.

    The score is the number of centres, summed over the layers, each of which has its own. The default threshold, a
    squared Euclidean distance of activations, is NeuraL-Coverage's for CIFAR-10. Else as `StreamedCriterion`.

    Notes
    -----
    By definition the centres depend on the order of the tests; they do not depend on batches. `merge` joins the centres
    of two workers, and the score then counts those that are left when the joined centres, in the order of their
    coordinates, are taken in one after the other: it does not depend on who merged with whom, and can differ from that
    of one worker who saw all tests. A profile goes on from the tests seen so far: their centres have the first numbers.
    TensorFuzz looks at the last layer with an approximate search for neighbours; here
    distances are exact. Kept are the centres, 8 bytes per neuron each, and no other activations.

    References
    ----------
    .. [1] A. Odena, C. Olsson, D. Andersen, I. Goodfellow, "TensorFuzz: Debugging Neural Networks with Coverage-Guided
       Fuzzing", ICML 2019.
    """

    counted = ("_centres", "_joined")

    def __init__(
        self, model: nn.Module, layers: Layers, threshold: float = 10.0, *, batch_size: int | None = None
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self.threshold = finite("threshold must be a squared distance", threshold, 0)
        self._centres = self._empty()
        self._joined = False

    @property
    def covered(self) -> int:
        """Number of centres, all layers together."""
        if not self._joined:
            return sum(map(len, self._centres))
        return sum(
            len(set(_Centres(self.threshold).admit(centres.points))) for centres in self._centres if len(centres)
        )

    @property
    def score(self) -> float:
        """Number of centres, all layers together."""
        return float(self.covered)

    @property
    def memory(self) -> int:
        """Bytes kept of the tests."""
        return sum(centres.points.nbytes for centres in self._centres)

    def _empty(self) -> tuple[_Centres, ...]:
        return tuple(_Centres(self.threshold) for _ in self.layers)

    def _begin(self, sizes: tuple[int, ...]) -> None:
        super()._begin(sizes)
        self._centres, self._joined = self._empty(), False

    def _count(self, batch: ActivationBatch) -> None:
        for centres, values in zip(self._centres, batch.by_layer(batch.values), strict=True):
            centres.admit(values)

    def _profiler(self) -> Callable[[ActivationBatch], Profiles]:
        layers = tuple(map(copy.copy, self._centres))
        digests = [hashlib.blake2b(centres.points.tobytes(), digest_size=16) for centres in layers]

        def profile(batch: ActivationBatch) -> Profiles:
            before, codes = _said(digests), []
            for place, values in enumerate(batch.by_layer(batch.values)):
                centres, known = layers[place], len(layers[place])
                # Centres are numbered layer by layer in turn, so that a number never changes when more are found.
                codes.append(centres.admit(values) * len(layers) + place)
                digests[place].update(centres.points[known:].tobytes())
            profiles = Profiles.of_codes(np.sort(np.stack(codes, axis=1), axis=1), None)
            return replace(profiles, chain=(before, _said(digests)))

        return profile

    def _merge(self, other: Self) -> None:
        for mine, theirs in zip(self._centres, other._centres, strict=True):
            both = [points for points in (mine.points, theirs.points) if len(points)]
            if both:
                mine.points = np.unique(np.concatenate(both), axis=0)
        self._joined = True

    def _state(self) -> Arrays:
        if self.sizes is None:
            return {}
        points = [centres.points.reshape(-1, size) for centres, size in zip(self._centres, self.sizes, strict=True)]
        arrays = {f"centres{place}": array for place, array in enumerate(points)}
        return {"sizes": np.array(self.sizes), "joined": np.array(int(self._joined)), **arrays}

    def _restore(self, saved: Saved) -> None:
        sizes = saved.sizes(len(self.layers))
        if sizes is not None:
            self._begin(sizes)
            self._joined = bool(saved.take("joined", "i"))
            for place, (centres, size) in enumerate(zip(self._centres, sizes, strict=True)):
                centres.points = saved.take(f"centres{place}", "f", None, size)


def _said(digests: list[hashlib.blake2b]) -> str:
    """Return what tells the centres of all layers, however these were cut into batches."""
    return "".join(digest.hexdigest() for digest in digests)
