"""How much is left: the chance that the next input reaches something new, and how much more inputs would reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats, Ints
from idc_core.base.parameters import whole_number
from idc_core.base.statistics import NORMAL
from idc_core.errors import DataError, SettingError

_Z_BELOW = 1.644854
"""Standard deviations that 95 % of a normal distribution lie above, less the mean."""

_BIAS = 0.07
"""Share by which as many inputs again can reach more than expected, which is a lower bound."""

_MANY = 10
"""From so many inputs of either kind on, an interval about their share is symmetric."""


class NewTargets(NamedTuple):
    """How many targets more inputs would reach that none has reached: the number to expect, and its 95 % range."""

    expected: float
    low: int
    high: int


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """How much inputs leave to be reached, by how many of them reached each target.

    It holds for further inputs drawn as these were; generated or chosen ones are of another kind.

    Attributes
    ----------
    inputs : int
        How many inputs there are, n.
    reached : int
        Targets that they reach, S.
    once, twice : int
        Targets that one input alone reaches, f1, and that two reach, f2.
    alone : int
        Inputs that reach a target that no other reaches, u. Where an input reaches one target at most this is f1.
    pairs : int
        Pairs of inputs, neither of them alone, that share a target that no other input reaches; f2 in that case.
    once_squares, twice_squares : int
        Sum over inputs, and over pairs of inputs, of the square of how many such targets they have; f1 and f2 there.
    total : int, optional
        How many targets there are; None where there is no end to them.

    Notes
    -----
    Where an input reaches several targets (incidence data), those of one input come together. `chance` is then that the
    next input reaches any new target, one or many, and is estimated from inputs instead of targets, u / n; for one
    target per input this is Good's f1 / n. Variances of f1 and f2 take `once_squares` and `twice_squares`, since
    targets that come together vary together.

    References
    ----------
    .. [1] I. J. Good, "The Population Frequencies of Species and the Estimation of Population Parameters",
       Biometrika 40, 1953.
    .. [2] W. W. Esty, "A Normal Limit Law for a Nonparametric Estimator of the Coverage of a Random Sample",
       Annals of Statistics 11(3), 1983.
    .. [3] A. Chao, "Nonparametric Estimation of the Number of Classes in a Population", Scandinavian Journal of
       Statistics 11, 1984; for incidence data, "Estimating the Population Size for Capture-Recapture Data with Unequal
       Catchability", Biometrics 43, 1987.
    .. [4] T.-J. Shen, A. Chao, C.-F. Lin, "Predicting the Number of New Species in Further Taxonomic Sampling",
       Ecology 84(3), 2003.
    .. [5] R. K. Colwell et al., "Models and Estimators Linking Individual-Based and Sample-Based Rarefaction,
       Extrapolation and Comparison of Assemblages", Journal of Plant Ecology 5(1), 2012.
    """

    inputs: int
    reached: int
    once: int
    twice: int
    alone: int
    pairs: int
    once_squares: int
    twice_squares: int
    total: int | None = None

    def __post_init__(self) -> None:
        """Refuse what nothing can be said of."""
        if self.inputs < 2:
            raise DataError(f"How much is left is told from at least 2 inputs; got {self.inputs}. Use more of them.")

    @classmethod
    def of_counts(cls, counts: NDArray[np.integer], total: int | None = None) -> Self:
        """Return that of inputs that each reach one target, from how many of them reach each target, (targets,)."""
        once, twice = (int(np.count_nonzero(counts == times)) for times in (1, 2))
        return cls(
            inputs=int(counts.sum()),
            reached=int(np.count_nonzero(counts)),
            once=once,
            twice=twice,
            alone=once,
            pairs=twice,
            once_squares=once,
            twice_squares=twice,
            total=total,
        )

    @classmethod
    def of_incidence(cls, starts: Ints, targets: NDArray[np.integer], total: int | None = None) -> Self:
        """Return that of n inputs of which input i reaches ``targets[starts[i]:starts[i + 1]]``, each once."""
        inputs = len(starts) - 1
        numbers, target, counts = np.unique(targets, return_inverse=True, return_counts=True)
        owner = np.repeat(np.arange(inputs), np.diff(starts))
        own = np.bincount(owner[counts[target] == 1], minlength=inputs)
        shared = np.flatnonzero(counts[target] == 2)
        both = owner[shared[np.argsort(target[shared], kind="stable")]].reshape(-1, 2)
        pairs, together = np.unique(both, axis=0, return_counts=True)
        return cls(
            inputs=inputs,
            reached=len(numbers),
            once=int(own.sum()),
            twice=len(both),
            alone=int(np.count_nonzero(own)),
            pairs=int(np.count_nonzero((own[pairs] == 0).all(axis=1))),
            once_squares=int((own**2).sum()),
            twice_squares=int((together**2).sum()),
            total=total,
        )

    @property
    def chance(self) -> float:
        """Chance that the next input reaches a target that none of these does, 0..1: u / n (Good 1953)."""
        return 0.0 if self._complete else self.alone / self.inputs

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval of `chance`."""
        return self._interval[0]

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval of `chance`."""
        return self._interval[1]

    @property
    def _interval(self) -> tuple[float, float]:
        """Esty's interval; where it would lean on few inputs, one that is not symmetric.

        Esty 1983: (u ± z sqrt(u (1 - u/n) + 2 q)) / n, q the `pairs`. With u or n - u below `_MANY` it holds in 88 to
        93 %, and with u = q = 0 it has no width. There the chances r are taken for which u lies within z standard
        deviations of n r, sqrt(n r (1 - r) + 2 q + 1), as in Wilson's interval of a share: 93 to 96 %.
        """
        if self._complete:
            return 0.0, 0.0
        n, alone, shared = self.inputs, self.alone, 2 * self.pairs
        if min(alone, n - alone) >= _MANY:
            width = NORMAL * math.sqrt(alone * (1 - alone / n) + shared)
            return max(0.0, (alone - width) / n), min(1.0, (alone + width) / n)
        square, linear = n * (n + NORMAL**2), n * (2 * alone + NORMAL**2)
        root = math.sqrt(linear**2 - 4 * square * (alone**2 - NORMAL**2 * (shared + 1)))
        return max(0.0, (linear - root) / (2 * square)), min(1.0, (linear + root) / (2 * square))

    @property
    def lower_bound(self) -> float:
        """Estimate of a lower bound of how many targets can be reached, S + f0 (Chao 1984, 1987); not of how many.

        f0 = (n - 1)/n f1² / (2 f2), or (n - 1)/n f1 (f1 - 1) / 2 where f2 = 0. It is above their number by chance in up
        to a fifth of the draws, where most targets are reached: `at_least` is what can be said.
        """
        return self._capped(self.reached + self._unseen(self.once, self.twice))

    @property
    def at_least(self) -> int:
        """How many targets can be reached at least (95 %): the lower end of the interval of `lower_bound`."""
        unseen = self._unseen(self.once, self.twice)
        spread = math.exp(_Z_BELOW * _deviation(unseen, self._variance(self.once, math.inf, 0)))
        return int(self._capped(self.reached + math.floor(unseen / spread)))

    def new(self, t: int) -> NewTargets:
        """Return how many targets t more inputs would reach that none of these does.

        Expected are f0 (1 - (1 - f1 / (n f0 + f1))^t) (Shen, Chao, Lin 2003; for incidence data Colwell et al. 2012),
        which is a little low, since f0 is a lower bound. The range is that in which the number found lies in 95 %: a
        Poisson number whose mean is itself uncertain, by what f1 and f2 are (negative binomial).

        Raises
        ------
        SettingError
            If t is not a whole number from 1 to n.
        """
        chances, expected = self._chances(t), self.expected(t)
        low, high = np.searchsorted(chances.cumsum(), [0.025, 0.975])
        # Of few inputs none is the most probable number; that there may be one is said all the same.
        return NewTargets(expected, int(low), max(int(high), math.ceil(expected), min(1, len(chances) - 1)))

    def expected(self, t: int) -> float:
        """Return how many targets t more inputs would reach, as `new` does; for t above n, a lower bound."""
        return min(self._left, self._new(self.once, self.twice, t))

    def curve(self, points: int = 41) -> tuple[Ints, Floats]:
        """Return numbers of inputs (p,) from n to 2 n, and what they reach, (p, 3): expected, lowest and highest."""
        more = np.unique(np.linspace(0, self.inputs, points).round().astype(np.int64))
        new = [(0.0, 0, 0), *(self.new(int(t)) for t in more[1:])]
        return self.inputs + more, self.reached + np.array(new, np.float64)

    def p_of(self, t: int, found: float) -> float:
        """Return how probable a number of new targets of t more inputs is that is as far off on either side, 0..1."""
        chances = self._chances(t)
        tails = chances[: math.floor(found) + 1].sum(), chances[math.ceil(found) :].sum()
        return float(min(1.0, 2 * min(tails)))

    def least_p(self, t: int) -> float:
        """Return the smallest such probability that there is."""
        return min(self.p_of(t, 0), self.p_of(t, len(self._chances(t)) - 1))

    def _chances(self, t: int) -> Floats:
        """Return the probabilities of 0, 1, 2 ... new targets of t more inputs."""
        whole_number("t", t, 1)
        if t > self.inputs:
            raise SettingError(
                f"New targets are predicted for at most as many more inputs as there are, {self.inputs:,}, not for "
                f"{t:,}: what no input has reached shows too little of itself (seven times as many tests reached "
                "1,136 new cells where 910 were predicted)."
            )
        # Where nothing was reached once, half of one: the chance is known to be small, not to be 0.
        once = self.once or 0.5
        mean = min(self._left, self._new(once, self.twice, t))
        uncertain = max(0.0, self._variance(once, t, 1) - mean) + (_BIAS * mean * t / self.inputs) ** 2
        most = int(min(self._left, mean + 12 * math.sqrt(mean + uncertain) + 12))
        return _poisson(mean, uncertain, most)

    @property
    def _left(self) -> float:
        """How many targets no input reaches."""
        return math.inf if self.total is None else self.total - self.reached

    @property
    def _complete(self) -> bool:
        """Whether there is nothing left to reach."""
        return self.reached == self.total

    def _capped(self, number: float) -> float:
        return number if self.total is None else min(number, self.total)

    def _unseen(self, once: float, twice: float) -> float:
        """Return Chao's f0; at least one where one target was reached once, and 1/4 for half of one."""
        share = (self.inputs - 1) / self.inputs
        if twice:
            return share * once**2 / (2 * twice)
        return max(share * once * (once - 1) / 2, 1.0 if self.once == 1 else 0.0 if self.once else once**2)

    def _new(self, once: float, twice: float, t: float) -> float:
        unseen = self._unseen(once, twice)
        if not unseen:
            return 0.0
        return float(unseen * (1 - (1 - once / (self.inputs * unseen + once)) ** t))

    def _variance(self, once: float, t: float, more: float) -> float:
        """Return the variance of the new targets about what is expected: their own, and that of f1 and f2.

        f1 varies by so much `more` than it says itself: by one, few are no surer than they are.
        """
        if not once:
            return 0.0
        step = 0.01
        by_once = self._new(once + step, self.twice, t) - self._new(once - step, self.twice, t)
        by_twice = 0.0
        if self.twice:
            by_twice = self._new(once, self.twice + step, t) - self._new(once, self.twice - step, t)
        # About their mean per input; not less than where they come singly, which few inputs understate.
        of_once = max(once, self.once_squares - once**2 / self.inputs)
        own = self._new(once, self.twice, t) * of_once / once
        return own + (by_once**2 * (of_once + more) + by_twice**2 * self.twice_squares) / (2 * step) ** 2


def _poisson(mean: float, uncertain: float, most: int) -> Floats:
    """Return the probabilities of 0 to `most` of a Poisson number whose mean has a variance (gamma)."""
    if mean <= 0 or not most:
        return np.array([1.0, *[0.0] * most])
    shape = mean**2 / max(uncertain, 1e-12)
    numbers = np.arange(most)
    logs = np.log((shape + numbers) / (numbers + 1)) + np.log(mean / (shape + mean))
    logs = np.concatenate([[0.0], logs.cumsum()])
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum())


def _deviation(number: float, variance: float) -> float:
    """Return the standard deviation of the logarithm of a log-normal number."""
    return math.sqrt(math.log1p(variance / number**2)) if number else 0.0
