"""Tables of scores, which of them are significant, and one measure as a matrix of hypotheses by units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idc_core.base.statistics import passing, spearman
from idc_core.errors import DataError
from idc_core.evidence.finding import Control, Finding

if TYPE_CHECKING:
    import pandas as pd

    from idc_core.inspection.hypothesis import Hypothesis


COLUMNS = (
    "model",
    "layer",
    "group",
    "unit",
    "hypothesis",
    "measure",
    "score",
    "low",
    "high",
    "margin",
    "p_value",
    "records",
    "remark",
)
"""Columns of the table, in order."""

WHOLE_GROUP = -1
"""Stands for the unit in lines about a group of units."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """The scores of a run.

    Attributes
    ----------
    table : dict of str to ndarray
        One array per column of `COLUMNS`, all of the same length:

        model, layer, hypothesis, measure : str
        group : str
            The group of units a probe was trained on; "" in rows about one unit by itself.
        unit : int64
            Index in the layer; -1 in rows about a whole group. A row with both is a unit's weight in a group's probe.
        score : float64
            NaN where there is none, as for a hypothesis that is never true; `remark` says why.
        low, high : float64
            Confidence interval of the score for more such records, with the run's confidence.
        margin : float64
            How far the score may be from the one on all records, with the run's confidence for all scores of the run
            at once; 0 where all were read.
        p_value : float64
            Of no association; NaN of baselines, of weights in probes, and where the hypothesis holds or fails in too
            few records. Mutual information: of its surest bin, times the number of bins. Probes: of the correlation of
            prediction and truth on held-out records. Records count as independent, their symbols do not. Pixels: after
            each place's mean is taken out of unit and hypothesis, so that a unit that correlates with one by place
            alone may have 1; NaN of probes and of a hypothesis that is the same in all records.
        records : int64
            Records read for it.
        remark : str
            Why there is no score, as "never true in the tests read"; "" where there is one.
    units : dict of (model, layer) to ndarray, float64 (units, 2)
        Mean and standard deviation of every unit over the records read.
    hypotheses : tuple of (name, family, kind)
    about : dict
        Data set, order, settings, versions: everything the numbers follow from.
    """

    table: dict[str, NDArray[Any]]
    units: dict[tuple[str, str], NDArray[np.float64]]
    hypotheses: tuple[tuple[str, str, str], ...]
    about: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.table["score"])

    def frame(self) -> pd.DataFrame:
        """Return the table as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame({name: self.table[name] for name in COLUMNS})

    def where(self, **wanted: object) -> NDArray[np.int64]:
        """Return the lines whose columns have these values, strongest score first, undefined scores last."""
        mask = np.ones(len(self), bool)
        for name, value in wanted.items():
            mask &= self.table[name] == value
        lines = np.flatnonzero(mask)
        strength = np.nan_to_num(np.abs(self.table["score"][lines]), nan=-1)
        return np.asarray(lines[np.argsort(-strength, kind="stable")], np.int64)

    def matrix(self, measure: str, model: str, layer: str) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Return the hypotheses, and their scores with every unit of a layer: float64 (hypotheses, units)."""
        column = self.table
        mask = (column["measure"] == measure) & (column["model"] == model) & (column["layer"] == layer)
        mask &= column["unit"] != WHOLE_GROUP
        names = tuple(dict.fromkeys(column["hypothesis"][mask].tolist()))
        row = {name: at for at, name in enumerate(names)}
        scores = np.full((len(names), len(self.units[model, layer])), np.nan)
        rows = [row[name] for name in column["hypothesis"][mask].tolist()]
        scores[rows, column["unit"][mask]] = column["score"][mask]
        return names, scores


@dataclass(eq=False)
class ScoreRows:
    """Collects lines of the table while a run goes on."""

    parts: list[dict[str, NDArray[np.generic]]] = field(default_factory=list)

    def add(self, count: int, **columns: object) -> None:
        """Add `count` lines; single values hold in all of them."""
        self.parts.append({name: np.broadcast_to(np.asarray(columns[name]), (count,)) for name in COLUMNS})

    def table(self) -> dict[str, NDArray[np.generic]]:
        """Return all lines, a column each; words as str objects."""
        kinds: dict[str, type] = dict.fromkeys((*COLUMNS[:6], "remark"), object)
        kinds |= {"unit": np.int64, "records": np.int64}
        if not self.parts:
            return {name: np.empty(0, kinds.get(name, np.float64)) for name in COLUMNS}
        return {
            name: np.concatenate([part[name].astype(kinds.get(name, np.float64)) for part in self.parts])
            for name in COLUMNS
        }


def names_of(hypotheses: Sequence[Hypothesis]) -> tuple[tuple[str, str, str], ...]:
    """Return name, family and kind of every hypothesis."""
    return tuple((hypothesis.name, hypothesis.family, hypothesis.kind) for hypothesis in hypotheses)


def discoveries(inspection: Inspection, rate: float = 0.05, *, dependent: bool = True) -> NDArray[np.bool_]:
    """Return which rows of an inspection are significant at a false-discovery rate, bool (rows,).

    All scores of one measure are one family of tests; `rate` and `dependent` as in `passing`.
    """
    passed = np.zeros(len(inspection), bool)
    measures = inspection.table["measure"]
    for measure in dict.fromkeys(measures.tolist()):
        lines = np.flatnonzero(measures == measure)
        passed[lines] = passing(inspection.table["p_value"][lines], rate, dependent=dependent)
    return passed


_DRAWS = 5000
"""Random sets of units that important ones are compared with."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Scores of every hypothesis with every unit of one layer by one measure, float64 (hypotheses, units).

    `passes` says which are significant at the false-discovery rate; `records` (hypotheses,) were read for each.
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
    """Return the scores of single units by one measure as a matrix of hypotheses by units.

    All scores of the measure are one family of tests, whatever the layer. DataError if there are none.
    """
    column = found.table
    mask = (column["measure"] == measure) & (column["model"] == model) & (column["layer"] == layer)
    lines = np.flatnonzero(mask & (column["unit"] != WHOLE_GROUP))
    if not len(lines):
        raise DataError(f"There are no scores of single neurons by {measure!r} for layer {layer!r} of {model!r}.")
    scored = column["hypothesis"][lines].tolist()
    known = {name: family for name, family, _ in found.hypotheses}
    present = set(scored)
    names = tuple(name for name in known if name in present)
    row = {name: at for at, name in enumerate(names)}
    rows, units = np.array([row[name] for name in scored]), column["unit"][lines]
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
class ImportanceComparison:
    """Whether important units correlate with hypotheses more than others do.

    `best` (units,) is each unit's strongest association, whatever its sign, `which`, int64, its hypothesis. The `still`
    units, which never change, are left out of the rest: the mean of `best` over the important units and over all
    `others` (NaN where there are none), the share of random sets of as many units whose mean is at least as high
    (`chance`), Spearman's rank correlation of importance and `best` (NaN where one of them never changes), and what
    random sets have as their mean, with the range of 95 % (`drawn`).
    """

    best: NDArray[np.float64]
    which: NDArray[np.int64]
    still: int
    important: float
    others: float
    chance: float
    correlation: float
    drawn: tuple[float, float, float]

    @property
    def finding(self) -> Finding | None:
        """The mean over the important units beside that over as many random ones; None where there are no others."""
        if not np.isfinite(self.important + self.others):
            return None
        expected, low, high = self.drawn
        return Finding(
            "importance",
            "Mean strongest score of the important neurons",
            self.important,
            Control("of as many random neurons", expected, low, high),
            self.important - high,
            self.important - low,
            self.chance,
            1 / (_DRAWS + 1),
        )


def compare_importance(
    found: Grid,
    importance: NDArray[np.float64],
    important: NDArray[np.int64],
    changes: NDArray[np.bool_],
    *,
    seed: int = 0,
) -> ImportanceComparison:
    """Compare the strongest associations of important units (m,) with those of the others.

    `importance` is float64 (units,), such as relevance; `changes` (units,) says which units have more than one value.
    The chance is estimated from `_DRAWS` random sets, the important one counted among them.
    """
    strength = found.strength
    if strength.shape[1] != len(importance):
        raise DataError(f"Expected the importance of {strength.shape[1]} neurons, not of {len(importance)}.")
    best = strength.max(0)
    alive = np.flatnonzero(changes)
    chosen, rest = np.intersect1d(alive, important), np.setdiff1d(alive, important)
    mean, others = (float(best[units].mean()) if len(units) else float("nan") for units in (chosen, rest))
    source = np.random.default_rng(seed)
    sums = np.array([best[source.permutation(alive)[: len(chosen)]].sum() for _ in range(_DRAWS)])
    chance = (1 + int((sums >= best[chosen].sum() - 1e-9).sum())) / (_DRAWS + 1)
    low, high = np.quantile(sums, [0.025, 0.975]) / max(1, len(chosen))
    drawn = (float(sums.mean()) / max(1, len(chosen)), float(low), float(high))
    related = float(spearman(np.stack([importance[alive], best[alive]]))[0, 1]) if len(alive) else float("nan")
    return ImportanceComparison(
        best, strength.argmax(0).astype(np.int64), len(best) - len(alive), mean, others, chance, related, drawn
    )


def shares(holds: NDArray[np.bool_], clusters: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return the share of each cluster's records in which a hypothesis holds: float64 (count,); NaN of an empty one."""
    size = np.bincount(clusters, minlength=count)
    true = np.bincount(clusters, weights=holds.astype(np.float64), minlength=count)
    return np.asarray(np.where(size > 0, true / np.maximum(size, 1), np.nan))
