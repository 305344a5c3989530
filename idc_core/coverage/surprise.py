"""Surprise coverage: the share of the levels of surprise, from familiar to strange, that tests reach."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from idc_core.base.arrays import Array, Arrays, Floats, Ints
from idc_core.base.parameters import Parameter, finite, is_number, shown, truth, whole_number
from idc_core.coverage.activations import ActivationBatch
from idc_core.coverage.adequacy import DistanceAdequacy, Drop, LikelihoodAdequacy, MahalanobisAdequacy, Second
from idc_core.coverage.moments import Moments
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import criterion
from idc_core.coverage.streamed import Layers, TargetCriterion, check_word
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.coverage.saved import Saved


_BUCKETS = Parameter("buckets", "buckets", "Number of equal intervals of surprise.", 1000, 10, 10_000, step=100)


class _Adequacy(Protocol):
    """Measures the surprise of traces (n, d) of predicted classes (n,)."""

    def __call__(self, traces: NDArray[np.floating], classes: Ints) -> Floats:
        """Return the surprise, float64 (n,)."""

    @property
    def memory(self) -> int:
        """Bytes kept of the training inputs."""

    def arrays(self) -> Arrays:
        """Return what it is made of."""


class _TrainingTraces:
    """All training traces and their predicted classes; all of class 0 unless `per_class`."""

    def __init__(self, per_class: bool) -> None:
        self.per_class = per_class
        self._traces: list[NDArray[np.floating]] = []
        self._classes: list[Ints] = []

    def add(self, batch: ActivationBatch) -> None:
        """Keep a batch of training inputs."""
        self._traces.append(batch.values)
        self._classes.append(_classes(batch, self.per_class))

    def merge(self, other: _TrainingTraces) -> None:
        """Keep the traces of the inputs that come next."""
        self._traces += other._traces
        self._classes += other._classes

    def joined(self) -> tuple[NDArray[np.floating], Ints]:
        """Return the traces (n, d) and their classes (n,)."""
        return np.concatenate(self._traces), np.concatenate(self._classes)


class _ClassMoments:
    """Mean and covariance of the training traces of each class; classes as in `_TrainingTraces`."""

    def __init__(self, per_class: bool) -> None:
        self.per_class = per_class
        self.classes: dict[int, Moments] = {}
        self.precision = 0.0

    def add(self, batch: ActivationBatch) -> None:
        """Take in a batch of training inputs."""
        self.precision = max(self.precision, batch.precision)
        classes = _classes(batch, self.per_class)
        for label in np.unique(classes).tolist():
            self.classes.setdefault(label, Moments()).add(batch.values[classes == label])

    def merge(self, other: _ClassMoments) -> None:
        """Take in the moments of other inputs."""
        self.precision = max(self.precision, other.precision)
        for label, moments in other.classes.items():
            self.classes.setdefault(label, Moments()).merge(moments)


def _classes(batch: ActivationBatch, per_class: bool) -> Ints:
    return batch.predictions if per_class else np.zeros(len(batch.values), np.int64)


class _SurpriseCriterion(TargetCriterion):
    """Share of the buckets of (lower, upper] that the tests' surprise falls into."""

    learns = True
    unmerged = ("model", "_adequacy")
    per_class = True
    _adequacy: _Adequacy
    _fingerprint = ""

    def __init__(
        self, model: nn.Module, layers: Layers, upper: float, buckets: int, lower: float, batch_size: int | None
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        if not (is_number(lower, -math.inf) and is_number(upper, -math.inf) and lower < upper):
            raise SettingError(
                f"Expected finite bounds of surprise with lower < upper, not {shown(lower)} and {shown(upper)}."
            )
        self.upper, self.buckets, self.lower = float(upper), whole_number("buckets", buckets, 1), float(lower)

    @property
    def memory(self) -> int:
        """Bytes kept of the training inputs."""
        self._ready()
        return self._adequacy.memory

    def _learner(self) -> _TrainingTraces | _ClassMoments:
        return _TrainingTraces(self.per_class)

    def _targets(self, sizes: tuple[int, ...]) -> int:
        return self.buckets

    def _learned(self) -> tuple[ArrayLike, ...]:
        return (*super()._learned(), self._fingerprint)

    def _state(self) -> Arrays:
        return {**super()._state(), "fingerprint": np.array(self._fingerprint), **self._adequacy.arrays()}

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        self._fingerprint = str(saved.take("fingerprint", "U"))
        self._adequacy = self._restored(saved, sum(self.sizes or ()))

    @abstractmethod
    def _restored(self, saved: Saved, neurons: int) -> _Adequacy:
        """Return what measures the surprise of traces of so many neurons, as it was saved."""

    def _profile(self, batch: ActivationBatch) -> Profiles:
        surprise = self._adequacy(batch.values, _classes(batch, self.per_class))
        inside = (surprise > self.lower) & (surprise <= self.upper)
        place = (np.where(inside, surprise, self.upper) - self.lower) / (self.upper - self.lower) * self.buckets
        bucket = np.clip(np.ceil(place).astype(np.int64) - 1, 0, self.buckets - 1)
        return Profiles.of_codes(np.where(inside, bucket, -1)[:, None], self.buckets, surprise)


@criterion(
    "lsc",
    label="Likelihood surprise coverage",
    help="Share of the levels of surprise that tests reach; surprise is an input's negative log-likelihood.",
    citation="Kim, Feldt, Yoo, ICSE 2019, equations 3 and 4 and the definition of surprise coverage",
    parameters=(
        Parameter("upper", "upper bound", "Surprise above it, in nats, is in no bucket.", 2000.0, 10, 10_000, step=100),
        _BUCKETS,
    ),
    pairwise=True,
    one_layer=True,
    by_value="most surprising",
)
class LSC(_SurpriseCriterion):
    """Likelihood-based surprise coverage: |{i : LSA(x) in (lower + (i - 1) w, lower + i w] for some test x}| / n.

    LSA is `LikelihoodAdequacy`, n the number of buckets and w = (upper - lower) / n their width.

    Parameters
    ----------
    model, layers, batch_size
        As `StreamedCriterion`; the activations of all layers make one trace.
    upper, lower : float
        Bounds of the buckets, in nats; surprise at or below `lower` or above `upper` is in none.
    buckets : int
        n.
    variance, drop, most
        Which neurons are left out, as in `LikelihoodAdequacy`.
    per_class : bool
        One density for each predicted class; else one for all. A network with one output has one in any case.

    Notes
    -----
    All training traces are kept, 8 bytes per neuron and input (`memory`): a density of kernels is its kernels.
    Published programs cut the range of surprise differently: the original has one bucket more, at and below `lower`;
    dnn-tip's buckets hold their lower ends; NeuraL-Coverage counts buckets of a given width without an upper bound.

    References
    ----------
    .. [1] J. Kim, R. Feldt, S. Yoo, "Guiding Deep Learning System Testing using Surprise Adequacy", ICSE 2019.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        upper: float = 2000.0,
        buckets: int = 1000,
        lower: float = 0.0,
        *,
        variance: float = 1e-5,
        drop: Drop = "any class",
        most: int | None = None,
        per_class: bool = True,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, upper, buckets, lower, batch_size)
        self.variance = finite("variance must be a number", variance, 0)
        check_word("drop", drop, get_args(Drop))
        self.most = None if most is None else whole_number("most", most, 1)
        self.drop, self.per_class = drop, truth("per_class", per_class)

    def _adopt(self, learner: _TrainingTraces) -> None:
        traces, classes = learner.joined()
        self._adequacy = LikelihoodAdequacy(traces, classes, self.variance, self.drop, self.most)
        self._fingerprint = _fingerprint(traces, classes)

    def _restored(self, saved: Saved, neurons: int) -> LikelihoodAdequacy:
        return LikelihoodAdequacy.restored(saved, neurons)


@criterion(
    "dsc",
    label="Distance surprise coverage",
    help="Share of the levels of surprise that tests reach; surprise compares distances to training inputs.",
    citation="Kim, Feldt, Yoo, ICSE 2019, equations 5 to 7 and the definition of surprise coverage",
    parameters=(
        Parameter(
            "upper", "upper bound", "Surprise above it, a ratio of distances, is in no bucket.", 2.0, 0.5, 20, step=0.5
        ),
        _BUCKETS,
    ),
    pairwise=True,
    needs_classes=True,
    one_layer=True,
    by_value="most surprising",
)
class DSC(_SurpriseCriterion):
    """Distance-based surprise coverage: as `LSC`, of the surprise that `DistanceAdequacy` defines; bounds are ratios.

    `second`, "neighbour" or "input", is where the distance to other classes is measured from. For classifiers: `fit`
    raises DataError if the network predicts one class for all training inputs.

    Notes
    -----
    All training traces are kept (`memory`), 12 bytes per neuron and input where the network computes in float32: the
    nearest can be any of them. The paper is named at `LSC`.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        upper: float = 2.0,
        buckets: int = 1000,
        lower: float = 0.0,
        *,
        second: Second = "neighbour",
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, upper, buckets, lower, batch_size)
        check_word("second", second, get_args(Second))
        self.second = second

    def _adopt(self, learner: _TrainingTraces) -> None:
        traces, classes = learner.joined()
        self._adequacy = DistanceAdequacy(traces, classes, self.second)
        self._fingerprint = _fingerprint(traces, classes)

    def _restored(self, saved: Saved, neurons: int) -> DistanceAdequacy:
        points = saved.take("points", "f", None, neurons)
        return DistanceAdequacy(points, saved.take("classes", "i", len(points)), self.second)


@criterion(
    "mdsc",
    label="Mahalanobis surprise coverage",
    help="Share of the levels of surprise that tests reach; surprise is the Mahalanobis distance to training inputs.",
    citation="Kim, Ju, Feldt, Yoo, ESEC/FSE 2020, MDSA; Kim, Feldt, Yoo, ICSE 2019, surprise coverage",
    parameters=(
        Parameter(
            "upper",
            "upper bound",
            "Surprise above it, in standard deviations, is in no bucket.",
            100.0,
            5,
            1000,
            step=10,
        ),
        _BUCKETS,
    ),
    one_layer=True,
    by_value="most surprising",
)
class MDSC(_SurpriseCriterion):
    """Mahalanobis-distance-based surprise coverage: as `LSC`, of the surprise that `MahalanobisAdequacy` defines.

    The bounds are in standard deviations; with `per_class` there are a mean and a covariance for each predicted class,
    else one of all training inputs.

    Notes
    -----
    No traces are kept, only mean and covariance of each class (`memory`). The papers give no upper bound for this
    surprise: among d neurons training inputs lie around sqrt(d), and the default is ten times that for 100 neurons.

    References
    ----------
    .. [1] J. Kim, J. Ju, R. Feldt, S. Yoo, "Reducing DNN Labelling Cost using Surprise Adequacy: An Industrial Case
       Study for Autonomous Driving", ESEC/FSE 2020.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        upper: float = 100.0,
        buckets: int = 1000,
        lower: float = 0.0,
        *,
        per_class: bool = True,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, upper, buckets, lower, batch_size)
        self.per_class = truth("per_class", per_class)

    def _learner(self) -> _ClassMoments:
        return _ClassMoments(self.per_class)

    def _adopt(self, learner: _ClassMoments) -> None:
        self._adequacy = MahalanobisAdequacy(learner.classes, precision=learner.precision)
        learned = sorted(learner.classes.items())
        self._fingerprint = _fingerprint(
            *(array for _, moments in learned for array in (moments.mean, moments.scatter))
        )

    def _restored(self, saved: Saved, neurons: int) -> MahalanobisAdequacy:
        return MahalanobisAdequacy.restored(saved, neurons)


def _fingerprint(*arrays: Array) -> str:
    """Return a hash of what was learned, by which two criteria are compared without keeping it twice."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
