"""Which column of a table holds the targets: by its name, or as a person says."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from idc_core.datasets.files.columns import distinct, gaps_of, is_date, is_flat, is_text, numbers_of
from idc_core.datasets.files.names import SPLIT, TARGETS, called, found_name, is_numbering, listed
from idc_core.datasets.files.table_pictures import is_pictures
from idc_core.datasets.preparation import Preparation
from idc_core.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_LIKELY = (
    *("species", "diagnosis", "survived", "outcome", "variety", "sentiment", "quality", "emotion", "churn", "income"),
    *("status", "result", "response", "output", "prediction", "type", "kind", "price", "medv", "value"),
)
"""Columns that are offered first as targets, and never taken without being named."""
OFFERED = 12
"""Columns that are listed in a line to copy."""

_SEVERAL_LABELS = "Targets of several labels are not analysed: a network for one of them gives one score for it."


def target_column(table: pa.Table, preparation: Preparation, where: str) -> str:
    """Return the column that holds the targets; DataError where none was said, and none has such a name."""
    names = table.column_names
    if preparation.targets:
        target = found_name(preparation.targets, names)
        several = [found_name(name, names) for name in preparation.targets.split(",")]
        if target is None and len(several) > 1 and None not in several:
            raise DataError(
                f"{where}: the targets {preparation.targets[:60]!a} are several columns; expected one with a class for "
                f"each row. {_SEVERAL_LABELS}"
            )
        if target is None:
            raise DataError(f"{where} has no column {preparation.targets[:60]!a}; its columns are {listed(names)}.")
        return target
    targets = called(names, TARGETS)
    if not targets:
        raise DataError(
            f"{where} has no column named {', '.join(TARGETS[:-1])} or {TARGETS[-1]}: say which one holds the "
            f"targets, such as --targets {shlex.quote(_likely_target(table))}. Its columns are {listed(names)}."
        )
    return targets[0]


def check_one_label(table: pa.Table, target: str, left: Sequence[str], where: str) -> None:
    """Refuse a target of zeros and ones that is one of several labels, or of one-hot classes, a column each."""
    alike = [name for name in (target, *left) if is_flat(table.column(name)) and _is_zero_or_one(table.column(name))]
    if target not in alike or len(alike) < 3 or target.strip().lower() in TARGETS:
        return
    kept = [name for name in table.column_names if name not in alike or name == target]
    line = f"table[{kept[:OFFERED]!a}].to_csv('one-label.csv', index=False)"
    values = np.stack([np.asarray(numbers_of(table.column(name)), np.int64) for name in alike])
    if (values.sum(0) == 1).all():
        line = f"table[{alike[:OFFERED]!a}].idxmax(axis=1)"
        raise DataError(
            f"{where}: one of the columns {listed(alike)} is 1 in every row, so that they are classes, a column each. "
            f"Make one column of them, in Python table['label'] = {line}, and leave them out."
        )
    raise DataError(
        f"{where}: the columns {listed(alike)} are 0 and 1, as labels are of which a row can have several. "
        f"{_SEVERAL_LABELS} Where {target[:60]!a} alone is meant, leave the other ones out, in Python {line}."
    )


def _is_zero_or_one(column: pa.ChunkedArray) -> bool:
    values = numbers_of(column)
    return values is not None and bool(np.isin(values, (0, 1)).all()) and not column.null_count


def _likely_target(table: pa.Table) -> str:
    """Return the column that most likely holds targets: by its name, as few words, as few numbers, as the last one."""
    every: list[str] = table.column_names
    names = [name for name in every if not is_numbering(name) and name.strip().lower() != SPLIT]
    plain = [name for name in names if is_flat(table.column(name)) and not is_pictures(table.column(name))]
    counts = {name: distinct(table.column(name)) for name in plain}
    few = [name for name, count in counts.items() if 1 < count <= len(table) // 2]
    words = [name for name in few if is_text(table.column(name)) and not is_date(table.column(name))]
    whole = [name for name in few if name not in words and _is_whole(table.column(name))]
    ends = [name for name in names[:1] + names[-1:] if name in whole] or whole
    by_name = [name for name in names if name.strip().lower() in _LIKELY]
    if by_name or words:
        return (by_name or words)[-1]
    return min(reversed(ends), key=counts.__getitem__) if ends else (few or names or every)[-1]


def _is_whole(column: pa.ChunkedArray) -> bool:
    values = numbers_of(column.filter(~gaps_of(column, True)))
    return values is not None and bool(np.array_equal(values, np.rint(values)))


def other_targets(table: pa.Table, names: Sequence[str], target: str, given: bool) -> list[str]:
    """Return other columns that hold the targets, which as inputs would tell them.

    They are called as targets are. Where the targets were `given` by name, that is not enough: such a column tells them
    if each of its values comes with one target alone. y beside x is a coordinate.
    """
    points = any(name.strip().lower() == "x" for name in names)
    others = [name for name in called(names, TARGETS) if not (points and name.strip().lower() == "y")]
    if not given:
        return others
    return [name for name in others if _tells(table.column(name), table.column(target))]


def _tells(column: pa.ChunkedArray, target: pa.ChunkedArray) -> bool:
    """Whether each of the values of a column, which come again, stands beside one target alone."""
    import pyarrow as pa

    if not (is_flat(column) and is_flat(target)):
        return False
    values = distinct(column)
    pairs = pa.table({"a": column, "b": target}).group_by(["a", "b"]).aggregate([])
    return values < len(column) and len(pairs) == values
