"""Empty cells and numbers that are not finite: named by rows, left out with them, or filled, as a person says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.files.columns import filled, gaps_of, numbers_of, said_as_empty
from idc_core.datasets.files.names import listed
from idc_core.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 22
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
        Of texts, lists and pictures, which have no mean, rows without one are left out either way.
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
        gaps = {name: found for name in (*inputs, target) if (found := _gaps(table.column(name), name != target)).any()}
        told = f"{where}, {split} rows" if split else where
        made[split], note = _mended(table, gaps, target, way, told) if gaps else (table, "")
        notes += [note] if note else []
    return made, tuple(dict.fromkeys(notes))


def without_gaps(
    inputs: NDArray[Any], targets: NDArray[Any], way: str, where: str
) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Return inputs and targets whose numbers are finite in 32 bits, and what was done in words.

    Parameters
    ----------
    inputs, targets : ndarray (n, ...)
    way : {"", "drop", "mean"}
        Items with such numbers are left out, or features (n, features) filled with their means.
    where : str
        What is read, for messages: the beginning of a sentence.

    Raises
    ------
    DataError
        If there are some and nothing was said of them, or nothing is left.
    """
    unknown, wrong = _not_finite(targets), _not_finite(inputs)
    items = np.flatnonzero(unknown | wrong)
    if not len(items) or unknown.all():  # who reads targets refuses those
        return inputs, targets, ""
    can_fill = inputs.ndim == 2 and not unknown[items].all()
    told = f"{where} has values that are not finite, first in item {items[0]:,} ({len(items):,} of {len(inputs):,})"
    if not way or (way == "mean" and not can_fill):
        mean = ", or fill in the means of their features with --empty mean" if can_fill else ""
        raise DataError(f"{told}; expected numbers: leave these items out with --empty drop{mean}.")
    kept = ~(unknown | wrong) if way == "drop" else ~unknown
    inputs, targets = inputs[kept], targets[kept]
    said = [] if kept.all() else [f"{np.count_nonzero(~kept):,} items with values that are not finite left out"]
    with np.errstate(over="ignore"):
        known = np.isfinite(inputs.astype(np.float32)) if way == "mean" else np.ones((1, 1), bool)
    if not kept.any() or not known.any(0).all():
        raise DataError(f"{told}, and nothing is left of all items or of a feature; leave it out of the file.")
    if way == "mean":
        means = np.where(known, inputs, 0).sum(0, dtype=np.float64) / known.sum(0)
        inputs = np.where(known, inputs, means).astype(inputs.dtype)
        said.append(f"{np.count_nonzero(~known):,} values that are not finite filled with the means of their features")
    return inputs, targets, "; ".join(said)


def _not_finite(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows have numbers that are not finite in 32 bits, some at a time so that no copy is held."""
    found = np.zeros(len(values), bool)
    if values.dtype.kind != "f" or not len(values):
        return found
    step = max(1, _BLOCK // max(values[0].nbytes, 1))
    for first in range(0, len(values), step):
        with np.errstate(over="ignore"):
            block = values[first : first + step].astype(np.float32)
        found[first : first + step] = ~np.isfinite(block.reshape(len(block), -1)).all(1)
    return found


def _gaps(column: pa.ChunkedArray, is_input: bool) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    gaps = gaps_of(column, is_input)
    if is_input and not gaps.all() and numbers_of(column.filter(~gaps)) is None:
        gaps = pc.is_null(column).to_numpy()  # texts may be empty
    return gaps


def _mended(
    table: pa.Table, gaps: dict[str, NDArray[np.bool_]], target: str, way: str, where: str
) -> tuple[pa.Table, str]:
    rows = np.flatnonzero(np.any(list(gaps.values()), axis=0))
    full = next((name for name, gap in gaps.items() if gap.all()), None)
    if full is not None:
        raise DataError(
            f"{where}: column {full[:60]!a} has no values at all; leave it out of --inputs, or of the file."
        )
    held = {name: numbers_of(table.column(name).filter(~gap)) for name, gap in gaps.items() if name != target}
    numbers = [name for name, values in held.items() if values is not None]
    told = {name: said_as_empty(table.column(name), gaps[name]) for name in gaps if name in (*numbers, target)}
    columns = listed(list(gaps), _NAMED) + "".join(list(told.values())[:_NAMED])
    if not way:
        some = ", ".join(f"{row + 1:,}" for row in rows[:_NAMED]) + ", and more" * (len(rows) > _NAMED)
        mean = "fill in the means of the columns with --empty mean, " if numbers else ""
        raise DataError(
            f"{where} has no value in row {some} ({len(rows):,} of {len(table):,} rows; columns {columns}): leave "
            f"these rows out with --empty drop, {mean}or fill them in."
        )
    dropped = np.zeros(len(table), bool)
    for name, gap in gaps.items():
        if way == "drop" or name not in numbers:
            dropped |= gap
    if dropped.all():
        raise DataError(f"{where} has an empty cell in every row; choose columns without them by --inputs.")
    said = [f"{dropped.sum():,} rows with empty cells left out ({columns})"] * bool(dropped.any())
    for name in numbers if way == "mean" else ():
        values, known = filled(table.column(name), gaps[name])
        table = table.set_column(table.column_names.index(name), name, values)
        said.append(f"{gaps[name].sum():,} empty cells of {name} filled with their mean {known:.4g}{told[name]}")
    return table.filter(~dropped), "; ".join(said[:_NAMED])
