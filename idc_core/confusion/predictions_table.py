"""A person's own predictions as a CSV table, read row by row."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.evidence import MOST_CLASSES, Evidence
from idc_core.confusion.predictions_parts import SEVERAL_BYTES, check_names, check_size, evidence_of, scaled_over_layers
from idc_core.errors import DataError
from idc_core.guarded import Budget, read_number, read_rows

_MARK = "|"
"""Between several labels of an input."""

_LABELS = ("predicted", "true")
_NO_NEURON = (*_LABELS, "id")
# A text of a few characters, its place in a table of texts, and the line it is first in.
_BYTES_A_TEXT = 400

_Rows = Iterator[tuple[int, list[str]]]


class _Column:
    """The labels of one column: every different cell once, with the line it is first in, and which one a row has."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.first: dict[str, int] = {}
        self.codes = array("q")
        self._code: dict[str, int] = {}

    def add(self, cell: str, line: int, budget: Budget) -> None:
        if cell not in self._code:
            budget.take(_BYTES_A_TEXT + 8 * len(cell), "its labels")
            self._code[cell] = len(self._code)
            self.first[cell] = line
        self.codes.append(self._code[cell])


def read_table(file: Path | bytes, where: str, scaled: bool, class_names: Sequence[str]) -> Evidence:
    """Read a CSV table as `own_evidence` describes it; `where` begins the sentence of a `DataError`."""
    budget = Budget(where)
    rows = read_rows(file, where, budget)
    heading = [cell.strip() for cell in next(rows, (0, [""]))[1]]
    for name in _NO_NEURON:
        same = [cell for cell in heading if cell.lower() == name]
        if len(same) > 1 or same not in ([], [name]):
            raise DataError(f"{where}: expected one column {name} at most, written so; found {' and '.join(same)}.")
    if "predicted" not in heading:
        return _matrix(rows, heading, where, budget)
    columns = [i for i, name in enumerate(heading) if name not in _NO_NEURON]
    if not columns:
        raise DataError(f"{where}: expected activations in columns beside {', '.join(heading)}.")
    labels = [_Column(name) for name in _LABELS if name in heading]
    values = _numbers(rows, heading, columns, labels, where, budget)
    names = tuple(class_names) or check_names(_names_in(labels, where), where)
    check_size(len(names), len(columns), budget)
    several = any(_MARK in cell or not cell.strip() for column in labels for cell in column.first)
    places = {column.name: _places(column, names, several, where, budget) for column in labels}
    return evidence_of(where, names, places, values=scaled_over_layers(values, [len(columns)], scaled, where))


def _matrix(rows: _Rows, heading: list[str], where: str, budget: Budget) -> Evidence:
    """Read a probability matrix: a row per neuron, a column per class."""
    columns = list(range(1 if heading[0].lower() in ("", "neuron") else 0, len(heading)))
    check_size(len(columns), 0, budget)
    names = check_names([heading[i] for i in columns], where)
    values = _numbers(rows, heading, columns, [], where, budget)
    if values.min() < 0 or values.max() > 1:
        raise DataError(f"{where}: a probability matrix holds shares in 0..1; found values outside.")
    check_size(len(columns), len(values), budget)
    return evidence_of(where, names, {}, probability=values)


def _numbers(
    rows: _Rows, heading: list[str], columns: list[int], labels: list[_Column], where: str, budget: Budget
) -> NDArray[np.float64]:
    """Read all rows: numbers of some columns, float64 (rows, columns), and labels, each into its own column."""
    values = array("d")
    places = [heading.index(column.name) for column in labels]
    for line, row in rows:
        if len(row) != len(heading):
            raise DataError(f"{where}: line {line} has {len(row)} columns; expected {len(heading)} as in the heading.")
        # Twice: an array that grows may be copied.
        budget.take(16 * len(row), "its rows")
        values.extend(read_number(row[i], f"{where}, line {line}, column {i + 1}") for i in columns)
        for column, place in zip(labels, places, strict=True):
            column.add(row[place], line, budget)
    if not values:
        raise DataError(f"{where}: expected a heading and at least one row.")
    return np.frombuffer(values, np.float64).reshape(-1, len(columns))


def _names_in(labels: list[_Column], where: str) -> list[str]:
    """Return all classes that are named, in order: numbers by size and from 0 on, other names by the alphabet."""
    met: set[str] = set()
    for column in labels:
        for cell in column.first:
            met.update(part.strip() for part in cell.split(_MARK) if part.strip())
            if len(met) > MOST_CLASSES:
                raise DataError(f"{where}: there are more than {MOST_CLASSES:,} classes, which is the most.")
    if not all(name.isascii() and name.isdigit() and len(name) < 6 for name in met):
        return sorted(met)
    largest = max((int(name) for name in met), default=-1)
    if largest >= MOST_CLASSES:
        raise DataError(
            f"{where}: the labels reach to {largest:,}; expected classes numbered from 0, at most {MOST_CLASSES:,}."
        )
    return [str(i) for i in range(largest + 1)]


def _places(column: _Column, names: tuple[str, ...], several: bool, where: str, budget: Budget) -> NDArray[np.generic]:
    """Return the classes of every row: numbers (rows,), or with several an input truth values (rows, classes)."""
    place = {name: index for index, name in enumerate(names)}
    cells: list[list[int]] = []
    for cell, line in column.first.items():
        parts = [part.strip() for part in cell.split(_MARK) if part.strip()]
        unknown = [part for part in parts if part not in place]
        if unknown:
            raise DataError(
                f"{where}: line {line} has the {column.name} class {unknown[0][:60]!r}, which is none of the classes."
            )
        cells.append([place[part] for part in parts])
    if not several:
        return np.array(cells, np.int64)[:, 0][np.frombuffer(column.codes, np.int64)]
    budget.take(SEVERAL_BYTES * len(column.codes) * len(names), f"{len(names):,} classes for each row")
    labels = np.zeros((len(column.codes), len(names)), bool)
    for row, code in enumerate(column.codes):
        labels[row, cells[code]] = True
    return labels
