"""Statistics that several packages share: rank correlations, control of false discoveries and of any false one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.errors import SettingError

NORMAL = 1.959963984540054
"""Deviations from the mean of a normal distribution between which 95 % of it lie."""


def wilson(share: NDArray[np.floating], trials: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's 95 % interval of shares (...) observed in so many trials (...) each.

    E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference, JASA 22(158), 1927.
    """
    squared = NORMAL**2
    middle = (share + squared / (2 * trials)) / (1 + squared / trials)
    half = NORMAL * np.sqrt(share * (1 - share) / trials + squared / (4 * trials**2)) / (1 + squared / trials)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def spearman(values: NDArray[np.generic]) -> Floats:
    """Return Spearman's rank correlation of every two rows (k, n), float64 (k, k); NaN where one row is constant.

    Equal values share the mean of their ranks.
    """
    ranks = np.stack([mean_ranks(row) for row in values])
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt((ranks * ranks).sum(axis=1))
    correlations = np.full((len(values), len(values)), np.nan)
    np.divide(ranks @ ranks.T, np.outer(norms, norms), out=correlations, where=np.outer(norms, norms) > 0)
    return correlations.clip(-1.0, 1.0)


def mean_ranks(values: NDArray[np.generic]) -> Floats:
    """Return the rank of every value; equal values share the mean of their ranks."""
    # scipy.stats does the same, but importing it takes longer than everything else that a page needs here.
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: Floats = np.cumsum(counts) - (counts - 1) / 2
    return means[place]


def kendall(values: NDArray[np.generic]) -> Floats:
    """Return Kendall's tau-b of every two rows (k, n), float64 (k, k); NaN where one row is constant.

    Equal values count for neither side (M. G. Kendall, "The Treatment of Ties in Ranking Problems", Biometrika 33,
    1945).
    """
    from idc_core.base.scipy_parts import stats

    correlations = np.full((len(values), len(values)), np.nan)
    varied = [row for row, scores in enumerate(values) if np.ptp(scores) > 0]
    for place, row in enumerate(varied):
        correlations[row, row] = 1.0
        for other in varied[:place]:
            correlations[row, other] = correlations[other, row] = stats.kendalltau(values[row], values[other]).statistic
    return correlations


def passing(p_values: Floats, rate: float = 0.05, *, dependent: bool = True) -> NDArray[np.bool_]:
    """Return which tests, by their p-values (n,), are significant at a false-discovery rate; NaN was not tested.

    Y. Benjamini, D. Yekutieli, The control of the false discovery rate in multiple testing under dependency, Annals of
    Statistics 29(4), 2001, theorem 1.3; without `dependent` tests, such as units of one layer, Benjamini and Hochberg's
    procedure of 1995.
    """
    if not 0 < rate < 1:
        raise SettingError(f"The false-discovery rate must be between 0 and 1, not {rate!r}.")
    passed = np.zeros(len(p_values), bool)
    tested = ~np.isnan(p_values)
    if tested.any():
        from idc_core.base.scipy_parts import stats

        passed[tested] = stats.false_discovery_control(p_values[tested], method="by" if dependent else "bh") <= rate
    return passed


def holm(p_values: Floats) -> Floats:
    """Return p-values (n,) corrected for their number, so that at most 5 % of all such sets hold one below 5 % falsely.

    S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6(2), 1979;
    the comparisons may depend on one another. NaN was not compared, and stays.
    """
    corrected = np.full(len(p_values), np.nan)
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1) if len(order) else steps
    return corrected


def holm_levels(p_values: Floats, level: float = 0.05) -> Floats:
    """Return the level (n,) at which Holm's procedure compares each p-value: an interval at it tells the same verdict.

    The smallest of k is compared at ``level / k``, the next at ``level / (k - 1)``; those behind the first that fails
    at its level. NaN was not compared.
    """
    levels = np.full(len(p_values), np.nan)
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    steps = level / np.arange(len(order), 0, -1)
    failed = np.flatnonzero(p_values[order] > steps)
    levels[order] = np.minimum(steps, steps[failed[0]]) if len(failed) else steps
    return levels
