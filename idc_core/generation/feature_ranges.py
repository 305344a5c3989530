"""A constraint for tables: every feature moves within its range, and whole numbers stay whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from idc_core.errors import DataError, SettingError
from idc_core.generation.constraints import Constraint, ConstraintCard


@dataclass(frozen=True, eq=False)
class FeatureRanges(Constraint):
    """Features between `low` and `high` (features,), each changed by at most `most`, 0..1, of its range.

    A row that lies outside of a range may stay there, and move back. Features that are True in `whole` take whole
    numbers; a feature whose range is empty does not change. It is given to `differential_search` as it is, with rows
    (n, features) as seeds: menus list what changes pictures. A step is in 255ths of each feature's range.
    """

    card: ClassVar[ConstraintCard] = ConstraintCard(
        "ranges", "Feature ranges", "Each feature of a table moves within its range.", "", MappingProxyType({})
    )

    low: ArrayLike
    high: ArrayLike
    whole: ArrayLike | None = None
    most: float = 0.3
    _bounds: tuple[Tensor, Tensor, Tensor] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        low, high = (torch.tensor(np.asarray(part, np.float32)) for part in (self.low, self.high))
        if low.ndim != 1 or low.shape != high.shape or not len(low) or not bool((low <= high).all()):
            raise SettingError("low and high must be the smallest and largest value of each feature, (features,) each.")
        whole = torch.zeros(len(low), dtype=torch.bool) if self.whole is None else torch.tensor(np.array(self.whole))
        if whole.dtype != torch.bool or whole.shape != low.shape:
            raise SettingError(f"whole must say of each of the {len(low)} features whether it takes whole numbers.")
        if not 0 < self.most <= 1:
            raise SettingError(f"most must be above 0 and at most 1, not {self.most!r}.")
        object.__setattr__(self, "_bounds", (low, high, whole))

    @classmethod
    def of(cls, rows: ArrayLike, most: float = 0.3) -> Self:
        """Return the ranges of rows (n, features), such as those learnt from; what is whole in all of them is whole."""
        table = np.asarray(rows, np.float32)
        if table.ndim != 2 or not len(table):
            raise DataError(f"Expected rows of a table, (n, features), got shape {table.shape}.")
        return cls(table.min(0), table.max(0), (table == np.round(table)).all(0), most)

    def take(self, seeds: object) -> Tensor:
        """Return rows of a table, at least one, float32 (n, features)."""
        rows = np.asarray(getattr(seeds, "inputs", seeds))
        features = len(self._bounds[0])
        if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not len(rows) or rows.shape[1] != features:
            raise DataError(
                f"A search within feature ranges starts from rows (n, {features}) of a table; got {rows.dtype} of "
                f"shape {rows.shape}."
            )
        if not np.isfinite(rows).all():
            raise DataError("A search starts from finite numbers; some of these rows have others.")
        return torch.tensor(rows, dtype=torch.float32)

    def start(self, seeds: Tensor) -> Tensor:
        """Return no change, (n, features), in shares of each range."""
        return torch.zeros_like(seeds)

    def render(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the changed rows."""
        low, high, _ = self._bounds
        return seeds + state * (high - low)

    def picture(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the rows that the state stands for, whole where they have to be, none farther than allowed."""
        with torch.no_grad():
            rows = self.render(seeds, state)
            towards = seeds + torch.trunc(rows - seeds)
            return torch.where(self._bounds[2], towards, rows)

    def inside(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the nearest state in the ranges."""
        low, high, _ = self._bounds
        span = torch.where(high > low, high - low, torch.ones_like(low))
        least, most = (torch.minimum(low, seeds) - seeds) / span, (torch.maximum(high, seeds) - seeds) / span
        inside: Tensor = state.clamp(-self.most, self.most).clamp(least, most)
        return torch.where(high > low, inside, torch.zeros_like(inside))
