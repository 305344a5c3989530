"""Sums over groups of records, the encoders that make them, and the standard errors of scores computed from them.

A score is a smooth function of sums over all records. The sums are kept for up to `MOST_GROUPS` groups of records, so
that leaving out one group at a time (the jackknife) tells how much the score would change with other records. Whole
records are left out, so symbols of one record may depend on one another as they like.

Thresholds, bins, ranks and ranges cannot be known before everything is read. They are taken from a run's first records
(its pilot) and stay: where the pilot is the whole data set they are exact, and a run that stops early shares them with
one that reads on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.base.scipy_parts import special
from idc_core.inspection.blocks import UnitRows

Sums = dict[str, NDArray[np.float64]]
"""Sums by name; axis -2 is the hypothesis (or 1), axis -1 the unit (or 1)."""

Statistic = Callable[[Sums], NDArray[np.float64]]
"""From sums to a score a hypothesis and unit, (hypotheses, units); NaN where there is none."""

FEWEST_SUPPORT = 20
"""Records in which a hypothesis must hold, and fail, before its association is tested."""

MOST_GROUPS, FEWEST_GROUPS = 128, 16
"""Groups that are kept, and groups before an error is believed."""

_GROUP_BYTES = 256 * 2**20
"""Memory for the groups of one measure; measures with large sums keep fewer groups, at least `FEWEST_GROUPS`."""


@dataclass(eq=False)
class GroupedSums:
    """Sums of up to `MOST_GROUPS` groups of records, or of all; of more groups, neighbours are joined."""

    groups: list[Sums] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    keep_all: bool = False

    @property
    def count(self) -> int:
        """Records in all."""
        return sum(self.records)

    def add(self, sums: Mapping[str, NDArray[np.generic]], records: int) -> None:
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
        if self.keep_all:
            return
        size = sum(value.nbytes for value in self.groups[0].values())
        most = int(np.clip(_GROUP_BYTES // max(size, 1), FEWEST_GROUPS, MOST_GROUPS))
        while len(self.groups) > most:
            # Equal groups make the jackknife most efficient: the smallest neighbours are joined first.
            pairs = [count + two for count, two in zip(self.records, self.records[1:], strict=False)]
            at = int(np.argmin(pairs))
            second = self.groups.pop(at + 1)
            self.groups[at] = {name: value + second[name] for name, value in self.groups[at].items()}
            self.records[at] += self.records.pop(at + 1)


def jackknife(sums: GroupedSums, statistic: Statistic) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a statistic of all records and its standard error, float64 (hypotheses, units) both.

    The error is infinite with fewer than two groups, NaN where leaving out a group leaves no score. The delete-a-group
    jackknife for groups of unequal size: F. Busing, E. Meijer, R. van der Leeden, Delete-m jackknife for unequal m,
    Statistics and Computing 9, 1999, equation 8.
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


def _two_sided(score: NDArray[np.float64], error: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    """Return the probability of a score this far from 0, or farther, were it truly 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error > 0, np.abs(score) / error, np.where(score == 0, 0.0, np.inf))
    ratio = np.where(np.isnan(score) | np.isnan(error), np.nan, ratio)
    return np.asarray(2 * special.stdtr(max(groups - 1, 1), -ratio))


def no_association(
    score: NDArray[np.float64], error: NDArray[np.float64], groups: int, records: int
) -> NDArray[np.float64]:
    """Return p values of correlations, (H, U); of several tests (tests, H, U) by Bonferroni.

    What two rare things do together in few records understates how it varies. Behaviours dealt out to other records
    correlate with variance 1 / (records - 1) at most.
    """
    p_value = _two_sided(score, np.maximum(error, 1 / np.sqrt(max(records - 1, 1))), groups)
    if p_value.ndim == 2:
        return p_value
    least = np.nan_to_num(p_value, nan=np.inf).min(0) * len(p_value)
    return np.where(np.isfinite(least), np.minimum(least, 1), np.nan)


class Encoder(Protocol):
    """What turns rows into sums."""

    def sums(self, units: UnitRows, behaviours: Tensor, places: int = 1) -> Sums:
        """Return the sums of units (rows, U) and behaviours (rows, H); also per place where there are several."""

    def keep(self, hypotheses: NDArray[np.int64]) -> Self:
        """Return the encoder for some of its hypotheses only."""


def _products(units: Tensor, behaviours: Tensor) -> NDArray[np.float64]:
    """Return the sums of products of every behaviour with every unit, (H, U), in one matrix product."""
    return _plain(behaviours.T @ units)


def _by_place(units: Tensor, behaviours: Tensor, places: int) -> Sums:
    """Return sums place by place, x_place (places, 1, U) and y_place (places, H, 1); nothing of a single place."""
    if places == 1:
        return {}
    x, y = (_plain(value.reshape(-1, places, value.shape[1]).sum(0)) for value in (units, behaviours))
    return {"x_place": x[:, None], "y_place": y[:, :, None]}


def _plain(value: Tensor) -> NDArray[np.float64]:
    return value.double().numpy()


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments, about a value of each column that keeps single precision exact enough."""

    about_behaviours: Tensor
    span: NDArray[np.float64]

    @classmethod
    def of(cls, units: Tensor, behaviours: Tensor) -> Moments:
        """Learn from the pilot: the behaviours to count from, in its first row, and each unit's range."""
        span = _plain(units.amax(0) - units.amin(0))
        return cls(behaviours[0].clone(), span)

    def keep(self, hypotheses: NDArray[np.int64]) -> Moments:
        """Return the encoder for some of its hypotheses only."""
        return replace(self, about_behaviours=self.about_behaviours[torch.from_numpy(hypotheses)])

    def sums(self, units: UnitRows, behaviours: Tensor, places: int = 1) -> Sums:
        """Return n, x, xx (1, U), y, yy (H, 1) and xy (H, U)."""
        x, y = units.moved(), behaviours - self.about_behaviours
        return {
            "n": np.full((1, 1), float(len(units))),
            "x": units.moments[:1],
            "xx": units.moments[1:],
            "y": _plain(y.sum(0))[:, None],
            "xy": _products(x, y),
            **_by_place(x, y, places),
            # In place, last: half of what this costs beside the products is memory.
            "yy": _plain(y.square_().sum(0))[:, None],
        }


@dataclass(frozen=True, eq=False)
class Ranks:
    """Moments of ranks: each column's values are replaced by their mean rank among the pilot's."""

    units: Tensor
    behaviours: Tensor
    moments: Moments

    @classmethod
    def of(cls, units: Tensor, behaviours: Tensor) -> Ranks:
        """Learn from the pilot: its values in order."""
        x, y = (value.T.contiguous().sort(1).values for value in (units, behaviours))
        return cls(x, y, Moments.of(_ranks(units, x), _ranks(behaviours, y)))

    def keep(self, hypotheses: NDArray[np.int64]) -> Ranks:
        """Return the encoder for some of its hypotheses only."""
        return Ranks(self.units, self.behaviours[torch.from_numpy(hypotheses)], self.moments.keep(hypotheses))

    def sums(self, units: UnitRows, behaviours: Tensor, places: int = 1) -> Sums:
        """Return the moments of the ranks."""
        ranks = _ranks(units.values, self.units)
        middle = torch.zeros(ranks.shape[1])
        return self.moments.sums(UnitRows(ranks, middle), _ranks(behaviours, self.behaviours), places)


def _ranks(values: Tensor, ordered: Tensor) -> Tensor:
    """Return mean ranks in -0.5..0.5 among ordered values (columns, m), for values (rows, columns)."""
    rows = values.T.contiguous()
    below = torch.searchsorted(ordered, rows)
    up_to = torch.searchsorted(ordered, rows, right=True)
    return ((below + up_to).T.double() / (2 * ordered.shape[1]) - 0.5).float()


@dataclass(frozen=True, eq=False)
class Exceedance:
    """How often a unit is among its highest values, and how often the hypothesis is true then."""

    threshold: Tensor

    @classmethod
    def of(cls, units: Tensor, share: float) -> Exceedance:
        """Learn from the pilot: the value that a share of rows exceeds.

        A unit whose highest value alone fills the share would exceed nothing: then the next lower value counts.
        """
        rank = max(int(np.ceil((1 - share) * len(units))) - 1, 0)
        threshold = units.kthvalue(rank + 1, 0).values
        stuck = ~(units > threshold).any(0)
        lower = torch.where(units < units.amax(0), units, -torch.inf).amax(0)
        return cls(torch.where(stuck & lower.isfinite(), lower, threshold))

    def keep(self, hypotheses: NDArray[np.int64]) -> Exceedance:
        """Return the encoder itself: nothing in it is of a hypothesis."""
        return self

    def sums(self, units: UnitRows, behaviours: Tensor, places: int = 1) -> Sums:
        """Return n, active (1, U), true (H, 1) and both (H, U)."""
        active, behaviours = (units.values > self.threshold).float(), behaviours.float()
        return {
            "n": np.full((1, 1), float(len(units))),
            "active": _plain(active.sum(0))[None],
            "true": _plain(behaviours.sum(0))[:, None],
            "both": _products(active, behaviours),
            **_by_place(active, behaviours, places),
        }


@dataclass(frozen=True, eq=False)
class Binned:
    """How often a unit is above each of its edges while the hypothesis is above each of its own."""

    edges: Tensor
    levels: Tensor

    @classmethod
    def of(cls, units: Tensor, behaviours: Tensor, bins: int, classes: int) -> Binned:
        """Learn from the pilot: edges (bins, U) at quantiles from the lowest value; levels (L, H) alike or classes."""
        if classes:
            levels = torch.arange(classes - 1, dtype=torch.float32)[:, None].repeat(1, behaviours.shape[1])
        else:
            levels = _edges(behaviours, 4)
        return cls(_edges(units, bins), levels)

    def keep(self, hypotheses: NDArray[np.int64]) -> Binned:
        """Return the encoder for some of its hypotheses only."""
        return replace(self, levels=self.levels[:, torch.from_numpy(hypotheses)])

    def sums(self, units: UnitRows, behaviours: Tensor, places: int = 1) -> Sums:
        """Return n, x (bins, 1, U), y (levels, H, 1) and xy (levels, bins, H, U): rows above each edge.

        Place by place, x_place is (bins, places, 1, U) and y_place (levels, places, H, 1).
        """
        count, wide = len(self.levels), behaviours.shape[1]
        y = torch.cat([behaviours > level for level in self.levels], 1).float()
        above = [(units.values > edge).float() for edge in self.edges]
        both = [_products(x, y).reshape(count, wide, -1) for x in above]
        by_place = [_by_place(x, y, places) for x in above]
        in_place = (
            {}
            if places == 1
            else {
                "x_place": np.stack([sums["x_place"] for sums in by_place]),
                "y_place": by_place[0]["y_place"].reshape(places, count, wide, 1).swapaxes(0, 1),
            }
        )
        return {
            "n": np.full((1, 1), float(len(units))),
            "x": np.stack([_plain(x.sum(0)) for x in above])[:, None],
            "y": _plain(y.sum(0)).reshape(count, wide, 1),
            "xy": np.stack(both, 1),
            **in_place,
        }


def _edges(values: Tensor, bins: int) -> Tensor:
    ordered = values.sort(0).values
    at = [min(int(len(values) * step / bins), len(values) - 1) for step in range(bins)]
    return ordered[at]
