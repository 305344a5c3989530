"""Differences of pairs, one pair a network or a seed: intervals, effect sizes, and whether they are as good as none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from idc_core.base.arrays import Floats
from idc_core.base.parameters import shown
from idc_core.base.statistics import holm, holm_levels
from idc_core.errors import SettingError

CONFIDENCE = 0.95
"""Probability with which no column seems to differ where none does, if the differences are normally distributed."""


@dataclass(frozen=True, eq=False)
class PairedDifferences:
    """Differences of n pairs in k columns, and what follows from them; the columns are corrected for one another.

    Attributes
    ----------
    values : ndarray, float64 (n, k)
        First less second of every pair. A pair is a unit that can be taken as independent: a network, not its tests.
    margin : float
        Differences within it are as good as none; in the unit of the values, settled before they were seen.

    Raises
    ------
    SettingError
        If the values are no finite matrix, or the margin is not above 0.
    """

    values: Floats
    margin: float

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or not np.isfinite(self.values).all():
            raise SettingError(f"Expected finite differences (pairs, columns), got {shown(self.values)}.")
        if not (np.isfinite(self.margin) and self.margin > 0):
            raise SettingError(f"A margin of equivalence is a number above 0, not {shown(self.margin)}.")

    @cached_property
    def mean(self) -> Floats:
        """Mean difference, (k,)."""
        return interval(self.values)[0]

    @cached_property
    def half(self) -> Floats:
        """Half width of the interval of the mean (Student's t, Holm over the columns), (k,); NaN below two pairs."""
        return interval(self.values)[1]

    @cached_property
    def p(self) -> Floats:
        """Two-sided p-values by Student's t, corrected by Holm's procedure, (k,)."""
        return holm(p_values(self.values))

    @cached_property
    def effect(self) -> Floats:
        """Hedges' g of the pairs, (k,): mean over standard deviation, less what few pairs overstate.

        L. V. Hedges, "Distribution Theory for Glass's Estimator of Effect Size", Journal of Educational Statistics
        6(2), 1981. NaN below three pairs, of which it tells nothing; infinite where all pairs differ alike.
        """
        count = len(self.values)
        if count < 3:
            return np.full(self.values.shape[1], np.nan)
        spread, mean = self.values.std(axis=0, ddof=1), self.values.mean(axis=0)
        nothing = np.where(mean == 0, 0.0, np.copysign(np.inf, mean))
        ratio = np.divide(mean, spread, out=nothing, where=spread > 1e-12 * np.maximum(1, np.abs(mean)))
        return np.asarray(ratio * (1 - 3 / (4 * (count - 1) - 1)))

    @property
    def within(self) -> Floats:
        """The smallest margin within which each column is equivalent to none, (k,), as `equivalent_within` says."""
        return equivalent_within(self.values)

    @cached_property
    def p_equivalent(self) -> Floats:
        """P-values of the two one-sided tests against the margin, corrected by Holm's procedure, (k,)."""
        if len(self.values) < 2:
            return np.full(self.values.shape[1], np.nan)
        from scipy.stats import t

        room, error = self.margin - np.abs(self.values.mean(axis=0)), standard_error(self.values)
        least = np.where(room == 0, 0.0, np.copysign(np.inf, room))
        return holm(np.asarray(t.sf(np.divide(room, error, out=least, where=error > 0), len(self.values) - 1)))

    def verdict(self, column: int) -> str:
        """Return what the pairs say of a column.

        "more" or "less"; the same with "little" before it where it is certainly within the margin; "none" where only
        that is certain, and "open" where nothing is.
        """
        mean, half = float(self.mean[column]), float(self.half[column])
        little = bool(self.p_equivalent[column] <= 1 - CONFIDENCE)
        if abs(mean) > half:
            return f"{'little ' if little else ''}{'more' if mean > 0 else 'less'}"
        return "none" if little else "open"


def equivalent_within(values: Floats) -> Floats:
    """Return the smallest margin within which each column (n, columns) is equivalent to none at 5 %, (columns,).

    It is the farther end of the 90 % interval, of each column by itself; NaN below two pairs. D. J. Schuirmann, "A
    Comparison of the Two One-Sided Tests Procedure", Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987.
    """
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    from scipy.stats import t

    beyond = t.isf(1 - CONFIDENCE, len(values) - 1)
    return np.asarray(np.abs(values.mean(axis=0)) + beyond * standard_error(values))


def interval(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and half width of the confidence interval of differences (n, columns), float64 (columns,) each.

    An interval holds 0 where Holm's procedure over the columns finds nothing. NaN where there are no values; the half
    width is NaN below two.
    """
    count = len(values)
    if count < 2:
        nothing = np.full(values.shape[1], np.nan)
        return (values[0] if count else nothing), nothing
    from scipy.stats import t

    levels = holm_levels(p_values(values), 1 - CONFIDENCE)
    return values.mean(axis=0), np.asarray(t.isf(levels / 2, count - 1) * standard_error(values))


def p_values(values: Floats) -> Floats:
    """Return the two-sided p-value of each column of differences (n, columns) by Student's t; NaN below two."""
    count = len(values)
    if count < 2:
        return np.full(values.shape[1], np.nan)
    from scipy.stats import t

    mean, error = np.abs(values.mean(axis=0)), standard_error(values)
    ratio = np.divide(mean, error, out=np.zeros_like(mean), where=error > 0)
    return np.asarray(2 * t.sf(ratio, count - 1))


def standard_error(values: Floats) -> Floats:
    """Return the standard error of the mean of each column of differences, no smaller than rounding leaves it.

    An accuracy is a whole number of tests, rounded from what it is on average: two seeds of two equally good networks
    often differ by the same number of tests. A difference of two has at least the variance step² / 6. No step is larger
    than the smallest distance of two differences, or of one from 0. NaN below two values.
    """
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    sorted_values = np.sort(np.concatenate([values, np.zeros((1, values.shape[1]))]), axis=0)
    gaps = np.diff(sorted_values, axis=0)
    gaps[gaps < 1e-12] = np.inf
    step = gaps.min(axis=0)
    variance = np.maximum(values.var(axis=0, ddof=1), np.where(np.isfinite(step), step**2 / 6, 0.0))
    return np.asarray(np.sqrt(variance / len(values)))
