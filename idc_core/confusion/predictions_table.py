"""A person's own predictions as a table, of any format in which data are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.evidence import MOST_CLASSES, Evidence
from idc_core.confusion.predictions_parts import SEVERAL_BYTES, check_size, evidence_of, scaled_over_layers
from idc_core.datasets.files.columns import gaps_of, is_flat, labels_of, number_columns, numbers_of
from idc_core.datasets.files.names import TARGETS, check_names, repeated_name
from idc_core.datasets.files.tables import left_out, notes_of, said_left, short
from idc_core.datasets.formats import ReadTable
from idc_core.errors import DataError
from idc_core.guarded import Budget

if TYPE_CHECKING:
    import pyarrow as pa

    from idc_core.guarded.opening import File

_MARK = "|"
"""Between several labels of an input."""

_LABELS = {
    "predicted": ("predicted", "prediction", "predictions", "pred", "y_pred", "predicted_class", "predicted_label"),
    "true": ("true", "y_true", "truth", "actual", "true_class", "true_label", *TARGETS),
}
"""Names of the columns that hold classes."""


def read_table(file: File | Path, where: str, read: ReadTable, scaled: bool, class_names: Sequence[str]) -> Evidence:
    """Read a table as `own_evidence` describes it; `where` begins the sentence of a `DataError`."""
    budget = Budget(where)
    table = read(file, where, budget)
    names = table.column_names
    plain = {name: repeated_name(name).strip().lower() for name in names}
    found = {what: [name for name in names if plain[name] in known] for what, known in _LABELS.items()}
    for what, columns in found.items():
        if len(columns) > 1:
            raise DataError(
                f"{where}: expected one column with the {what} classes; found {', '.join(map(repr, columns))[:200]}: "
                "leave the others out."
            )
    held = {what: columns[0] for what, columns in found.items() if columns}
    rest = [name for name in names if name not in held.values()]
    left = left_out(table, rest)
    rest = [name for name in rest if not any(name in some for some in left.values())]
    if not rest:
        raise DataError(f"{where}: expected activations or shares of classes in other columns than {short(names)}.")
    if "predicted" not in held:
        rest = [name for name in rest if name.strip().lower() != "neuron"]
        return _matrix(table, rest, (*notes_of(table), *said_left(left)), budget)
    notes = (*notes_of(table), f"{len(rest):,} neurons, {short(rest)}", *said_left(left))
    labels = {what: _cells(table.column(name), f"{where}, column {name!a}", budget) for what, name in held.items()}
    given = tuple(class_names) or _names_in([cells for cells, _ in labels.values()], where)
    check_size(len(given), len(rest), budget)
    values = _numbers(table, rest, "activations in all columns but predicted and true: leave it out", budget)
    several = any(_MARK in cell for cells, _ in labels.values() for cell in cells)
    places = {
        what: _places(*labels[what], given, several, f"{where}, column {name!a}", budget) for what, name in held.items()
    }
    scales = scaled_over_layers(values, [len(rest)], scaled, where)
    return evidence_of(where, given, places, values=scales, notes=notes)


def _matrix(table: pa.Table, columns: list[str], notes: tuple[str, ...], budget: Budget) -> Evidence:
    """Read a probability matrix: a row per neuron, a column per class."""
    where = budget.where
    check_size(len(columns), 0, budget)
    check_names([repeated_name(name) for name in columns], "class name", where)
    expected = "shares of classes, or a column predicted with the class of each row"
    values = _numbers(table, columns, expected, budget)
    if values.min() < 0 or values.max() > 1:
        raise DataError(f"{where}: a probability matrix holds shares in 0..1; found values outside.")
    check_size(len(columns), len(values), budget)
    return evidence_of(where, columns, {}, probability=values, notes=notes)


def _numbers(table: pa.Table, columns: list[str], expected: str, budget: Budget) -> NDArray[np.floating]:
    """Return columns as float64 (rows, columns)."""
    if not len(table):
        raise DataError(f"{budget.where}: expected a heading and at least one row.")
    for name in columns:
        gaps = gaps_of(table.column(name)) if is_flat(table.column(name)) else np.zeros(1, bool)
        if gaps.any() and numbers_of(table.column(name).filter(~gaps)) is not None:
            raise DataError(
                f"{budget.where}, column {name[:60]!a}: expected a number in every row; row "
                f"{np.flatnonzero(gaps)[0] + 1:,} has none that is finite in 32 bits ({gaps.sum():,} of {len(gaps):,} "
                "rows): leave such rows out."
            )
    return number_columns(table, columns, budget.where, budget, np.float64, expected)


def _cells(column: pa.ChunkedArray, where: str, budget: Budget) -> tuple[list[str], NDArray[np.int64]]:
    """Return the labels of a column, each once, "" for none, and which one a row has; whole numbers are written so."""
    if not is_flat(column):
        raise DataError(f"{where} holds lists; expected a class in every row, several with {_MARK} between them.")
    gaps = gaps_of(column, False)
    held, codes = np.unique(labels_of(column.filter(~gaps), where, budget), return_inverse=True)
    if held.dtype.kind == "f" and np.array_equal(held, np.rint(held)):
        held = held.astype(np.int64)
    places = np.full(len(column), len(held), np.int64)
    places[~gaps] = codes
    return [*(str(one).strip() for one in held.tolist()), *[""] * bool(gaps.any())], places


def _parts(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(_MARK) if part.strip()]


def _places(
    cells: Sequence[str], codes: NDArray[np.int64], names: Sequence[str], several: bool, where: str, budget: Budget
) -> NDArray[np.generic]:
    """Return the classes of every row: numbers (rows,), or with several an input truth values (rows, classes)."""
    place = {name: index for index, name in enumerate(names)}
    made: list[list[int]] = []
    for code, parts in enumerate(map(_parts, cells)):
        unknown = next((part for part in parts if part not in place), None)
        if unknown is not None:
            row = int((codes == code).argmax()) + 1
            raise DataError(f"{where}: row {row:,} has {unknown[:60]!r}, which is none of the classes.")
        if not parts and not several:
            rows = np.flatnonzero(codes == code)
            raise DataError(
                f"{where} has no class in row {rows[0] + 1:,} ({len(rows):,} rows): leave these rows out. Where "
                f"inputs can have no class or several, write {_MARK} for none and {_MARK} between several."
            )
        made.append([place[part] for part in parts])
    if not several:
        return np.array(made, np.int64)[:, 0][codes]
    budget.take(SEVERAL_BYTES * len(codes) * len(names), f"{len(names):,} classes for each row")
    labels = np.zeros((len(codes), len(names)), bool)
    for row, code in enumerate(codes.tolist()):
        labels[row, made[code]] = True
    return labels


def _names_in(columns: Sequence[Sequence[str]], where: str) -> list[str]:
    """Return all classes that are named, in order: numbers by size and from 0 on, other names by the alphabet."""
    of_columns = [{part for cell in cells for part in _parts(cell)} for cells in columns]
    met = set().union(*of_columns)
    if len(met) > MOST_CLASSES:
        raise DataError(f"{where}: there are more than {MOST_CLASSES:,} classes, which is the most.")
    if len(of_columns) > 1 and all(of_columns) and not set.intersection(*of_columns):
        some = " and ".join(repr(min(held)) for held in of_columns)
        raise DataError(
            f"{where}: no class is both predicted and true, such as {some}; write both by the same names or numbers."
        )
    if not all(name.isascii() and name.isdigit() and len(name) < 6 and name == str(int(name)) for name in met):
        return sorted(met)
    largest = max((int(name) for name in met), default=-1)
    if largest >= MOST_CLASSES:
        raise DataError(
            f"{where}: the labels reach to {largest:,}; expected classes numbered from 0, at most {MOST_CLASSES:,}."
        )
    return [str(i) for i in range(largest + 1)]
