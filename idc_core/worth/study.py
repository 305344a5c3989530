"""What a higher score is worth in one network: targets found by selection, and beside the score of suites.

A yardstick says which test finds which target. Two designs ask whether a ranking knows: tests that it selects at a
budget, beside random ones; and suites whose scores are correlated with the share of targets that they find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idc_core.base.arrays import Floats, Ints
from idc_core.base.progress import Progress, report
from idc_core.base.statistics import spearman
from idc_core.errors import DataError, SettingError
from idc_core.store.cache import Record
from idc_core.worth.rankings import Ranking
from idc_core.worth.yardstick import Yardstick

SIZE = "size"
"""The ranking by nothing but how many tests there are."""

DESIGNS = ("equal", "stretched", "sizes", "partial")
"""Correlations: over random suites of one size; over suites of that size that are made to differ; over random suites of
many sizes; over these with their size held fixed."""


@dataclass(frozen=True)
class StudySettings:
    """How a study is done.

    Attributes
    ----------
    budgets : tuple of float
        Shares of the pool that are selected; the largest is the size of all suites of one size.
    suites : int
        Suites for each correlation.
    draws : int
        Random selections.
    orders : int
        Selections by each ranking, between whose equals chance decides: what they find is averaged.
    seed : int
    """

    budgets: tuple[float, ...] = (0.01, 0.03, 0.05)
    suites: int = 60
    draws: int = 200
    orders: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse budgets that are no shares, and too few suites or draws."""
        if not self.budgets or not all(0 < budget <= 0.5 for budget in self.budgets):
            raise SettingError(f"Budgets are shares of the pool above 0 and up to 0.5, not {self.budgets}.")
        if self.suites < 8 or self.draws < 20 or self.orders < 1:
            raise SettingError(
                f"A study takes 8 suites, 20 draws and one order or more, got suites={self.suites}, draws={self.draws} "
                f"and orders={self.orders}."
            )

    def sizes(self, pool: int) -> list[int]:
        """Return how many tests of a pool each budget is, at least one."""
        return [max(1, round(budget * pool)) for budget in self.budgets]


def study(
    rankings: Sequence[Ranking],
    yardsticks: Sequence[Yardstick],
    settings: StudySettings | None = None,
    *,
    on_progress: Progress | None = None,
) -> Record:
    """Hold rankings of one pool to yardsticks on it.

    Returns
    -------
    dict
        "tests": of the pool; "budgets": numbers of tests selected; "yardsticks": by name "targets", "random" (for each
        budget the mean share found, and the ends of its 95 % range), and "rankings": by name "found", the share found
        at each budget, "above", the share of random selections that find less, half of those that find as much, and a
        correlation for each of `DESIGNS`, None where a score does not vary; "ranges": by ranking the smallest and the
        largest score over suites of equal size, and over those that are made to differ.

    Raises
    ------
    DataError
        If rankings and yardsticks are not of one pool, or a pool is too small to tell budgets apart.
    """
    settings = settings or StudySettings()
    pool = _pool_of(rankings, yardsticks)
    sizes = settings.sizes(pool)
    if len(set(sizes)) < len(sizes):
        raise DataError(f"Budgets of {settings.budgets} of {pool} tests are {sizes} tests: give more tests.")
    drawn = _Suites(pool, max(sizes), settings)
    draws = [_drawn(pool, max(sizes), settings.seed + 1 + draw) for draw in range(settings.draws)]
    scored, taken = {}, {}
    for done, ranking in enumerate(rankings):
        report(on_progress, done, len(rankings), f"suites scored by {ranking.name}")
        scored[ranking.name] = drawn.scored(ranking)
        taken[ranking.name] = [ranking.first(max(sizes), settings.seed + order) for order in range(settings.orders)]
    held: Record = {}
    for done, yardstick in enumerate(yardsticks):
        report(on_progress, done, len(yardsticks), f"held to {yardstick.name}")
        random = np.array([_found(yardstick, draw, sizes) for draw in draws])
        common = drawn.shares(yardstick)
        held[yardstick.name] = {
            "targets": yardstick.targets,
            "random": [_spread(column) for column in random.T],
            "rankings": {
                ranking.name: _selected(yardstick, taken[ranking.name], sizes, random)
                | _correlated(yardstick, scored[ranking.name], common, drawn)
                for ranking in rankings
            }
            | {SIZE: _by_size(common, drawn)},
        }
    ranges = {name: {"equal": _ends(one.equal), "stretched": _ends(one.stretched)} for name, one in scored.items()}
    return {"tests": pool, "budgets": sizes, "size": max(sizes), "yardsticks": held, "ranges": ranges}


def _pool_of(rankings: Sequence[Ranking], yardsticks: Sequence[Yardstick]) -> int:
    """Return how many tests the pool has that all are about."""
    counts = {ranking.tests for ranking in rankings} | {len(yardstick.found) for yardstick in yardsticks}
    if len(counts) != 1 or not rankings or not yardsticks:
        raise DataError(f"Expected rankings and yardsticks of one pool of tests, got pools of {sorted(counts)} tests.")
    return counts.pop()


def _drawn(pool: int, count: int, seed: int) -> Ints:
    return np.random.default_rng(seed).permutation(pool)[:count].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores of suites by one ranking, and the suites that are made to differ by it."""

    equal: Floats
    sizes: Floats
    stretched: Floats
    suites: list[Ints]


class _Suites:
    """Suites of one pool: random ones of one size and of many sizes, and for a ranking those that it tells apart."""

    def __init__(self, pool: int, size: int, settings: StudySettings) -> None:
        self.pool, self.size, self.settings = pool, size, settings
        random = np.random.default_rng(settings.seed)
        largest = max(size + 1, pool // 2)
        self.numbers = np.geomspace(max(2, size // 5), largest, settings.suites).round().astype(np.int64)
        self.equal = [random.permutation(pool)[:size] for _ in range(settings.suites)]
        self.of_sizes = [random.permutation(pool)[:number] for number in self.numbers]

    def scored(self, ranking: Ranking) -> _Scored:
        """Return the scores of all suites by a ranking."""
        stretched = self._stretched(ranking)
        equal, sizes, apart = (
            np.array([ranking.score(suite) for suite in suites], np.float64)
            for suites in (self.equal, self.of_sizes, stretched)
        )
        return _Scored(equal, sizes, apart, stretched)

    def shares(self, yardstick: Yardstick) -> tuple[Floats, Floats]:
        """Return the shares that the random suites find, of one size and of many."""
        equal, sizes = (np.array([yardstick.share(suite) for suite in some]) for some in (self.equal, self.of_sizes))
        return equal, sizes

    def _stretched(self, ranking: Ranking) -> list[Ints]:
        """Make suites of one size from those that add least to one another to those that the ranking takes first.

        Half way are random ones; before and after, that share of a suite is random which leads there.
        """
        random = np.random.default_rng(self.settings.seed)
        suites = []
        for number, level in enumerate(np.linspace(-1, 1, self.settings.suites)):
            kept = round(abs(level) * self.size)
            chosen = (ranking.first if level > 0 else ranking.least)(kept, self.settings.seed + number)
            rest = random.permutation(np.setdiff1d(np.arange(self.pool), chosen))
            suites.append(np.concatenate([chosen, rest[: self.size - kept]]).astype(np.int64))
        return suites


def _found(yardstick: Yardstick, order: Ints, sizes: Sequence[int]) -> list[float]:
    """Return the share of targets that the first tests of an order find, for each number of them."""
    return [yardstick.share(order[:size]) for size in sizes]


def _spread(shares: Floats) -> list[float]:
    low, high = np.quantile(shares, [0.025, 0.975])
    return [float(shares.mean()), float(low), float(high)]


def _selected(yardstick: Yardstick, orders: Sequence[Ints], sizes: Sequence[int], random: Floats) -> Record:
    """Return what the tests find that a ranking selects, and how often random ones find less; means over its orders."""
    found = np.array([_found(yardstick, order, sizes) for order in orders])
    apart = found[:, None] - random
    above = (apart > 1e-12).mean((0, 1)) + 0.5 * (np.abs(apart) <= 1e-12).mean((0, 1))
    return {"found": found.mean(0).tolist(), "above": above.tolist()}


def _correlated(yardstick: Yardstick, scored: _Scored, common: tuple[Floats, Floats], drawn: _Suites) -> Record:
    """Return the rank correlation of a score with the share found, for each design."""
    equal, sizes = common
    apart = np.array([yardstick.share(suite) for suite in scored.suites])
    three = spearman(np.stack([scored.sizes, sizes, drawn.numbers]))
    found = (
        spearman(np.stack([scored.equal, equal]))[0, 1],
        spearman(np.stack([scored.stretched, apart]))[0, 1],
        three[0, 1],
        partial(three),
    )
    return {name: _plain(value) for name, value in zip(DESIGNS, found, strict=True)}


def partial(correlations: Floats) -> float:
    """Return the correlation of the first with the second of three, with the third held fixed; NaN where it cannot be.

    `correlations` (3, 3) are those of every two.
    """
    xy, xz, yz = correlations[0, 1], correlations[0, 2], correlations[1, 2]
    left = (1 - xz**2) * (1 - yz**2)
    return float((xy - xz * yz) / np.sqrt(left)) if left > 1e-12 else float("nan")


def _by_size(common: tuple[Floats, Floats], drawn: _Suites) -> Record:
    """Return how size alone goes with the share found: it has no choice at a budget."""
    rho = spearman(np.stack([drawn.numbers.astype(np.float64), common[1]]))[0, 1]
    return {"found": None, "above": None, "equal": None, "stretched": None, "sizes": _plain(rho), "partial": None}


def _ends(scores: Floats) -> list[float]:
    return [float(scores.min()), float(scores.max())]


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
