"""How scores came about: the strongest unit of every hypothesis at each epoch of a network's training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError
from idc_core.inspection.result import Grid

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ScoresByEpoch:
    """Scores of one layer's units at several epochs of training, float64 (epochs, hypotheses, units)."""

    epochs: tuple[int, ...]
    names: tuple[str, ...]
    score: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @cached_property
    def unit(self) -> NDArray[np.int64]:
        """Unit of each hypothesis's strongest absolute score, the first of equals: (epochs, hypotheses)."""
        return np.asarray(np.nan_to_num(np.abs(self.score)).argmax(2), np.int64)

    @cached_property
    def strongest(self) -> NDArray[np.float64]:
        """How strong that unit's association is, 0 where no unit has a score: float64 (epochs, hypotheses)."""
        return np.asarray(np.nan_to_num(np.abs(self._of_strongest(self.score))))

    def _of_strongest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.take_along_axis(values, self.unit[:, :, None], 2)[:, :, 0])

    @property
    def gain(self) -> NDArray[np.float64]:
        """What each hypothesis's strongest association has at the last epoch more than at the first (hypotheses,)."""
        return np.asarray(self.strongest[-1] - self.strongest[0])

    @property
    def clear(self) -> NDArray[np.bool_]:
        """Whether the intervals of the first and last epoch's strongest scores do not overlap: bool (hypotheses,)."""
        score, low, high = (self._of_strongest(values) for values in (self.score, self.low, self.high))
        # The range of a strength: that of a negative score is turned round.
        ends = np.where(score < 0, [-high, -low], [low, high])
        return np.asarray((ends[0, -1] > ends[1, 0]) | (ends[1, -1] < ends[0, 0]))

    def most_gained(self) -> NDArray[np.int64]:
        """Return all hypotheses, the one that gained most first."""
        return np.asarray(np.argsort(-self.gain, kind="stable"), np.int64)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of `strongest` over the hypotheses: float64 (epochs,)."""
        return np.asarray(self.strongest.mean(1))

    def frame(self) -> pd.DataFrame:
        """Return one row per hypothesis: its strongest unit and score at every epoch, and the gain."""
        import pandas as pd

        score = self._of_strongest(self.score)
        columns: dict[str, object] = {"hypothesis": list(self.names)}
        for at, epoch in enumerate(self.epochs):
            columns[f"score at epoch {epoch}"] = score[at]
            columns[f"unit at epoch {epoch}"] = self.unit[at]
        return pd.DataFrame({**columns, "gain": self.gain, "clear": self.clear})


def scores_by_epoch(found: Mapping[int, Grid]) -> ScoresByEpoch:
    """Stack the scores of several epochs of the same hypotheses and units, in the last one's order of hypotheses."""
    epochs = tuple(sorted(found))
    shapes = {grid.score.shape for grid in found.values()}
    if len(shapes) != 1 or len({frozenset(grid.names) for grid in found.values()}) != 1:
        raise DataError("Epochs can only be compared, one at least, on the same hypotheses and the same units.")
    names = found[epochs[-1]].names
    order = [[found[epoch].names.index(name) for name in names] for epoch in epochs]
    score, low, high = (
        np.stack([getattr(found[epoch], what)[rows] for epoch, rows in zip(epochs, order, strict=True)])
        for what in ("score", "low", "high")
    )
    return ScoresByEpoch(epochs, names, score, low, high)


def halfway(epochs: Sequence[int], values: NDArray[np.floating]) -> int | None:
    """Return the first epoch with at least half of the rise from first to last value; None where nothing rose."""
    rise = float(values[-1] - values[0])
    if rise <= 0:
        return None
    return int(epochs[int(np.argmax(values - values[0] >= rise / 2))])
