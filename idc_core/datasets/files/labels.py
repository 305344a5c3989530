"""Targets as files write them, made class numbers or numbers of a regression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.files.columns import NOTHING
from idc_core.datasets.files.names import check_names
from idc_core.errors import DataError

_MOST_CLASSES = 5_000
_BETWEEN = ("|", ";", ",")
"""Signs between several labels."""
_BLANKS = " \t\xa0"
"""What may stand around a name; a line's end there is a quotation mark that is open."""
_FEW = 10
"""So many class numbers may always have gaps."""

_Made = tuple[Sequence[NDArray[np.generic]], tuple[str, ...], tuple[str, ...]]
"""The targets of each split, the names of classes, and what was done in words."""


def as_targets(given: Sequence[NDArray[np.generic]], task: str, class_names: Sequence[str], where: str) -> _Made:
    """Return the targets of all splits as the engine takes them.

    Parameters
    ----------
    given : sequence of ndarray
        One per split: names (text), truth values, whole numbers or floats (n,) or (n, 1), or one-hot rows.
    task : {"", "classification", "regression"}
        What numbers are; "": whole numbers are classes, floats those of a regression.
    class_names : sequence of str
        Names by class number, where the files have them.
    where : str
        What is read, for messages: the beginning of a sentence.

    Returns
    -------
    list of ndarray
        int64 (n,) class numbers, or float32 (n,).
    tuple of str
        Names by class number; empty for a regression.
    tuple of str
        What was done, each in a few words.

    Raises
    ------
    DataError
        If they are of no such form, or all of one class.
    """
    columns, notes = zip(*(_column(column, where) for column in given), strict=True)
    kinds = {column.dtype.kind for column in columns}
    if kinds <= {"U", "O"}:
        made = _named(columns, class_names, where)
        if task == "regression":
            raise DataError(f"{where} has names as targets, such as {_first(columns[0])}; a regression needs numbers.")
    elif kinds <= set("biuf"):
        made = _numbered(columns, task, class_names, where)
    else:
        raise DataError(f"{where} has targets of type {columns[0].dtype}; expected class numbers, names or numbers.")
    targets, names, remarks = made
    if names and len(set(np.concatenate(targets).tolist())) < 2:
        raise DataError(f"{where} has one class only, {_first(columns[0])}; expected at least two.")
    return targets, names, tuple(dict.fromkeys(note for note in (*notes, *remarks) if note))


def _column(given: NDArray[np.generic], where: str) -> tuple[NDArray[np.generic], str]:
    """Return one target per item, and what was done for it."""
    if given.ndim == 2 and given.shape[1] == 1:
        return given[:, 0], ""
    if given.ndim == 1:
        return given, ""
    if given.ndim == 2 and given.dtype.kind in "biuf" and ((given == 0) | (given == 1)).all():
        if (given.sum(1) == 1).all():
            return given.argmax(1), "classes from one-hot rows"
        raise DataError(
            f"{where} has several classes for some items, or none; expected one. Targets of several labels are not "
            "analysed: save one of them alone, such as targets[:, 0]."
        )
    raise DataError(f"{where} has targets of shape {given.shape}; expected one per item, (n,), or one-hot rows.")


def _first(column: NDArray[np.generic]) -> str:
    return ascii(str(column[0])[:60])


def _named(columns: Sequence[NDArray[np.generic]], class_names: Sequence[str], where: str) -> _Made:
    occurring = sorted({str(name) for column in columns for name in column})
    blanks: tuple[str, ...] = ()
    if not class_names and any(name != name.strip(_BLANKS) for name in occurring):
        columns = [np.array([str(name).strip(_BLANKS) for name in column], object) for column in columns]
        occurring = sorted({name.strip(_BLANKS) for name in occurring})
        blanks = ("blanks around names of classes left out",)
    _check_classes(occurring, where)
    if not class_names:
        _check_one_each(occurring, where)
    names = list(class_names) or occurring
    unknown = next((name for name in occurring if name not in names), None)
    if unknown is not None:
        raise DataError(f"{where} has the class {unknown!a}, which is not among the class names that it lists.")
    numbers = {name: number for number, name in enumerate(names)}
    targets = [np.array([numbers[str(name)] for name in column], np.int64) for column in columns]
    unclear = [name for name in names if name.strip().lower() in NOTHING]
    read = (f"{', '.join(unclear)} read as the name of a class, not as a gap",) if unclear else ()
    return targets, tuple(names), (*(("classes sorted by name", *blanks) if not class_names else ()), *read)


def _check_one_each(names: Sequence[str], where: str) -> None:
    """Refuse names that list several labels: what a sign parts in them are other names, or parts of such."""
    for sign in _BETWEEN:
        parts = {name: {part.strip(" []'\"") for part in name.split(sign)} for name in names}
        often = Counter(part for found in parts.values() for part in found)
        joined = [name for name, found in parts.items() if len(found) > 1]
        lists = [name for name in joined if all(often[part] > 1 for part in parts[name])]
        if len(lists) * 2 > len(joined) or all(name.strip()[:1] + name.strip()[-1:] == "[]" for name in names):
            raise DataError(
                f"{where} has targets such as {(lists or names)[0][:60]!a}, which list several labels; expected one "
                "class for each item: targets of several labels are not analysed. Leave such items out, or make a "
                "column of one of the labels, yes or no. Where it is the name of one class, write it without "
                f"{sign!a}."
            )


def _check_classes(names: Sequence[str], where: str) -> None:
    """Raise `DataError` where names of classes are too many, too long, empty, or cannot be shown."""
    if len(names) > _MOST_CLASSES:
        raise DataError(f"{where} has {len(names):,} classes, such as {names[0][:60]!a}; at most {_MOST_CLASSES:,}.")
    check_names(names, "class name", where)


def _numbered(columns: Sequence[NDArray[Any]], task: str, class_names: Sequence[str], where: str) -> _Made:
    for column in columns:
        wrong = np.flatnonzero(~np.isfinite(column))
        if len(wrong):
            raise DataError(f"{where} has the target {column[wrong[0]]} at item {wrong[0]:,}; expected a number.")
    is_float = any(column.dtype.kind == "f" for column in columns)
    if task == "regression" or (is_float and not task and not class_names):
        note = "targets are numbers of a regression"
        return [np.ascontiguousarray(column, np.float32) for column in columns], (), (note,)
    for column in columns:
        negative = (column < 0) & (task != "classification")
        wrong = np.flatnonzero(negative | (column != np.floor(column)) | (abs(column) > 1 << 62))
        if len(wrong):
            also = ", and with --task classification where they are classes" if negative[wrong[0]] else ""
            raise DataError(
                f"{where} has the class {column[wrong[0]]} at item {wrong[0]:,}; expected names or whole numbers from "
                f"0. Where targets are quantities, say so with --task regression{also}."
            )
    return _classes(columns, task, class_names, where)


def _classes(columns: Sequence[NDArray[np.generic]], task: str, class_names: Sequence[str], where: str) -> _Made:
    """Return whole numbers from 0 as classes: as they are, or counted anew where most of the numbers do not occur."""
    occurring = np.unique(np.concatenate([np.unique(column) for column in columns])).astype(np.int64)
    highest = int(occurring[-1])
    if class_names:
        _check_classes(class_names, where)
        if highest >= len(class_names):
            raise DataError(f"{where} has the class {highest} but names {len(class_names)} classes, from 0.")
        return [column.astype(np.int64) for column in columns], tuple(class_names), ()
    items = sum(map(len, columns))
    many = len(occurring) > max(_FEW, items // 2) and not task  # else a person has said that they are classes
    if many or len(occurring) > _MOST_CLASSES:
        raise DataError(
            f"{where} has {len(occurring):,} classes in {items:,} items; where these are quantities, say so with "
            "--task regression, and with --task classification where they are classes."
        )
    if occurring[0] >= 0 and highest < max(_FEW, 2 * len(occurring)):
        if all(column.dtype.kind == "b" for column in columns):
            return [column.astype(np.int64) for column in columns], ("False", "True"), ()
        gaps = highest + 1 - len(occurring)
        notes = (f"{gaps} of {highest + 1} class numbers without items",) if gaps else ()
        return [column.astype(np.int64) for column in columns], tuple(map(str, range(highest + 1))), notes
    targets = [np.searchsorted(occurring, column.astype(np.int64)) for column in columns]
    return targets, tuple(map(str, occurring.tolist())), ("classes counted anew, named by their numbers",)
