"""What an inspection found: a table with a line for every score, and what it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

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
        One array a column of `COLUMNS`, all of the same length:

        model, layer, hypothesis, measure : str
        group : str
            Name of the group of units a probe was trained on; "" in lines about one unit by itself.
        unit : int64
            Index in the layer; -1 in lines about a whole group. A line with both is a unit's weight in a group's probe.
        score : float64
            NaN where there is none, as for a hypothesis that is never true; `remark` says why.
        low, high : float64
            Where the score of more such records would lie, with the run's confidence each.
        margin : float64
            How far the score may be from the one on all records, with the run's confidence for all scores of the run
            at once; 0 where all were read.
        p_value : float64
            How probable a score so far from no association would be without any; NaN where there is no such test, as
            of a baseline or a unit's weight in a probe, or the hypothesis holds or fails in too few records. Of mutual
            information it is about the surest of its bins, counted as often as there are bins; of a probe about how
            far its answers go with the truth on records held out. Records count as independent of one another, their
            symbols not. At the pixels of pictures it is about what is left of unit and hypothesis when each place's
            mean is taken out: NaN of probes and of a hypothesis that is the same in all records, and perhaps 1 of a
            unit that goes with one by place alone, whatever its score.
        records : int64
            Records read for it.
        remark : str
            Why there is no score, as "never true in the records read"; "" where there is one.
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

    def where(self, **wanted: Any) -> NDArray[np.int64]:
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
        found = np.full((len(names), len(self.units[model, layer])), np.nan)
        rows = [row[name] for name in column["hypothesis"][mask].tolist()]
        found[rows, column["unit"][mask]] = column["score"][mask]
        return names, found


@dataclass(eq=False)
class Lines:
    """Collects lines of the table while a run goes on."""

    parts: list[dict[str, Any]] = field(default_factory=list)

    def add(self, count: int, **columns: Any) -> None:
        """Add `count` lines; single values hold in all of them."""
        self.parts.append({name: np.broadcast_to(np.asarray(columns[name]), (count,)) for name in COLUMNS})

    def table(self) -> dict[str, NDArray[Any]]:
        """Return all lines, a column each; words as str objects."""
        kinds: dict[str, Any] = dict.fromkeys((*COLUMNS[:6], "remark"), object)
        kinds |= {"unit": np.int64, "records": np.int64}
        if not self.parts:
            return {name: np.empty(0, kinds.get(name, np.float64)) for name in COLUMNS}
        return {
            name: np.concatenate([part[name].astype(kinds.get(name, np.float64)) for part in self.parts])
            for name in COLUMNS
        }


def names_of(hypotheses: Sequence[Any]) -> tuple[tuple[str, str, str], ...]:
    """Return name, family and kind of every hypothesis."""
    return tuple((one.name, one.family, one.kind) for one in hypotheses)
