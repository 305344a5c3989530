"""Sums over groups of records: what every pairwise measure keeps, and how sure a score computed from them is.

A score is a smooth function of sums over all records. The sums are kept for up to `MOST_GROUPS` groups of records, so
that leaving out one group at a time (the jackknife) tells how much the score would change with other records. Whole
records are left out, so symbols of one record may depend on one another as they like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Sums = dict[str, NDArray[np.float64]]
"""Sums by name; axis -2 is the hypothesis (or 1), axis -1 the unit (or 1)."""

Statistic = Callable[[Sums], NDArray[np.float64]]
"""From sums to a score a hypothesis and unit, (hypotheses, units); NaN where there is none."""

FEWEST_SUPPORT = 20
"""Records in which a hypothesis must hold, and fail, before its association is tested."""

MOST_GROUPS, FEWEST_GROUPS = 128, 16
"""Groups that are kept, and groups before an error is believed."""

GROUP_BYTES = 256 * 2**20
"""Memory for the groups of one measure; measures with large sums keep fewer groups, at least `FEWEST_GROUPS`."""


@dataclass(eq=False)
class GroupedSums:
    """Sums of up to `MOST_GROUPS` groups of records; when there are more, neighbours are joined.

    Attributes
    ----------
    groups : list of Sums
    records : list of int
        Records of each group.
    """

    groups: list[Sums] = field(default_factory=list)
    records: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Records in all."""
        return sum(self.records)

    def add(self, sums: Mapping[str, NDArray[Any]], records: int) -> None:
        """Take in a block of records as a group of its own."""
        self.groups.append({name: np.asarray(value, np.float64) for name, value in sums.items()})
        self.records.append(records)
        self._join()

    def merge(self, other: GroupedSums) -> None:
        """Take in what another worker has summed; associative and commutative up to which groups are joined."""
        self.groups += other.groups
        self.records += other.records
        self._join()

    def total(self) -> Sums:
        """Return the sums over all groups."""
        return {name: reduce(np.add, (group[name] for group in self.groups)) for name in self.groups[0]}

    def only(self, hypotheses: NDArray[np.int64], count: int) -> GroupedSums:
        """Return the sums of some of the `count` hypotheses."""
        if len(hypotheses) == count:
            return self
        groups = [
            {name: value[..., hypotheses, :] if value.shape[-2] == count else value for name, value in group.items()}
            for group in self.groups
        ]
        return GroupedSums(groups, list(self.records))

    def _join(self) -> None:
        size = sum(value.nbytes for value in self.groups[0].values())
        most = int(np.clip(GROUP_BYTES // max(size, 1), FEWEST_GROUPS, MOST_GROUPS))
        while len(self.groups) > most:
            # Equal groups make the jackknife most efficient: the smallest neighbours are joined first.
            pairs = [one + two for one, two in zip(self.records, self.records[1:], strict=False)]
            at = int(np.argmin(pairs))
            second = self.groups.pop(at + 1)
            self.groups[at] = {name: value + second[name] for name, value in self.groups[at].items()}
            self.records[at] += self.records.pop(at + 1)


def jackknife(sums: GroupedSums, statistic: Statistic) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a statistic of all records and its standard error.

    Parameters
    ----------
    sums : GroupedSums
    statistic : Statistic

    Returns
    -------
    score, error : ndarray, float64 (hypotheses, units)
        The error is infinite with fewer than two groups, NaN where leaving out a group leaves no score.

    Notes
    -----
    The delete-a-group jackknife for groups of unequal size: F. Busing, E. Meijer, R. van der Leeden, Delete-m
    jackknife for unequal m, Statistics and Computing 9, 1999, equation 8.
    """
    total, count = sums.total(), sums.count
    with np.errstate(divide="ignore", invalid="ignore"):
        score = statistic(total)
        if len(sums.groups) < 2:
            return score, np.full(score.shape, np.inf)
        shift = np.zeros_like(score)
        first, second, weights = np.zeros_like(score), np.zeros_like(score), 0.0
        for group, records in zip(sums.groups, sums.records, strict=True):
            ratio = count / records
            moved = score - statistic({name: total[name] - group[name] for name in total})
            first += moved
            shift += moved * (1 - 1 / ratio)
            second += np.multiply(np.square(moved, out=moved), ratio - 1, out=moved)
            weights += 1 / (ratio - 1)
        variance = (second - 2 * shift * first + shift**2 * weights) / len(sums.groups)
    return score, np.sqrt(np.maximum(variance, 0))


def quantile(groups: int, tail: float) -> float:
    """Return by how many standard errors a jackknifed score is exceeded with probability `tail`, on one side."""
    return float(special.stdtrit(groups - 1, 1 - tail)) if groups > 1 else float("inf")


def two_sided(score: NDArray[np.float64], error: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    """Return the probability of a score this far from 0, or farther, were it truly 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error > 0, np.abs(score) / error, np.where(score == 0, 0.0, np.inf))
    ratio = np.where(np.isnan(score) | np.isnan(error), np.nan, ratio)
    return np.asarray(2 * special.stdtr(max(groups - 1, 1), -ratio))


def no_association(
    score: NDArray[np.float64], error: NDArray[np.float64], groups: int, records: int
) -> NDArray[np.float64]:
    """Return how probable correlations so far from 0 would be without association, (H, U).

    Of several tests of each pair, (tests, H, U), the least probable counts, as often as there are tests (Bonferroni).

    What two rare things do together in few records understates how it varies. Behaviours dealt out to other records
    correlate with variance 1 / (records - 1) at most, which they reach where records are all of a piece.
    """
    found = two_sided(score, np.maximum(error, 1 / np.sqrt(max(records - 1, 1))), groups)
    if found.ndim == 2:
        return found
    least = np.nan_to_num(found, nan=np.inf).min(0) * len(found)
    return np.where(np.isfinite(least), np.minimum(least, 1), np.nan)
