"""A person's own predictions: an npz file or a CSV table with a probability matrix, or activations with predictions."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.evidence import MOST_CLASSES, Evidence, check_count
from idc_core.errors import DataError
from idc_core.npz import array_names, read_arrays

ARRAYS = ("probability", "activations", "layer_sizes", "predicted", "true", "class_names", "ids", "label_ids")
"""Arrays that an npz file can hold; others are left alone."""

MARK = "|"
"""Between several labels of an input in a CSV table."""


def own_evidence(
    file: Path | bytes, name: str = "", *, scaled: bool = False, class_names: Sequence[str] = ()
) -> Evidence:
    """Read a person's own predictions from an npz file or a CSV table; nothing in it is ever executed.

    `name` is the file's where `file` is its content; an ending of .csv says that it is a table. `scaled` activations
    are mean scaled outputs in 0..1 already; else each input's are scaled over its layer. `class_names` (default:
    numbers) are used where the file has none. Raises DataError if the file is damaged or too large, an array is missing
    or of another form, labels are out of range, or activations and labels are of different inputs.

    Notes
    -----
    An npz file holds `probability`, (neurons, classes) in 0..1, or `activations`, (n, neurons), with
    `predicted`; optional `true`, `class_names`, and for activations `layer_sizes`, the numbers of neurons of the layers
    that they are scaled over (one layer unless given). Labels are whole numbers (n,) or zeros and ones (n, classes).
    Where `ids` (of the activations' inputs) and `label_ids` (of the labels' inputs) are there, they must be the same. A
    CSV table has a heading. With a column `predicted` each row is an input, its columns but `true` and `id` are
    activations, and labels are names or numbers, several separated by "|". Without it each row is a neuron, and each
    column a class with its probability.

    From channel means only, the scale of an input's layer runs between its channels' means, not between all values.
    """
    path = file.name if isinstance(file, Path) else name
    where = path or "The file"
    try:
        content = file.read_bytes() if isinstance(file, Path) else file
    except OSError as error:
        raise DataError(f"{where} cannot be read: {error.strerror}.") from error
    if path.lower().endswith(".csv"):
        return _of_table(content, where, scaled, class_names)
    return _of_arrays(_arrays(content, where), where, scaled, class_names)


def _arrays(content: bytes, where: str) -> dict[str, NDArray[Any]]:
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise DataError(f"{where} is neither an npz file nor a table whose name ends in .csv.")
    there = array_names(content, where)
    wanted = [name for name in ARRAYS if name in there]
    if ("probability" in wanted) == ("activations" in wanted):
        found = ", ".join(there) or "nothing"
        raise DataError(f"{where}: expected an array probability, or activations with predicted; found {found}.")
    if "activations" in wanted and "predicted" not in wanted:
        raise DataError(f"{where}: activations need an array predicted with the class or classes of each input.")
    return read_arrays(content, where, wanted)


def _of_arrays(arrays: dict[str, NDArray[Any]], where: str, scaled: bool, class_names: Sequence[str]) -> Evidence:
    ids, label_ids = arrays.get("ids"), arrays.get("label_ids")
    if ids is not None and label_ids is not None and not np.array_equal(ids, label_ids):
        raise DataError(f"{where}: the activations (ids) are of other inputs than the labels (label_ids).")
    predicted, true = arrays.get("predicted"), arrays.get("true")
    probability = arrays.get("probability")
    names = tuple(str(name) for name in arrays.get("class_names", np.asarray(class_names)).tolist())
    if not names:
        names = tuple(str(i) for i in range(_class_count(probability, predicted, true)))
    if probability is not None:
        return Evidence(names, predicted, true, probability=_numbers(probability, "probability", where))
    values = _numbers(arrays["activations"], "activations", where)
    sizes = arrays.get("layer_sizes", np.array([values.shape[1]]))
    return Evidence(names, predicted, true, values=_scaled(values, sizes, scaled, where))


def _class_count(*arrays: NDArray[Any] | None) -> int:
    given = [one for one in arrays if one is not None]
    for one in given:
        if one.ndim == 2:
            check_count(one.shape[1])
            return int(one.shape[1])
    numbers = np.concatenate([one.ravel() for one in given if one.dtype.kind in "iu"] or [np.zeros(1, np.int64)])
    smallest, largest = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if smallest < 0 or largest >= MOST_CLASSES:
        raise DataError(
            f"The labels reach from {smallest:,} to {largest:,}; expected classes numbered from 0, at most "
            f"{MOST_CLASSES:,}."
        )
    return largest + 1


def _numbers(array: NDArray[Any], name: str, where: str) -> NDArray[np.floating[Any]]:
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.size:
        raise DataError(f"{where}: expected {name} as a table of numbers, found {array.dtype} of shape {array.shape}.")
    found: NDArray[np.floating[Any]] = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    if name == "activations" and not np.isfinite(found).all():
        raise DataError(f"{where}: some activations are not finite numbers.")
    return found


def _scaled(
    values: NDArray[np.floating[Any]], sizes: NDArray[Any], scaled: bool, where: str
) -> NDArray[np.floating[Any]]:
    """Scale each input's activations to 0..1 over its layer, unless they are; a constant layer becomes zeros."""
    if scaled:
        if values.min() < 0 or values.max() > 1:
            raise DataError(
                f"{where}: activations that are scaled already lie in 0..1, but these reach from {values.min():.3g} to "
                f"{values.max():.3g}."
            )
        return values
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any() or sizes.sum() != values.shape[1]:
        raise DataError(f"{where}: layer_sizes must be numbers of neurons that sum to {values.shape[1]}.")
    parts = []
    for part in np.split(values, np.cumsum(sizes)[:-1], axis=1):
        low, high = part.min(1, keepdims=True), part.max(1, keepdims=True)
        parts.append(np.divide(part - low, high - low, out=np.zeros_like(part), where=high > low))
    return np.concatenate(parts, axis=1)


def _of_table(content: bytes, where: str, scaled: bool, class_names: Sequence[str]) -> Evidence:
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{where} is no table in UTF-8 with commas between its columns ({error}).") from error
    rows = [row for row in rows if row]
    if len(rows) < 2:
        raise DataError(f"{where}: expected a heading and at least one row.")
    heading, body = [cell.strip() for cell in rows[0]], rows[1:]
    for number, row in enumerate(body, 2):
        if len(row) != len(heading):
            raise DataError(f"{where}: row {number} has {len(row)} columns; expected {len(heading)} as in the heading.")
    if "predicted" not in heading:
        skip = 1 if heading[0].lower() in ("", "neuron") else 0
        matrix = _floats([row[skip:] for row in body], where)
        return Evidence(tuple(heading[skip:]), probability=matrix)
    labels: dict[str, list[str]] = {
        name: [row[heading.index(name)] for row in body] for name in ("predicted", "true") if name in heading
    }
    columns = [i for i, name in enumerate(heading) if name not in ("predicted", "true", "id")]
    values = _floats([[row[i] for i in columns] for row in body], where)
    names = tuple(class_names) or _names_in(labels)
    check_count(len(names), where)
    several = any(MARK in cell or not cell.strip() for cells in labels.values() for cell in cells)
    read = {name: _labels(cells, names, several, name, where) for name, cells in labels.items()}
    return Evidence(
        names, read["predicted"], read.get("true"), values=_scaled(values, np.array([len(columns)]), scaled, where)
    )


def _floats(rows: list[list[str]], where: str) -> NDArray[np.float64]:
    try:
        found = np.array(rows, np.float64)
    except ValueError as error:
        raise DataError(f"{where}: expected numbers in all columns but the labels ({error}).") from error
    return _numbers(found, "activations", where).astype(np.float64)


def _names_in(labels: dict[str, list[str]]) -> tuple[str, ...]:
    """Return all classes that are named, in order: numbers by size and from 0 on, other names by the alphabet."""
    met = {part.strip() for cells in labels.values() for cell in cells for part in cell.split(MARK) if part.strip()}
    if all(name.isascii() and name.isdigit() and len(name) < 6 for name in met):
        return tuple(str(i) for i in range(max((int(name) for name in met), default=-1) + 1))
    return tuple(sorted(met))


def _labels(cells: list[str], names: tuple[str, ...], several: bool, what: str, where: str) -> NDArray[Any]:
    places = {name: index for index, name in enumerate(names)}
    found = np.zeros((len(cells), len(names)), bool)
    for row, cell in enumerate(cells):
        for part in cell.split(MARK):
            name = part.strip()
            if name and name not in places:
                raise DataError(f"{where}: row {row + 2} has the {what} class {name!r}, which is none of the classes.")
            if name:
                found[row, places[name]] = True
    return found if several else found.argmax(1)
