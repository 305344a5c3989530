"""One measure of an inspection as a table of hypotheses by units, and what it says of important neurons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError
from idc_core.inspection.discovery import discoveries
from idc_core.inspection.result import WHOLE_GROUP, Inspection
from idc_core.statistics import spearman

DRAWS = 5000
"""Random sets of units that important ones are compared with."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The scores of every hypothesis with every unit of one layer by one measure.

    Attributes
    ----------
    names, families : tuple of str (hypotheses,)
    score, low, high, p_value : ndarray, float64 (hypotheses, units)
        As in `Inspection.table`.
    passes : ndarray, bool (hypotheses, units)
        Whether the association passes the false-discovery rate.
    records : ndarray, int64 (hypotheses,)
        Records read for each hypothesis.
    """

    names: tuple[str, ...]
    families: tuple[str, ...]
    score: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p_value: NDArray[np.float64]
    passes: NDArray[np.bool_]
    records: NDArray[np.int64]

    @property
    def strength(self) -> NDArray[np.float64]:
        """How strong each association is, whatever its sign; 0 where it is undefined: float64 (hypotheses, units)."""
        return np.asarray(np.nan_to_num(np.abs(self.score)))

    @property
    def tested(self) -> int:
        """Associations with a test."""
        return int(np.isfinite(self.p_value).sum())

    @property
    def widest(self) -> float:
        """Half of the widest confidence interval; NaN where none is known."""
        half = (self.high - self.low) / 2
        return float(np.nanmax(half)) if np.isfinite(half).any() else float("nan")

    def units_of(self, hypothesis: int) -> NDArray[np.int64]:
        """Return all units, strongest association with a hypothesis first."""
        return np.argsort(-self.strength[hypothesis], kind="stable").astype(np.int64)

    def hypotheses_of(self, unit: int) -> NDArray[np.int64]:
        """Return all hypotheses, strongest association with a unit first."""
        return np.argsort(-self.strength[:, unit], kind="stable").astype(np.int64)

    def strongest(self) -> tuple[int, int]:
        """Return the hypothesis and the unit of the strongest association."""
        hypothesis, unit = np.unravel_index(int(self.strength.argmax()), self.strength.shape)
        return int(hypothesis), int(unit)

    def part(self, hypotheses: int, units: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the hypotheses and units with the strongest associations, strongest first, at most so many of each."""
        rows = np.argsort(-self.strength.max(1), kind="stable")[:hypotheses]
        columns = np.argsort(-self.strength.max(0), kind="stable")[:units]
        return rows.astype(np.int64), columns.astype(np.int64)


def grid(found: Inspection, measure: str, model: str, layer: str, rate: float = 0.05) -> Grid:
    """Return the scores of single units by one measure as a table of hypotheses by units.

    Parameters
    ----------
    found : Inspection
    measure, model, layer : str
    rate : float
        False-discovery rate; all scores of the measure are one family of tests, whatever the layer.

    Raises
    ------
    DataError
        If the inspection has no such scores.
    """
    column = found.table
    mask = (column["measure"] == measure) & (column["model"] == model) & (column["layer"] == layer)
    lines = np.flatnonzero(mask & (column["unit"] != WHOLE_GROUP))
    if not len(lines):
        raise DataError(f"There are no scores of single units by {measure!r} for layer {layer!r} of {model!r}.")
    told = column["hypothesis"][lines].tolist()
    known = {name: family for name, family, _ in found.hypotheses}
    present = set(told)
    names = tuple(name for name in known if name in present)
    row = {name: at for at, name in enumerate(names)}
    rows, units = np.array([row[name] for name in told]), column["unit"][lines]
    shape = (len(names), len(found.units[model, layer]))

    def laid(values: NDArray[np.float64]) -> NDArray[np.float64]:
        table = np.full(shape, np.nan)
        table[rows, units] = values[lines]
        return table

    passes = laid(discoveries(found, rate).astype(np.float64)) == 1
    records = np.zeros(len(names), np.int64)
    np.maximum.at(records, rows, column["records"][lines])
    return Grid(
        names,
        tuple(known[name] for name in names),
        laid(column["score"]),
        laid(column["low"]),
        laid(column["high"]),
        laid(column["p_value"]),
        passes,
        records,
    )


@dataclass(frozen=True, eq=False)
class Meaning:
    """Whether important units go with the hypotheses more than others do.

    Attributes
    ----------
    best : ndarray, float64 (units,)
        Each unit's strongest association, whatever its sign.
    which : ndarray, int64 (units,)
        The hypothesis of it.
    still : int
        Units that never change, and so go with nothing: they are left out of everything below.
    important, others : float
        Mean of `best` over the important units and over all others; NaN where there are none.
    chance : float
        Share of random sets of as many units whose mean is at least that of the important ones.
    correlation : float
        Spearman's rank correlation of importance and `best` over the units; NaN where one of them never changes.
    """

    best: NDArray[np.float64]
    which: NDArray[np.int64]
    still: int
    important: float
    others: float
    chance: float
    correlation: float


def meaning(
    found: Grid,
    importance: NDArray[np.float64],
    important: NDArray[np.int64],
    changes: NDArray[np.bool_],
    *,
    seed: int = 0,
) -> Meaning:
    """Compare the strongest associations of important units with those of the others.

    Parameters
    ----------
    found : Grid
    importance : ndarray, float64 (units,)
        Such as the relevance of every unit.
    important : ndarray, int64 (m,)
        Which units are the important ones.
    changes : ndarray, bool (units,)
        Whether each unit has more than one value over the records.
    seed : int
        Of the random sets.

    Raises
    ------
    DataError
        If there are not as many units as values of importance.

    Notes
    -----
    Every unit has its best of the same number of hypotheses, so that picking the best favours none. Units that never
    change neither matter nor go with anything; counted among the others they alone would make a difference. The chance
    is estimated from `DRAWS` random sets, the set itself counted among them.
    """
    strength = found.strength
    if strength.shape[1] != len(importance):
        raise DataError(f"Expected the importance of {strength.shape[1]} units, not of {len(importance)}.")
    best = strength.max(0)
    alive = np.flatnonzero(changes)
    chosen, rest = np.intersect1d(alive, important), np.setdiff1d(alive, important)
    mean, others = (float(best[units].mean()) if len(units) else float("nan") for units in (chosen, rest))
    source = np.random.default_rng(seed)
    drawn = np.array([best[source.permutation(alive)[: len(chosen)]].sum() for _ in range(DRAWS)])
    chance = (1 + int((drawn >= best[chosen].sum() - 1e-9).sum())) / (DRAWS + 1)
    related = float(spearman(np.stack([importance[alive], best[alive]]))[0, 1]) if len(alive) else float("nan")
    return Meaning(best, strength.argmax(0).astype(np.int64), len(best) - len(alive), mean, others, chance, related)


def shares(holds: NDArray[np.bool_], clusters: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return the share of each cluster's records in which a hypothesis holds: float64 (count,); NaN of an empty one."""
    size = np.bincount(clusters, minlength=count)
    true = np.bincount(clusters, weights=holds.astype(np.float64), minlength=count)
    return np.asarray(np.where(size > 0, true / np.maximum(size, 1), np.nan))
