"""A person's own predictions as a table, of any format in which data are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.evidence import MOST_CLASSES, Evidence
from idc_core.confusion.predictions_parts import SEVERAL_BYTES, check_names, check_size, evidence_of, scaled_over_layers
from idc_core.datasets.files.columns import first_other, gaps_of, is_flat, number_columns, numbers_of
from idc_core.datasets.files.names import TARGETS, is_numbering, is_repeated, repeated_name
from idc_core.datasets.files.tables import notes_of
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
# A text of a few characters, as Python and as Arrow hold it.
_BYTES_A_TEXT = 400


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
    left = [name for name in names if is_numbering(name) and name not in held.values()]
    rest = [name for name in names if name not in (*held.values(), *left)]
    notes = (*notes_of(table), *(f"left out: {name or 'a column without a name'}" for name in left))
    if "predicted" not in held:
        return _matrix(table, [name for name in rest if name.lower() != "neuron"], notes, budget)
    if not rest:
        raise DataError(f"{where}: expected activations in columns beside {', '.join(names)[:200]}.")
    labels = {what: _Column(table.column(name), f"{where}, column {name!a}", budget) for what, name in held.items()}
    given = tuple(class_names) or check_names(_names_in(labels, where), where)
    check_size(len(given), len(rest), budget)
    values = _numbers(table, rest, budget)
    several = any(_MARK in cell for column in labels.values() for cell in column.cells)
    places = {what: column.places(given, several, budget) for what, column in labels.items()}
    scales = scaled_over_layers(values, [len(rest)], scaled, where)
    return evidence_of(where, given, places, values=scales, notes=notes)


def _matrix(table: pa.Table, columns: list[str], notes: tuple[str, ...], budget: Budget) -> Evidence:
    """Read a probability matrix: a row per neuron, a column per class."""
    where = budget.where
    check_size(len(columns), 0, budget)
    twice = next((name for name in columns if is_repeated(name)), None)
    if twice is not None:
        raise DataError(f"{where}: the class name {repeated_name(twice)!r} is there twice; expected different names.")
    wordy = next((name for name in columns if numbers_of(table.column(name)) is None), "")
    if len(table) and wordy:
        raise DataError(
            f"{where}: column {wordy[:60]!a} is not all numbers{first_other(table.column(wordy))}; expected shares of "
            "classes, or a column predicted with the class of each row."
        )
    names = check_names(columns, where)
    values = _numbers(table, columns, budget)
    if values.min() < 0 or values.max() > 1:
        raise DataError(f"{where}: a probability matrix holds shares in 0..1; found values outside.")
    check_size(len(columns), len(values), budget)
    return evidence_of(where, names, {}, probability=values, notes=notes)


def _numbers(table: pa.Table, columns: list[str], budget: Budget) -> NDArray[np.floating]:
    """Return columns as float64 (rows, columns)."""
    if not len(table):
        raise DataError(f"{budget.where}: expected a heading and at least one row.")
    for name in columns:
        gaps = gaps_of(table.column(name)) if is_flat(table.column(name)) else np.zeros(1, bool)
        if gaps.any():
            raise DataError(
                f"{budget.where}, column {name[:60]!a}: expected a number in every row; row "
                f"{np.flatnonzero(gaps)[0] + 1:,} has none that is finite in 32 bits ({gaps.sum():,} of {len(gaps):,} "
                "rows): leave such rows out."
            )
    return number_columns(table, columns, budget.where, budget, np.float64)


class _Column:
    """The labels of one column: every different cell once, and which one a row has; whole numbers are written so."""

    def __init__(self, column: pa.ChunkedArray, where: str, budget: Budget) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self._where = where
        if not is_flat(column):
            raise DataError(f"{where} holds lists; expected a class in every row, several with {_MARK} between them.")
        gaps = gaps_of(column, False)
        numbers = numbers_of(column.filter(~gaps))
        if numbers is not None and numbers.dtype.kind in "biuf" and np.array_equal(numbers, np.rint(numbers)):
            whole = np.zeros(len(column), np.int64)
            whole[~gaps] = numbers
            column = pa.chunked_array([pa.array(whole, mask=gaps)])
            column = column if numbers.dtype.kind != "b" else pc.if_else(pc.equal(column, 1), "True", "False")
        budget.take(8 * len(column), "its labels")
        coded = pc.utf8_trim_whitespace(pc.fill_null(column.cast(pa.string()), "")).combine_chunks().dictionary_encode()
        budget.take(_BYTES_A_TEXT * len(coded.dictionary) + 8 * coded.dictionary.nbytes, "its labels")
        self.cells: list[str] = coded.dictionary.to_pylist()
        self._codes: NDArray[np.int64] = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)

    def parts(self) -> list[list[str]]:
        """Return the classes of every different cell."""
        return [[part.strip() for part in cell.split(_MARK) if part.strip()] for cell in self.cells]

    def places(self, names: tuple[str, ...], several: bool, budget: Budget) -> NDArray[np.generic]:
        """Return the classes of every row: numbers (rows,), or with several an input truth values (rows, classes)."""
        place = {name: index for index, name in enumerate(names)}
        cells: list[list[int]] = []
        for code, parts in enumerate(self.parts()):
            unknown = next((part for part in parts if part not in place), None)
            row = int(np.flatnonzero(self._codes == code)[0]) + 1 if unknown or not (parts or several) else 0
            if unknown is not None:
                raise DataError(f"{self._where}: row {row:,} has {unknown[:60]!r}, which is none of the classes.")
            if not parts and not several:
                raise DataError(
                    f"{self._where} has no class in row {row:,} ({np.count_nonzero(self._codes == code):,} rows): "
                    f"leave these rows out. Where inputs can have no class or several, write {_MARK} for none and "
                    f"{_MARK} between several."
                )
            cells.append([place[part] for part in parts])
        if not several:
            return np.array(cells, np.int64)[:, 0][self._codes]
        budget.take(SEVERAL_BYTES * len(self._codes) * len(names), f"{len(names):,} classes for each row")
        labels = np.zeros((len(self._codes), len(names)), bool)
        for row, code in enumerate(self._codes.tolist()):
            labels[row, cells[code]] = True
        return labels


def _names_in(labels: dict[str, _Column], where: str) -> list[str]:
    """Return all classes that are named, in order: numbers by size and from 0 on, other names by the alphabet."""
    of_columns = [{part for parts in column.parts() for part in parts} for column in labels.values()]
    met = set().union(*of_columns)
    if len(met) > MOST_CLASSES:
        raise DataError(f"{where}: there are more than {MOST_CLASSES:,} classes, which is the most.")
    if len(of_columns) > 1 and all(of_columns) and not set.intersection(*of_columns):
        some = " and ".join(repr(min(held)) for held in of_columns)
        raise DataError(
            f"{where}: no class is both predicted and true, such as {some}; write both by the same names or numbers."
        )
    if not all(name.isascii() and name.isdigit() and len(name) < 6 for name in met):
        return sorted(met)
    largest = max((int(name) for name in met), default=-1)
    if largest >= MOST_CLASSES:
        raise DataError(
            f"{where}: the labels reach to {largest:,}; expected classes numbered from 0, at most {MOST_CLASSES:,}."
        )
    return [str(i) for i in range(largest + 1)]
