"""How rows of units and hypotheses become sums; measures that need the same sums share an encoder, and the sums.

Thresholds, bins, ranks and ranges cannot be known before everything is read. They are taken from a run's first records
(its pilot) and stay: where the pilot is the whole data set they are exact, and a run that stops early shares them with
one that reads on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.inspection.rows import UnitRows
from idc_core.inspection.sums import Sums


class Encoder(Protocol):
    """What turns rows into sums."""

    def sums(self, units: UnitRows, behaviours: Tensor, places: int = 1) -> Sums:
        """Return the sums of some rows: units (rows, U), behaviours uint8 or float32 (rows, H).

        Where records have several `places` each, all of them in order, sums that can be tested for association are
        told place by place too.
        """

    def keep(self, hypotheses: NDArray[np.int64]) -> Self:
        """Return the encoder for some of its hypotheses only."""


def products(units: Tensor, behaviours: Tensor) -> NDArray[np.float64]:
    """Return the sums of products of every behaviour with every unit, (H, U), in one matrix product."""
    return _plain(behaviours.T @ units)


def by_place(units: Tensor, behaviours: Tensor, places: int) -> Sums:
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
            "xy": products(x, y),
            **by_place(x, y, places),
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
            "both": products(active, behaviours),
            **by_place(active, behaviours, places),
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
        both = [products(x, y).reshape(count, wide, -1) for x in above]
        found = [by_place(x, y, places) for x in above]
        in_place = (
            {}
            if places == 1
            else {
                "x_place": np.stack([one["x_place"] for one in found]),
                "y_place": found[0]["y_place"].reshape(places, count, wide, 1).swapaxes(0, 1),
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
