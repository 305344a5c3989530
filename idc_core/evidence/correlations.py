"""Rank correlations over suites of one pool of tests: what comes by chance, intervals, which of several stand out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats, Ints
from idc_core.base.progress import Progress, report
from idc_core.base.statistics import NORMAL, mean_ranks
from idc_core.errors import SettingError
from idc_core.evidence.finding import LEVEL, Control, Finding

_ORDERS = 199
"""Random orders of the tests that say what correlations come by chance; LEVEL of one more is a whole number."""


@dataclass(frozen=True, eq=False)
class RankCorrelations:
    """Spearman's correlations of one score with k others, over suites of equal size that are drawn from one pool.

    Attributes
    ----------
    suites, tests : int
        How many suites there are, and from how many tests they are drawn.
    rho : ndarray, float64 (k,)
        The correlations; NaN where a score is the same throughout.
    low, high : ndarray, float64 (k,)
        Their 95 % intervals.
    p : ndarray, float64 (k,)
        Probability that any of k unrelated scores is as far from 0; NaN where there is none.
    by_chance : float
        What stands out is farther than this from 0: all k correlations of unrelated scores lie within it, with 95 %.
    least_p : float
        The smallest probability that any correlation could have.
    """

    suites: int
    tests: int
    rho: Floats
    low: Floats
    high: Floats
    p: Floats
    by_chance: float
    least_p: float

    def finding(self, names: Sequence[str], claim: str) -> Finding | None:
        """Return the strongest correlation as a finding, None where none is defined.

        `claim` has a place for the name: "{} correlates most with IDC".
        """
        if not np.isfinite(self.rho).any():
            return None
        place, looks = int(np.nanargmax(np.abs(self.rho))), int(np.isfinite(self.rho).sum())
        return Finding(
            "agreement",
            claim.format(names[place]),
            float(self.rho[place]),
            Control("by chance" if looks == 1 else f"by chance among {looks}", 0, -self.by_chance, self.by_chance),
            float(self.low[place]),
            float(self.high[place]),
            float(self.p[place]),
            self.least_p,
        )


def rank_correlations(
    first: Callable[[Ints], Floats],
    others: NDArray[np.floating],
    suites: Ints,
    tests: int,
    seed: int = 0,
    *,
    on_progress: Progress | None = None,
) -> RankCorrelations:
    """Correlate one score of suites with k others, by Spearman's rank correlation.

    Parameters
    ----------
    first : callable
        Gives the score of each suite, float64 (n,), from the positions of its tests, int64 (n, size).
    others : ndarray, float64 (k, n)
        The other scores of the suites.
    suites : ndarray, int64 (n, size)
        Positions of the tests of suites of one size: scores of larger suites are larger by most criteria.
    tests : int
        How many tests there are to draw from. They must be drawn independently of one another.

    Raises
    ------
    SettingError
        If there are fewer than three suites, or scores that are no numbers.

    Notes
    -----
    The suites share their tests, so that unrelated scores agree or disagree by which tests there are: more suites of
    few tests tell no more. What comes by chance is therefore counted over random orders of the tests: the first score
    is that of other tests than the others'. If the scores have nothing to do with one another, each order is as likely
    as the one at hand, and the largest of k correlations is beyond `by_chance` in 5 %, of however few tests. Intervals
    have the deviation over these orders, after Fisher's transformation.
    """
    scores = np.asarray([first(suites), *others], np.float64)
    if scores.ndim != 2 or scores.shape[1] < 3 or not np.isfinite(scores).all():
        raise SettingError(f"Expected scores of 3 suites or more that are finite numbers; got shape {scores.shape}.")
    ranks = np.stack([_scaled(row) for row in scores[1:]])
    varied = (ranks != 0).any(1)
    random, drawn = np.random.default_rng(seed), np.empty((_ORDERS, len(ranks)))
    for place in range(_ORDERS):
        report(on_progress, place, _ORDERS, "random orders of the tests")
        drawn[place] = ranks @ _scaled(first(random.permutation(tests)[suites]))
    own = _scaled(scores[0])
    rho = np.where(varied & own.any(), ranks @ own, np.nan).clip(-1, 1)
    most = np.sort(np.abs(drawn).max(1))
    # Equal correlations of other orders may differ in their last digit.
    beyond = (most >= np.append(np.abs(rho), 1)[:, None] - 1e-12).sum(1)
    p = np.where(np.isfinite(rho), (1 + beyond[:-1]) / (_ORDERS + 1), np.nan)
    within = float(most[-round(LEVEL * (_ORDERS + 1))])
    with np.errstate(divide="ignore"):  # the same ranks: the interval is 1 alone
        middle, half = np.arctanh(rho), NORMAL * np.arctanh(drawn.clip(-1 + 1e-9, 1 - 1e-9)).std(0)
    low, high = np.tanh(middle - half), np.tanh(middle + half)
    return RankCorrelations(len(suites), tests, rho, low, high, p, within, (1 + int(beyond[-1])) / (_ORDERS + 1))


def _scaled(values: Floats) -> Floats:
    """Return the ranks of values, equal ones sharing their mean, about 0 and of length 1; 0 where all are equal."""
    ranks = mean_ranks(values)
    ranks -= ranks.mean()
    length = np.linalg.norm(ranks)
    return ranks / length if length > 0 else ranks
