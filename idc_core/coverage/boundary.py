"""DeepGauge's criteria on the range of each neuron's training activations: sections inside it, and values beyond.

A value within rounding of an end of a range is at that end, by one rule for all of them: a network gives the same input
slightly other activations in a batch of another size, and an input that made a range is not beyond it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from idc_core.base.arrays import Arrays, Floats, Ints
from idc_core.base.parameters import Parameter, finite, truth, whole_number
from idc_core.coverage.activations import ActivationBatch, rounding
from idc_core.coverage.neuron import raise_neuron
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import criterion
from idc_core.coverage.streamed import Layers, TargetCriterion

if TYPE_CHECKING:
    from idc_core.coverage.saved import Saved


_WEAKER = 1000
"""How much weaker than the mean of its layer a neuron is, at most, for whose rounding that mean counts."""


class _TrainingRanges:
    """Each neuron's smallest and largest training activation, and, where asked for, its standard deviation."""

    def __init__(self, spread: bool) -> None:
        self.low: Floats = np.array(np.inf)
        self.high: Floats = np.array(-np.inf)
        self.precision, self.sizes = 0.0, (0,)
        self._spread, self._count = spread, 0
        self._mean: Floats = np.zeros(())
        self._squares: Floats = np.zeros(())

    def add(self, batch: ActivationBatch) -> None:
        """Take in a batch of training inputs."""
        self.low = np.minimum(self.low, batch.low)
        self.high = np.maximum(self.high, batch.high)
        self.precision, self.sizes = max(self.precision, batch.precision), batch.sizes
        if self._spread:
            mean = batch.values.mean(0, dtype=np.float64)
            self._join(len(batch.values), mean, ((batch.values - mean) ** 2).sum(0))

    def merge(self, other: _TrainingRanges) -> None:
        """Take in the ranges of other inputs."""
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.precision, self.sizes = max(self.precision, other.precision), max(self.sizes, other.sizes)
        if self._spread:
            self._join(other._count, other._mean, other._squares)

    def _join(self, count: int, mean: Floats, squares: Floats) -> None:
        # Chan, Golub, LeVeque: sums of squares about the means of two parts join without cancellation.
        step, total = mean - self._mean, self._count + count
        self._squares = self._squares + squares + step**2 * (self._count * count / total)
        self._mean, self._count = self._mean + step * (count / total), total

    @property
    def rounding(self) -> Floats:
        """By how much each neuron's activation can differ where it is computed again, float64 (neurons,).

        What a neuron sums can be as large as in the rest of its layer, and cancel: the mean of the layer counts too.
        """
        own = np.maximum(np.abs(self.low), np.abs(self.high)).astype(np.float64)
        means = [np.full_like(part, part.mean()) for part in np.split(own, np.cumsum(self.sizes)[:-1])]
        return rounding(np.maximum(own, np.minimum(np.concatenate(means), _WEAKER * own)), self.precision)

    @property
    def deviation(self) -> Floats:
        """Standard deviation of each neuron over the training inputs, float64 (neurons,); 0 where not asked for."""
        return np.sqrt(self._squares / max(self._count, 1))


class _RangeCriterion(TargetCriterion):
    """A criterion that learns each neuron's range, float64 (neurons,) from `low` to `high`.

    What is beyond them by no more than `rounding` is at the bound.
    """

    learns = True
    margin = 0.0

    def __init__(self, model: nn.Module, layers: Layers, *, batch_size: int | None = None) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self.low: Floats = np.zeros(0)
        self.high: Floats = np.zeros(0)
        self.rounding: Floats = np.zeros(0)

    def _learner(self) -> _TrainingRanges:
        return _TrainingRanges(spread=self.margin > 0)

    def _adopt(self, learner: _TrainingRanges) -> None:
        self.low = learner.low - self.margin * learner.deviation
        self.high = learner.high + self.margin * learner.deviation
        self.rounding = learner.rounding

    def _learned(self) -> tuple[ArrayLike, ...]:
        return (*super()._learned(), self.low, self.high)

    def _above(self, values: NDArray[np.floating]) -> NDArray[np.bool_]:
        return np.asarray(values > self.high + self.rounding)

    def _below(self, values: NDArray[np.floating]) -> NDArray[np.bool_]:
        return np.asarray(values < self.low - self.rounding)

    def _state(self) -> Arrays:
        return {**super()._state(), "low": self.low, "high": self.high, "rounding": self.rounding}

    def _restore(self, saved: Saved) -> None:
        neurons = sum(saved.sizes(len(self.layers)) or ())
        self.low, self.high, self.rounding = (saved.take(name, "f", neurons) for name in ("low", "high", "rounding"))
        super()._restore(saved)


def _aim_at_section(criterion: KMNC, targets: Ints) -> tuple[Ints, Floats]:
    """Aim at the middle of the section of each target."""
    neurons = targets // criterion.k
    span = criterion.high[neurons] - criterion.low[neurons]
    return neurons, criterion.low[neurons] + (targets % criterion.k + 0.5) / criterion.k * span


@criterion(
    "kmnc",
    label="k-multisection neuron coverage",
    help="Share of the sections reached, with the training range of each neuron cut into k sections.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.1, KMNCov",
    parameters=(Parameter("k", "sections k", "Number of sections per neuron.", 1000, 2, 10_000, step=100),),
    aim=_aim_at_section,
)
class KMNC(_RangeCriterion):
    """k-multisection neuron coverage: sum over n of |{i : phi(x, n) in S_i for some test x}| / (k |N|).

    The range [`low`, `high`] of a neuron's training activations is cut into k equal sections S_i, each with its lower
    end, the last one also with its upper end. A value within rounding of `low` or `high`, as at `NBC`, is in the first
    or the last section. The other parameters are those of `StreamedCriterion`.

    Notes
    -----
    The state is one flag per section. A neuron whose training values are equal but for rounding has no range to cut:
    its sections count, and nothing can reach them, as in dnn-tip and NeuraL-Coverage. At the ends of a section these
    differ: dnn-tip leaves a neuron's largest value out, NeuraL-Coverage its smallest.

    References
    ----------
    .. [1] L. Ma et al., "DeepGauge: Multi-Granularity Testing Criteria for Deep Learning Systems", ASE 2018,
       section 3.1.
    """

    def __init__(self, model: nn.Module, layers: Layers, k: int = 1000, *, batch_size: int | None = None) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self.k = whole_number("k", k, 1)

    def _targets(self, sizes: tuple[int, ...]) -> int:
        return self.k * sum(sizes)

    def _codes(self, batch: ActivationBatch) -> Ints:
        """Return the number of the section each activation falls into, int64 (n, neurons); -1 outside the range."""
        span = self.high - self.low
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            place = (batch.values - self.low) / span * self.k
            section = np.clip(place, 0, self.k - 1).astype(np.int64)
        inside = ~self._below(batch.values) & ~self._above(batch.values) & (span > self.rounding)
        return np.where(inside, section + np.arange(len(span)) * self.k, -1)

    def _profile(self, batch: ActivationBatch) -> Profiles:
        return Profiles.of_codes(self._codes(batch), len(self._hit))

    def _count(self, batch: ActivationBatch) -> None:
        codes = self._codes(batch)
        # The last flag stands in for -1 and is put back, which is cheaper than picking out the others.
        last = self._hit[-1]
        self._hit[codes] = True
        self._hit[-1] = last or bool((codes[:, -1] == len(self._hit) - 1).any())


class _BoundaryCriterion(_RangeCriterion):
    """A criterion on activations beyond the range; parameters as `NBC`."""

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        margin: float = 0.0,
        inclusive: bool = False,
        *,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self.margin, self.inclusive = (
            finite("margin must be a number of standard deviations", margin, 0),
            truth("inclusive", inclusive),
        )

    def _above(self, values: NDArray[np.floating]) -> NDArray[np.bool_]:
        return np.asarray(values >= self.high - self.rounding) if self.inclusive else super()._above(values)

    def _below(self, values: NDArray[np.floating]) -> NDArray[np.bool_]:
        return np.asarray(values <= self.low + self.rounding) if self.inclusive else super()._below(values)


def _aim_beyond(criterion: object, targets: Ints) -> tuple[Ints, Floats]:
    """Aim below or above the range of the neuron of each target."""
    return targets // 2, np.where(targets % 2, np.inf, -np.inf)


@criterion(
    "nbc",
    label="Neuron boundary coverage",
    help="Share of the regions below and above the neurons' training ranges that tests reach.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.1, NBCov",
    parameters=(
        Parameter("margin", "margin", "Standard deviations by which a neuron's range is widened.", 0.0, 0, 5, step=0.5),
    ),
    aim=_aim_beyond,
)
class NBC(_BoundaryCriterion):
    """Neuron boundary coverage: (|neurons above their range| + |neurons below it|) / (2 |N|).

    Targets 2 n and 2 n + 1 are the lower and the upper side of neuron n.

    Parameters
    ----------
    model, layers, batch_size
        As `StreamedCriterion`.
    margin : float
        By how many of the neuron's standard deviations the range, `low` to `high`, is widened on both sides.
    inclusive : bool
        Whether the bound itself, and what is within rounding of it, lies beyond the range.

    Attributes
    ----------
    rounding : ndarray of float64, shape (neurons,)
        A value that passes a bound by no more is at the bound: 32 units in the last place of the activations' type, at
        the neuron's largest training activation, or at the mean of these in its layer if that is larger (at most 1,000
        times its own). Between batches of other sizes, 3 to 15 such units have been measured.

    Notes
    -----
    The paper's corner regions leave the bounds out; dnn-tip takes them in (`inclusive`), so that there every neuron
    behind a ReLU that is ever silent is covered below. Those programs compare to the last bit, so that there training
    inputs that are measured again in other batches pass their own bounds. The paper is named at `KMNC`.
    """

    def _targets(self, sizes: tuple[int, ...]) -> int:
        return 2 * sum(sizes)

    def _profile(self, batch: ActivationBatch) -> Profiles:
        sides = np.stack([self._below(batch.values), self._above(batch.values)], axis=2)
        return Profiles.of_mask(sides.reshape(len(sides), -1))

    def _count(self, batch: ActivationBatch) -> None:
        self._hit[0::2] |= self._below(batch.low)
        self._hit[1::2] |= self._above(batch.high)


@criterion(
    "snac",
    label="Strong neuron activation coverage",
    help="Share of the neurons that some test activates above their training range.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.1, SNACov",
    parameters=(
        Parameter("margin", "margin", "Standard deviations by which the upper bound is raised.", 0.0, 0, 5, step=0.5),
    ),
    aim=raise_neuron,
)
class SNAC(_BoundaryCriterion):
    """Strong neuron activation coverage: |neurons above their range| / |N|; as `NBC` without the lower side."""

    def _profile(self, batch: ActivationBatch) -> Profiles:
        return Profiles.of_mask(self._above(batch.values))

    def _count(self, batch: ActivationBatch) -> None:
        self._hit |= self._above(batch.high)
