"""Rankings of a pool of tests: by each criterion, by surprise, uncertainty and diversity; how each scores a suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats, Ints
from idc_core.coverage.profiles import Profiles
from idc_core.errors import DataError

Take = Callable[[int, int], Ints]
"""From a number of tests and a seed to their positions, int64 (k,); the seed decides between equals."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """What one criterion, or a rival of criteria, makes of a pool of tests.

    Attributes
    ----------
    name : str
        Short name: that of the criterion or uncertainty, "lsa" for the surprise behind a criterion.
    tests : int
        Of the pool.
    first : callable
        Gives the tests that it takes first: each adds most coverage to those before, or they have the largest values.
    least : callable
        Gives tests that it would take last: each adds as little as possible to those before.
    score : callable
        From positions of tests, int64 (s,), to its score of that suite.
    """

    name: str
    tests: int
    first: Take
    least: Take
    score: Callable[[Ints], float]


def rank_by_profiles(name: str, profiles: Profiles, score: Callable[[Ints], float] | None = None) -> Ranking:
    """Return the ranking by a criterion's profiles: greedy by new coverage, or by value where it has no targets.

    Once no test adds anything, those that are left are equal. `score` scores suites of a criterion without targets.
    """
    if profiles.total != 0:
        greedy = _Greedy(profiles)
        return Ranking(name, len(profiles), partial(greedy, -1), partial(greedy, 1), profiles.coverage)
    if profiles.values is None or score is None:
        raise DataError(f"{name} has neither targets nor values with a score of suites: nothing ranks the tests.")
    return replace(rank_by_values(name, profiles.values), score=score)


def rank_by_values(name: str, values: NDArray[np.floating]) -> Ranking:
    """Return the ranking by a number for each test (n,), largest first; a suite scores the mean of its tests."""
    if np.isnan(values).any():
        raise DataError(f"{name} gives no number for some tests: nothing ranks them.")

    def take(sign: int, count: int, seed: int) -> Ints:
        ties = np.random.default_rng(seed).random(len(values))
        return np.lexsort((ties, sign * values))[:count].astype(np.int64)

    return Ranking(name, len(values), partial(take, -1), partial(take, 1), lambda tests: float(values[tests].mean()))


def rank_by_diversity(features: NDArray[np.floating]) -> Ranking:
    """Return the ranking by geometric diversity of features (n, d): log det(I + V V') of a suite's rows V.

    Features are scaled to a variance of 1 each. Taken first is what raises it most, one after the other.

    Notes
    -----
    Z. Aghababaeyan et al., "Black-Box Testing of Deep Neural Networks through Test Case Diversity", TSE 2023, section
    3.1, take det(V V') of features of a network trained on ImageNet. Of more tests than features that is 0, so that
    suites are not told apart: the unit matrix is added, as is usual where points are drawn by a determinant.
    """
    spread = features.std(0)
    scaled = np.asarray((features - features.mean(0))[:, spread > 0] / spread[spread > 0], np.float64)
    if not scaled.size:
        raise DataError("Features that are the same for all tests have no diversity.")

    def score(tests: Ints) -> float:
        rows = scaled[tests]
        return float(np.linalg.slogdet(np.eye(rows.shape[1]) + rows.T @ rows)[1])

    def first(count: int, seed: int) -> Ints:
        if count > len(most[0]):
            most[0] = _by_determinant(scaled, count, 1)
        return most[0][:count]

    most = [np.zeros(0, np.int64)]
    return Ranking("diversity", len(scaled), first, lambda count, seed: _by_determinant(scaled, count, -1, seed), score)


def _by_determinant(rows: Floats, count: int, sign: int, seed: int | None = None) -> Ints:
    """Take rows (n, d) one after the other that raise log det(I + V V') most, or least with a sign of -1.

    With a seed the first one is random.
    """
    n, width = rows.shape
    gains = np.einsum("ij,ij->i", rows, rows)  # x' A^-1 x, by which the determinant grows; A is I at first
    inverse, chosen, left = np.eye(width), np.empty(count, np.int64), np.ones(n, bool)
    for place in range(count):
        if seed is not None and place == 0:
            taken = int(np.random.default_rng(seed).integers(n))
        else:
            taken = int(np.where(left, sign * gains, -np.inf).argmax())
        chosen[place], left[taken] = taken, False
        direction = inverse @ rows[taken]
        growth = 1 + rows[taken] @ direction
        inverse -= np.outer(direction, direction) / growth  # Sherman and Morrison
        gains -= (rows @ direction) ** 2 / growth
    return chosen


class _Greedy:
    """Takes tests one after the other of which each adds most targets to those before, or fewest."""

    def __init__(self, profiles: Profiles) -> None:
        self.profiles = profiles
        order = np.argsort(profiles.targets, kind="stable")
        self.tests = np.repeat(np.arange(len(profiles)), profiles.counts)[order]
        width = int(profiles.targets.max(initial=-1)) + 1
        self.starts = np.searchsorted(profiles.targets[order], np.arange(width + 1))

    def __call__(self, sign: int, count: int, seed: int) -> Ints:
        """Return the positions of so many tests, int64 (count,): with a sign of -1 of largest, of 1 of least gains."""
        profiles = self.profiles
        ties = np.random.default_rng(seed).random(len(profiles))
        gains, fresh = sign * profiles.counts.astype(np.float64) + ties, np.ones(len(self.starts) - 1, bool)
        chosen = np.empty(count, np.int64)
        for place in range(count):
            test = chosen[place] = int(gains.argmin())
            gains[test] = np.inf
            targets = profiles.targets[profiles.starts[test] : profiles.starts[test + 1]]
            added = targets[fresh[targets]]
            fresh[added] = False
            for target in added:  # each test has a target once at most
                gains[self.tests[self.starts[target] : self.starts[target + 1]]] -= sign
        return chosen
