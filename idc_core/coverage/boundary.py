"""DeepGauge's criteria around the range that training has shown of each neuron: inside it, and beyond it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.coverage.activations import Seen
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import criterion
from idc_core.coverage.streamed import TargetCriterion
from idc_core.errors import SettingError
from idc_core.parameters import whole_number

Floats = NDArray[np.float64]


class Ranges:
    """Each neuron's smallest and largest training activation, and how far its activations spread.

    Parameters
    ----------
    spread : bool
        Whether the standard deviation is asked for.
    """

    def __init__(self, spread: bool) -> None:
        self.low: Floats = np.array(np.inf)
        self.high: Floats = np.array(-np.inf)
        self._spread, self._count = spread, 0
        self._mean: Floats = np.zeros(())
        self._squares: Floats = np.zeros(())

    def add(self, seen: Seen) -> None:
        """Take in a batch of training inputs."""
        self.low = np.minimum(self.low, seen.low)
        self.high = np.maximum(self.high, seen.high)
        if self._spread:
            mean, count = seen.values.mean(0, dtype=np.float64), len(seen.values)
            step, total = mean - self._mean, self._count + count
            # Chan, Golub, LeVeque: sums of squares about the means of two parts join without cancellation.
            self._squares = self._squares + ((seen.values - mean) ** 2).sum(0) + step**2 * (self._count * count / total)
            self._mean, self._count = self._mean + step * (count / total), total

    @property
    def deviation(self) -> Floats:
        """Standard deviation of each neuron over the training inputs, float64 (neurons,); 0 where not asked for."""
        return np.sqrt(self._squares / max(self._count, 1))


class _RangeCriterion(TargetCriterion):
    """A criterion that learns each neuron's range.

    Attributes
    ----------
    low, high : ndarray, float64 (neurons,)
        Bounds of each neuron's range, in the unit of the activations.
    """

    learns = True
    margin = 0.0

    def __init__(self, model: nn.Module, layers: str | Sequence[str], *, batch_size: int | None = None) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self.low: Floats = np.zeros(0)
        self.high: Floats = np.zeros(0)

    def _learner(self) -> Ranges:
        return Ranges(spread=self.margin > 0)

    def _adopt(self, learner: Ranges) -> None:
        self.low = learner.low - self.margin * learner.deviation
        self.high = learner.high + self.margin * learner.deviation

    def _learned(self) -> tuple[Any, ...]:
        return (*super()._learned(), self.low, self.high)


@criterion(
    "kmnc",
    label="k-multisection neuron coverage",
    help="Share of the k sections of every neuron's training range that tests fall into.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.1, KMNCov",
)
class KMNC(_RangeCriterion):
    """k-multisection neuron coverage: sum over n of |{i : phi(x, n) in S_i for some test x}| / (k |N|).

    The range [low, high] that training has shown of a neuron is cut into k equal sections S_i, each with its lower
    end, the last one also with its upper end.

    Parameters
    ----------
    model : Module
        Any network that returns scores.
    layers : str or sequence of str
        Names from ``named_modules()``.
    k : int
        Sections of a neuron.
    batch_size : int, optional
        Default: chosen from the network's size.

    Attributes
    ----------
    low, high : ndarray, float64 (neurons,)
        Bounds of each neuron's range.

    Raises
    ------
    ModelError
        If the network has no such layer.
    SettingError
        If k is not a positive whole number.

    Notes
    -----
    The state is one flag a section. A neuron that gives one value on all training inputs has no range to cut: its
    sections count, and nothing can reach them, as in dnn-tip and NeuraL-Coverage. At the ends of a section these
    differ: dnn-tip leaves a neuron's largest value out, NeuraL-Coverage its smallest.

    References
    ----------
    .. [1] L. Ma et al., "DeepGauge: Multi-Granularity Testing Criteria for Deep Learning Systems", ASE 2018,
       section 3.1.
    """

    def __init__(
        self, model: nn.Module, layers: str | Sequence[str], k: int = 1000, *, batch_size: int | None = None
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self.k = whole_number("k", k, 1)

    def _targets(self, sizes: tuple[int, ...]) -> int:
        return self.k * sum(sizes)

    def _learned(self) -> tuple[Any, ...]:
        return (*super()._learned(), self.k)

    def _codes(self, seen: Seen) -> NDArray[np.int64]:
        """Return the number of the section each activation falls into, int64 (n, neurons); -1 outside the range."""
        span = self.high - self.low
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            place = (seen.values - self.low) / span * self.k
            section = np.minimum(place, self.k - 1).astype(np.int64)
        inside = (seen.values >= self.low) & (seen.values <= self.high) & (span > 0)
        return np.where(inside, section + np.arange(len(span)) * self.k, -1)

    def _profile(self, seen: Seen) -> Profiles:
        return Profiles.of_codes(self._codes(seen), len(self._hit))

    def _count(self, seen: Seen) -> None:
        codes = self._codes(seen)
        # The last flag stands in for -1 and is put back, which is cheaper than picking out the others.
        last = self._hit[-1]
        self._hit[codes] = True
        self._hit[-1] = last or bool((codes[:, -1] == len(self._hit) - 1).any())


class _BoundaryCriterion(_RangeCriterion):
    """What lies beyond the range."""

    def __init__(
        self, model: nn.Module, layers: str | Sequence[str], margin: float, inclusive: bool, batch_size: int | None
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        if not (np.isfinite(margin) and margin >= 0):
            raise SettingError(f"margin must be a number of standard deviations of at least 0, not {margin!r}.")
        self.margin, self.inclusive = float(margin), inclusive

    def _learned(self) -> tuple[Any, ...]:
        return (*super()._learned(), self.margin, self.inclusive)

    def _above(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(values >= self.high if self.inclusive else values > self.high)

    def _below(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(values <= self.low if self.inclusive else values < self.low)


@criterion(
    "nbc",
    label="Neuron boundary coverage",
    help="Share of the two sides beyond every neuron's training range that tests reach.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.1, NBCov",
)
class NBC(_BoundaryCriterion):
    """Neuron boundary coverage: (|neurons above their range| + |neurons below it|) / (2 |N|).

    Targets 2 n and 2 n + 1 are the lower and the upper side of neuron n.

    Parameters
    ----------
    model, layers, batch_size
        As `KMNC`.
    margin : float
        By how many of the neuron's standard deviations the range is widened on both sides.
    inclusive : bool
        Whether the bound itself lies beyond the range.

    Attributes
    ----------
    low, high : ndarray, float64 (neurons,)
        Bounds of each neuron's range, margin included.

    Notes
    -----
    The paper's corner regions leave the bounds out; dnn-tip takes them in (`inclusive`), so that there every neuron
    behind a ReLU that is ever silent is covered below. Without a margin, training inputs that are measured again in
    other batches can pass their own bounds by a rounding error of the network.

    References
    ----------
    .. [1] L. Ma et al., "DeepGauge: Multi-Granularity Testing Criteria for Deep Learning Systems", ASE 2018,
       section 3.1.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: str | Sequence[str],
        margin: float = 0.0,
        inclusive: bool = False,
        *,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, margin, inclusive, batch_size)

    def _targets(self, sizes: tuple[int, ...]) -> int:
        return 2 * sum(sizes)

    def _profile(self, seen: Seen) -> Profiles:
        sides = np.stack([self._below(seen.values), self._above(seen.values)], axis=2)
        return Profiles.of_mask(sides.reshape(len(sides), -1))

    def _count(self, seen: Seen) -> None:
        self._hit[0::2] |= self._below(seen.low)
        self._hit[1::2] |= self._above(seen.high)


@criterion(
    "snac",
    label="Strong neuron activation coverage",
    help="Share of the neurons that some test drives above their training range.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.1, SNACov",
)
class SNAC(_BoundaryCriterion):
    """Strong neuron activation coverage: |neurons above their range| / |N|.

    Parameters
    ----------
    model, layers, margin, inclusive, batch_size
        As `NBC`; only the upper bound counts.

    References
    ----------
    .. [1] L. Ma et al., "DeepGauge: Multi-Granularity Testing Criteria for Deep Learning Systems", ASE 2018,
       section 3.1.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: str | Sequence[str],
        margin: float = 0.0,
        inclusive: bool = False,
        *,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, margin, inclusive, batch_size)

    def _targets(self, sizes: tuple[int, ...]) -> int:
        return sum(sizes)

    def _profile(self, seen: Seen) -> Profiles:
        return Profiles.of_mask(self._above(seen.values))

    def _count(self, seen: Seen) -> None:
        self._hit |= self._above(seen.high)
