"""How many new cells as many natural inputs would add: what an addition to the tests is compared with.

Natural inputs that neither network nor clusters have seen are rarely at hand, and training inputs are none: clusters
were fitted to them. What more tests of the same kind would add follows from how often the tests reach each cell. (Half
of the digits' tests, added to the other half, lie outside of the range of as many training inputs in 56 % of 200 draws,
and stand out beside this prediction in 4 %.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.errors import SettingError
from idc_core.evidence.finding import Control, Finding

_NATURAL = "in as many natural inputs"
"""What gives the control, as a phrase that follows its number."""

_BIAS = 0.07
"""Share by which as many natural inputs as there are tests can add more than predicted, which is a lower bound."""


@dataclass(frozen=True, eq=False)
class NaturalGain:
    """What natural inputs would add to the tests.

    Attributes
    ----------
    inputs, tests : int
        Numbers of the inputs and of the tests that they would be added to.
    expected : float
        Number of cells that they would add.
    chances : ndarray, float64 (most + 1,)
        Probability that they add 0, 1, 2 ... cells.
    """

    inputs: int
    tests: int
    expected: float
    chances: Floats

    @property
    def known(self) -> bool:
        """Whether the tests are enough to tell: of more inputs than tests they say a lower bound only."""
        return self.inputs <= self.tests

    @property
    def low(self) -> int:
        """End of the range of 95 % below."""
        return int(np.searchsorted(self.chances.cumsum(), 0.025)) if self.known else 0

    @property
    def high(self) -> int:
        """End of the range of 95 % above."""
        most = len(self.chances) - 1
        return min(most, int(np.searchsorted(self.chances.cumsum(), 0.975))) if self.known else most

    def p(self, added: float) -> float:
        """Return the probability, 0..1, that they add a number as far off as this one, on either side; 1 if unknown."""
        if not self.known:
            return 1.0
        below = float(self.chances[: int(np.floor(added)) + 1].sum())
        above = float(self.chances[int(np.ceil(added)) :].sum())
        return min(1.0, 2 * min(below, above))

    @property
    def least_p(self) -> float:
        """The smallest such probability that there is."""
        return min(self.p(0), self.p(len(self.chances) - 1))


def natural_gain(counts: NDArray[np.integer], total: int, inputs: int) -> NaturalGain:
    """Predict how many new cells some more tests of the same kind would reach.

    Parameters
    ----------
    counts : ndarray, int (reached,)
        How many tests each reached cell holds.
    total : int
        Number of cells there are.
    inputs : int
        Number of further tests.

    Notes
    -----
    Expected are ``f0 (1 - (1 - f1 / (n f0 + f1)) ** inputs)`` cells, with ``f0 = (n - 1) / n f1**2 / (2 f2)`` unseen
    ones, at most those that are left, from the f1 cells that one of n tests reaches and the f2 that two reach (A. Chao
    et al., Ecological Monographs 84(1), 2014, equation 9). The number is spread as a Poisson one whose mean is itself
    uncertain by what f1 and f2 are (negative binomial).
    """
    counts = np.asarray(counts)
    if counts.ndim != 1 or not len(counts) or counts.min() < 1 or inputs < 1 or total < len(counts):
        raise SettingError(
            f"Expected numbers of tests of at least 1 in 1 to {total} cells and at least 1 input; got {len(counts)} "
            f"cells and {inputs} inputs."
        )
    tests, left = int(counts.sum()), total - len(counts)
    # Where no cell holds one test alone, half of one: the chance of a new cell is small, and not 0.
    once, twice = max(float((counts == 1).sum()), 0.5), float((counts == 2).sum())

    def expected(once: float, twice: float) -> float:
        unseen = (tests - 1) / tests * (once * once / (2 * twice) if twice > 0 else once * max(once - 1, 1) / 2)
        unseen = min(unseen, left)
        return unseen * (1 - (1 - once / (tests * unseen + once)) ** inputs) if unseen else 0.0

    mean = expected(once, twice)
    by_once = expected(once + 0.5, twice) - expected(once - 0.5 + 1e-9, twice)
    by_twice = expected(once, twice + 1) - expected(once, max(twice, 0.5))
    uncertain = by_once**2 * (once + 1) + by_twice**2 * max(twice, 0.5) + (_BIAS * mean * inputs / tests) ** 2
    return NaturalGain(inputs, tests, mean, _chances(mean, uncertain, min(inputs, left)))


def _chances(mean: float, uncertain: float, most: int) -> Floats:
    """Return the probabilities of 0 to `most` of a Poisson number whose mean has a variance (gamma)."""
    if mean <= 0 or not most:
        return np.array([1.0, *[0.0] * most])
    shape = mean**2 / max(uncertain, 1e-12)
    numbers = np.arange(most)
    logs = np.log((shape + numbers) / (numbers + 1)) + np.log(mean / (shape + mean))
    logs = np.concatenate([[0.0], logs.cumsum()])
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum())


def addition(
    claim: str, added: Sequence[int], natural: NaturalGain, *, looks: int = 1, where: tuple[tuple[str, str], ...] = ()
) -> Finding:
    """Compare what an addition adds with what as many natural inputs would.

    Parameters
    ----------
    claim : str
        The number in words: "New cells from 64 FGSM inputs".
    added : sequence of int
        New cells of the addition, one number per seed; their mean counts.
    natural : NaturalGain
        Of as many inputs as one seed adds.
    looks, where
        As in `Finding`.
    """
    number, low, high = float(np.mean(added)), natural.low, natural.high
    expected = min(max(round(natural.expected, 2), low), high)
    return Finding(
        "addition",
        claim,
        number,
        Control(_NATURAL, expected, low, high),
        number - high,
        number - low,
        natural.p(number),
        natural.least_p if natural.known else 1.0,
        looks,
        where=where,
    )
