"""Rank correlations over suites of equal size: their intervals, and which of several stand out from chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.base.statistics import holm, spearman
from idc_core.errors import SettingError
from idc_core.evidence.finding import LEVEL, Control, Finding

_PERMUTATIONS = 5_000
"""Random orders that say what correlations come by chance."""

_RESAMPLES = 1_000
"""Bootstrap samples of suites, for an interval."""


_MANY = 30
"""Suites from which on Student's t says what correlations come by chance."""


@dataclass(frozen=True, eq=False)
class RankCorrelations:
    """Spearman's correlations of one score with k others, over n suites of equal size.

    Attributes
    ----------
    suites : int
        n.
    rho : ndarray, float64 (k,)
        The correlations; NaN where a score is the same throughout.
    low, high : ndarray, float64 (k,)
        Their 95 % intervals (bootstrap over the suites, percentiles).
    p : ndarray, float64 (k,)
        Probability of one as far from 0 by chance alone (permutation of the suites); NaN where there is none.
    corrected_p : ndarray, float64 (k,)
        The same among all of them, by Holm's correction.
    by_chance : float
        All k correlations of unrelated scores lie within this of 0, with 95 %.
    needed : float or None
        How far rho must be from 0 to stand out among all of them; None where none would.
    """

    suites: int
    rho: Floats
    low: Floats
    high: Floats
    p: Floats
    corrected_p: Floats
    by_chance: float
    needed: float | None

    def finding(self, names: Sequence[str], claim: str) -> Finding | None:
        """Return the strongest correlation as a finding, None where none is defined.

        `claim` has a place for the name: "{} correlates most with IDC".
        """
        if not np.isfinite(self.rho).any():
            return None
        place, looks = int(np.nanargmax(np.abs(self.rho))), int(np.isfinite(self.rho).sum())
        what = "by chance" if looks == 1 else f"by chance among {looks}"
        return Finding(
            "agreement",
            claim.format(names[place]),
            float(self.rho[place]),
            Control(what, 0, -self.by_chance, self.by_chance),
            float(self.low[place]),
            float(self.high[place]),
            float(self.p[place]),
            1 / (_PERMUTATIONS + 1),
            looks,
        )


def rank_correlations(first: NDArray[np.floating], others: NDArray[np.floating], seed: int = 0) -> RankCorrelations:
    """Correlate the scores of n suites (n,) with k others (k, n), by Spearman's rank correlation.

    The suites must be of equal size, and drawn independently of one another: scores of larger suites are larger by most
    criteria, which correlates them by size alone.
    """
    scores = np.asarray([first, *others], np.float64)
    if scores.ndim != 2 or scores.shape[1] < 3 or not np.isfinite(scores).all():
        raise SettingError(f"Expected scores of 3 suites or more that are finite numbers; got shape {scores.shape}.")
    suites, random = scores.shape[1], np.random.default_rng(seed)
    rho = spearman(scores)[0, 1:]
    known = np.isfinite(rho)
    again = _resampled(scores, random)
    low, high = np.full(len(rho), np.nan), np.full(len(rho), np.nan)
    if known.any():
        low[known], high[known] = np.nanquantile(again[:, known], [0.025, 0.975], axis=0)
    by_chance = _by_chance(scores, random)
    p = np.full(len(rho), np.nan)
    # Equal correlations of other orders may differ in their last digit.
    p[known] = (1 + (np.abs(by_chance[:, known]) >= np.abs(rho[known]) - 1e-12).sum(0)) / (_PERMUTATIONS + 1)
    within = float(np.quantile(np.abs(by_chance[:, known]).max(1), 1 - LEVEL)) if known.any() else np.nan
    return RankCorrelations(suites, rho, low, high, p, holm(p), within, needed(suites, int(known.sum())))


def _resampled(scores: Floats, random: np.random.Generator) -> Floats:
    """Return the correlations of the first scores with the others in bootstrap samples of the suites, (samples, k)."""
    suites = scores.shape[1]
    often = random.multinomial(suites, np.full(suites, 1 / suites), _RESAMPLES)
    ranks = []
    for row in scores:
        values, place = np.unique(row, return_inverse=True)
        counts = often @ np.eye(len(values), dtype=np.int64)[place]
        # Equal values share the mean of their ranks; a suite that is drawn twice is equal to itself.
        ranks.append((counts.cumsum(1) - (counts - 1) / 2)[:, place] - (suites + 1) / 2)
    first, others = ranks[0], np.stack(ranks[1:])
    products = (often * first * others).sum(2)
    norms = np.sqrt((often * first**2).sum(1) * (often * others**2).sum(2))
    found: Floats = np.divide(products, norms, out=np.full(products.shape, np.nan), where=norms > 0)
    return found.T


def _by_chance(scores: Floats, random: np.random.Generator) -> Floats:
    """Return the correlations of the first scores, in random orders, with the others, (orders, k)."""
    ranks = np.stack([_centred(row) for row in scores])
    orders = random.permuted(np.tile(ranks[0], (_PERMUTATIONS, 1)), axis=1)
    norms = np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1:], axis=1)
    return np.asarray(orders @ ranks[1:].T / np.where(norms > 0, norms, np.inf))


def _centred(values: Floats) -> Floats:
    """Return the ranks of values, equal ones sharing their mean, less their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return np.asarray(ranks - ranks.mean(), np.float64)


def needed(suites: int, comparisons: int = 1, seed: int = 0) -> float | None:
    """Return how far from 0 a correlation must be to stand out, of so many suites; None if none would.

    A permutation of all ranks, or Student's t where there are 30 suites or more.
    """
    if suites < 3 or comparisons < 1:
        return None
    if suites >= _MANY:
        beyond = _student(LEVEL / comparisons / 2, suites - 2)
        return beyond / float(np.sqrt(suites - 2 + beyond**2))
    ranks = np.arange(suites) - (suites - 1) / 2
    orders = np.random.default_rng(seed).permuted(np.tile(ranks, (_PERMUTATIONS, 1)), axis=1)
    values = np.round(np.abs(orders @ ranks) / (ranks @ ranks), 12)
    least, counts = np.unique(values, return_counts=True)
    enough = least[counts[::-1].cumsum()[::-1] / _PERMUTATIONS <= LEVEL / comparisons]
    return float(enough[0]) if len(enough) else None


def _student(beyond: float, freedom: int) -> float:
    """Return what Student's t exceeds with a probability, for 28 degrees of freedom or more (within 0.005)."""
    # The expansion of Cornish and Fisher; importing scipy.stats takes longer than everything else that a page needs.
    z = NormalDist().inv_cdf(1 - beyond)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
