"""Coverage by the distribution of a layer's activations: NLC."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from idc_core.base.arrays import Arrays
from idc_core.base.parameters import Parameter, truth
from idc_core.coverage.activations import ActivationBatch
from idc_core.coverage.adequacy import blocks
from idc_core.coverage.moments import Moments
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import criterion
from idc_core.coverage.streamed import Layers, StreamedCriterion, check_word

if TYPE_CHECKING:
    from idc_core.coverage.saved import Saved

_Divide = Literal["neurons", "pairs", "nothing"]


class _LayerMoments:
    """Mean and covariance of each layer."""

    def __init__(self, layers: int) -> None:
        self.found = tuple(Moments() for _ in range(layers))

    def __copy__(self) -> _LayerMoments:
        other = _LayerMoments(0)
        other.found = tuple(map(copy.copy, self.found))
        return other

    def add(self, batch: ActivationBatch) -> None:
        """Take in a batch of inputs."""
        for moments, values in zip(self.found, batch.by_layer(batch.values), strict=True):
            moments.add(values)

    def merge(self, other: _LayerMoments) -> None:
        """Take in the moments of other inputs."""
        for mine, theirs in zip(self.found, other.found, strict=True):
            mine.merge(theirs)

    def arrays(self, of: str) -> Arrays:
        """Return them as arrays, whose names begin with `of`."""
        arrays: Arrays = {}
        for place, moments in enumerate(self.found):
            if moments.count:
                arrays |= {f"{of}{place}_{name}": np.asarray(value) for name, value in vars(moments).items()}
        return arrays

    def restore(self, saved: Saved, of: str, sizes: tuple[int, ...]) -> None:
        """Take over what `arrays` has given of layers of these sizes."""
        self.found = tuple(
            Moments(
                int(saved.indices(f"{of}{place}_count", 2**62)),
                saved.take(f"{of}{place}_mean", "f", size),
                saved.take(f"{of}{place}_scatter", "f", size, size),
            )
            if f"{of}{place}_count" in saved
            else Moments()
            for place, size in enumerate(sizes)
        )


@criterion(
    "nlc",
    label="NeuraL coverage",
    help="Sum of the absolute covariances of each layer's activations; it can fall when tests are added.",
    citation="Yuan, Pang, Wang, ICSE 2023, NLC",
    parameters=(
        Parameter(
            "divide",
            "divided by",
            "Divisor of a layer's covariance norm: its number of neurons (the paper), of their pairs (the published "
            "program since November 2024), or nothing.",
            "neurons",
            offered=get_args(_Divide),
        ),
    ),
    unit="activation\u00b2",
    can_fall=True,
    by_value="largest gain",
)
class NLC(StreamedCriterion):
    """NeuraL coverage: sum over layers l of ||cov_l||_1 / m_l, with cov_l the covariance of its m_l neurons.

    ||.||_1 sums the absolute values of all entries; covariances divide by the number of tests. The score is in squared
    units of the activations and has no upper bound. An input's profile has no targets; its value is what NLC would gain
    from the input on top of what has been seen so far.

    Parameters
    ----------
    model, layers, batch_size
        As `StreamedCriterion`.
    divide : {"neurons", "pairs", "nothing"}
        What a layer's norm is divided by: m_l, m_l^2, or 1.
    prior : bool
        Whether the training inputs count like tests that were seen before.

    Notes
    -----
    Since November 2024 the published program divides by the square of the number of neurons ("pairs"). Before, it was
    written to divide by their number, but the array it divided had an axis of length one in front, so that it divided
    by one ("nothing"). It also drops a batch that would lower a layer's norm, which makes its value depend on the order
    of the tests and on how they are cut; here every test counts, so that the score is that of the set, in any order. It
    can therefore fall when tests are added. Kept are mean and covariance of each layer.

    References
    ----------
    .. [1] Y. Yuan, Q. Pang, S. Wang, "Revisiting Neuron Coverage for DNN Testing: A Layer-Wise and Distribution-Aware
       Criterion", ICSE 2023.
    """

    counted = ("_tests",)

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        divide: _Divide = "neurons",
        prior: bool = False,
        *,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        check_word("divide", divide, get_args(_Divide))
        self.divide, self.prior = divide, truth("prior", prior)
        self.learns = self.prior
        self._start, self._tests = self._learner(), self._learner()

    @property
    def score(self) -> float:
        """NLC of the tests seen, in squared units of the activations; 0 before any."""
        return sum(self._size(moments.covariance()) for moments in self._moments())

    def _moments(self) -> list[Moments]:
        pairs = zip(self._start.found, self._tests.found, strict=True)
        return [Moments().merge(start).merge(tests) for start, tests in pairs]

    def _size(self, covariance: NDArray[np.float64]) -> float:
        return float(np.abs(covariance).sum()) / self._divisor(len(covariance))

    def _divisor(self, neurons: int) -> int:
        return {"neurons": max(neurons, 1), "pairs": max(neurons, 1) ** 2, "nothing": 1}[self.divide]

    def _learner(self) -> _LayerMoments:
        return _LayerMoments(len(self.layers))

    def _adopt(self, learner: _LayerMoments) -> None:
        self._start = learner

    def _begin(self, sizes: tuple[int, ...]) -> None:
        super()._begin(sizes)
        self._tests = self._learner()

    def _learned(self) -> tuple[ArrayLike, ...]:
        scatters = [array for start in self._start.found for array in (start.mean, start.scatter)]
        return (*super()._learned(), *scatters)

    def _count(self, batch: ActivationBatch) -> None:
        self._tests.add(batch)

    def _profiler(self) -> Callable[[ActivationBatch], Profiles]:
        before = self._moments()

        def profile(batch: ActivationBatch) -> Profiles:
            gains = np.zeros(len(batch.values))
            for moments, values in zip(before, batch.by_layer(batch.values), strict=True):
                gains += self._gains(moments, values)
            return Profiles(np.zeros(len(gains) + 1, np.int64), np.zeros(0, np.int32), 0, gains)

        return profile

    def _gains(self, found: Moments, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return by how much each input alone would raise a layer's share, float64 (n,)."""
        gains = np.zeros(len(values))
        if not found.count:
            return gains
        covariance, weight = found.covariance(), 1 / (found.count + 1)
        shrunk, neurons = (1 - weight) * covariance, len(covariance)
        deviations = (values - found.mean) * np.sqrt(weight * (1 - weight))
        for rows in blocks(len(values), neurons**2):
            block = deviations[rows]
            raised = block[:, :, None] * block[:, None, :]
            raised += shrunk
            gains[rows] = np.abs(raised, out=raised).sum((1, 2))
        gains -= np.abs(covariance).sum()
        return gains / self._divisor(neurons)

    def _merge(self, other: Self) -> None:
        self._tests.merge(other._tests)

    def _state(self) -> Arrays:
        self._ready()
        if self.sizes is None:
            return {}
        return {"sizes": np.array(self.sizes), **self._start.arrays("prior"), **self._tests.arrays("tests")}

    def _restore(self, saved: Saved) -> None:
        sizes = saved.sizes(len(self.layers))
        if sizes is not None:
            self._begin(sizes)
            self._start.restore(saved, "prior", sizes)
            self._tests.restore(saved, "tests", sizes)
