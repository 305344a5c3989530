"""Empty cells of a table: named by their rows, left out with them, or filled, as a person says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.files.columns import filled, gaps_of, numbers_of
from idc_core.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_NAMED = 8
"""Rows and columns that are named."""


def mended(
    tables: Mapping[str, pa.Table], inputs: Sequence[str], target: str, way: str, where: str
) -> tuple[dict[str, pa.Table], tuple[str, ...]]:
    """Return tables without the empty cells of their inputs and targets, and what was done in words.

    Parameters
    ----------
    tables : mapping of str to pyarrow.Table
    inputs : sequence of str
        Columns of numbers; others have no empty cells that are told from values.
    target : str
    way : {"", "drop", "mean"}
        Rows with empty cells are left out, or their inputs filled with the means of their columns.
    where : str
        What is read, for messages: the beginning of a sentence.

    Raises
    ------
    DataError
        If there are some and nothing was said of them, a column has nothing else, or no rows are left.
    """
    made, notes = {}, []
    for split, table in tables.items():
        gaps = {name: found for name in (*inputs, target) if (found := _gaps(table, name, name != target)).any()}
        told = f"{where}, {split} rows" if split else where
        made[split], note = _mended(table, gaps, target, way, told) if gaps else (table, "")
        notes += [note] if note else []
    return made, tuple(dict.fromkeys(notes))


def _gaps(table: pa.Table, name: str, is_input: bool) -> NDArray[np.bool_]:
    column = table.column(name)
    gaps = gaps_of(column, True)
    if is_input and numbers_of(column.filter(~gaps)) is None:
        return np.zeros(len(table), bool)  # words or pictures, of which their reader tells
    return gaps


def _mended(
    table: pa.Table, gaps: dict[str, NDArray[np.bool_]], target: str, way: str, where: str
) -> tuple[pa.Table, str]:
    rows = np.flatnonzero(np.any(list(gaps.values()), axis=0))
    columns = ", ".join(map(ascii, list(gaps)[:_NAMED])) + (
        f" and {len(gaps) - _NAMED} more" if len(gaps) > _NAMED else ""
    )
    full = [name for name, gap in gaps.items() if gap.all()]
    if full:
        raise DataError(
            f"{where}: column {full[0][:60]!a} has no values at all; leave it out of --inputs, or of the file."
        )
    if not way:
        some = ", ".join(f"{row + 1:,}" for row in rows[:_NAMED]) + (
            f" and {len(rows) - _NAMED:,} more" if len(rows) > _NAMED else ""
        )
        raise DataError(
            f"{where} has no value in row {some} ({len(rows):,} of {len(table):,} rows; columns {columns}): leave "
            "these rows out with --empty drop, fill in the means of the columns with --empty mean, or fill them in."
        )
    drop = rows if way == "drop" else np.flatnonzero(gaps.pop(target, np.zeros(len(table), bool)))
    kept = np.ones(len(table), bool)
    kept[drop] = False
    if not kept.any():
        raise DataError(f"{where} has an empty cell in every row; choose columns without them by --inputs.")
    said = [f"{len(drop):,} rows with empty cells left out ({columns})"] if len(drop) else []
    if way == "mean":
        for name, gap in gaps.items():
            values, mean = filled(table.column(name), gap)
            table = table.set_column(table.column_names.index(name), name, values)
            said.append(f"{int(gap.sum()):,} empty cells of {name} filled with their mean {mean:.4g}")
    return table.filter(kept), "; ".join(said[:_NAMED])
