"""Tables of any format: which columns are inputs and targets, and their values."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Items
from idc_core.datasets.files.columns import (
    check_whole,
    distinct,
    first_other,
    gaps_of,
    is_date,
    is_flat,
    is_padded,
    is_rows,
    is_text,
    number_columns,
    numbers_of,
    rows_of,
    texts_of,
    with_answers,
)
from idc_core.datasets.files.contents import Content, Part, items_of, listed
from idc_core.datasets.files.gaps import mended
from idc_core.datasets.files.names import (
    PICTURES,
    SPLIT,
    TARGETS,
    TEXTS,
    called,
    found_name,
    is_numbering,
    is_repeated,
    repeated_name,
)
from idc_core.datasets.files.table_pictures import is_pictures, pictures_of
from idc_core.datasets.formats import DATA_FORMATS, DataFormat, ReadTable
from idc_core.datasets.preparation import Preparation, said_of_pictures
from idc_core.datasets.splits import named_split
from idc_core.errors import DataError
from idc_core.guarded import Budget, PictureHeader, read_json

if TYPE_CHECKING:
    import pyarrow as pa

_CLASSES = ("label", "labels", "class", "category")
"""Columns whose whole numbers are classes, written as floats too."""
_LIKELY = (
    *("species", "diagnosis", "survived", "outcome", "variety", "sentiment", "quality", "emotion", "churn", "income"),
    *("status", "result", "response", "output", "prediction", "type", "kind", "price", "medv", "value"),
)
"""Columns that are offered first as targets, and never taken without being named."""
_OFFERED = 12
"""Columns that are listed in a line to copy."""
_READ_AS = f"read-as-{secrets.token_hex(8)}".encode()
"""Key of a table's metadata, that no file can have: how it was read."""

_SEVERAL_LABELS = "Targets of several labels are not analysed: a network for one of them gives one score for it."

MOST_COLUMNS = 20_000
_MOST_NAME = 200


def table_format(*endings: str, label: str) -> Callable[[ReadTable], ReadTable]:
    """Enter the decorated reader of a table, whose columns are told by their names, for these endings."""

    def enter(read_table: ReadTable) -> ReadTable:
        def read(
            path: Path, preparation: Preparation, split: str, limit: int | None, on_progress: Progress | None
        ) -> Items:
            budget = Budget(str(path))
            return items_of_table({"": read_table(path, str(path), budget)}, path, budget, preparation, split)

        for ending in endings:
            DATA_FORMATS.enter(ending, DataFormat(ending, label, read, read_table))
        return read_table

    return enter


def items_of_table(
    tables: dict[str, pa.Table], path: Path, budget: Budget, preparation: Preparation, split: str
) -> Items:
    """Return the items of one split.

    Parameters
    ----------
    tables : dict of str to pyarrow.Table
        One by "", or one per split that the files give, with the same columns.
    path : Path
        The file; pictures that it names lie in its folder.
    budget : Budget
        What the tables and their values take counts here.
    preparation : Preparation
        Its `inputs` and `targets` are names of columns.
    split : {"train", "test"}

    Raises
    ------
    DataError
        If the names of the columns do not tell what they are, or values are missing or of the wrong kind.
    """
    where = str(path)
    first = next(iter(tables.values()))
    check_columns(first.column_names, where)
    for other in tables.values():
        if other.column_names != first.column_names:
            raise DataError(f"{where}: training and tests have other columns; expected the same in the same order.")
    if not all(map(len, tables.values())):
        raise DataError(f"{where} has no rows; expected at least one for training and one for testing.")
    target = _target(first, preparation, where)
    tables, answers = with_answers(tables, [name for name in first.column_names if name != target])
    first = next(iter(tables.values()))
    inputs, left = _inputs(first, target, preparation, where)
    if preparation.targets:
        _check_one_label(first, target, left.get("", []), where)
    parts: dict[str, Part] = {}
    seen: list[PictureHeader] = []
    notes = [*notes_of(first), f"targets: column {target}", _said_inputs(inputs)]
    answered = [name for name in answers if name in inputs]
    notes += [f"yes as 1, no as 0: {_short(answered)}"] if answered else []
    notes += [f"left out{why}: {_short(names)}" for why, names in left.items() if names]
    tables, filled = mended(tables, inputs, target, preparation.empty, where)
    notes += filled
    whole_task = bool(preparation.task) or target.strip().lower() not in _CLASSES
    for name, table in _split(tables, where).items():
        padded = is_padded(table.column(target))
        targets = (texts_of if padded else _values)(table.column(target), f"{where}, column {target!a}", budget)
        if targets is None:
            raise DataError(f"{where}, column {target!a} has {table.column(target).type}; expected classes or numbers.")
        if not whole_task and targets.dtype.kind == "f" and np.array_equal(targets, np.rint(targets)):
            targets = targets.astype(np.int64)
        made = _values_of_inputs(table, inputs, path, budget, preparation, seen)
        if made.dtype.kind in "biu" and made.ndim > 1:
            made = made.astype(np.float32)
        parts[name] = Part(made, targets[:, 0] if targets.ndim == 2 else targets)
    clear, deep = sum(one.is_clear for one in seen), sum(one.is_deep for one in seen)
    notes += said_of_pictures(clear, deep, f"{len(seen):,} pictures", preparation.alpha)
    features = tuple(inputs) if next(iter(parts.values())).inputs.ndim == 2 and len(inputs) > 1 else ()
    classes = _class_names(first, target, where)
    return items_of(Content(parts, budget, features, classes, tuple(notes)), preparation, split, where)


def check_columns(names: Sequence[str], where: str) -> None:
    """Raise `DataError` where there are no columns, too many, or some without a name of their own."""
    if not names:
        raise DataError(f"{where} has no columns; expected a table with a heading.")
    if len(names) > MOST_COLUMNS:
        raise DataError(f"{where} has {len(names):,} columns; at most {MOST_COLUMNS:,} are read: save it as npz.")
    twice = next((column for column, other in pairwise(sorted(names)) if column == other), None)
    if twice is not None:
        raise DataError(f"{where} has several columns named {twice[:60]!a}; give each its own name.")
    wrong = next((name for name in names if len(name) > _MOST_NAME or not name.isprintable()), None)
    if wrong is not None:
        raise DataError(
            f"{where} has a column named {wrong[:60]!a}; expected at most {_MOST_NAME} characters that can be "
            "shown: rename it."
        )


def _class_names(table: pa.Table, target: str, where: str) -> tuple[str, ...]:
    """Return the names of classes that Hugging Face writes beside a table."""
    about = (table.schema.metadata or {}).get(b"huggingface")
    if about is None:
        return ()
    value: object = read_json(about, f"{where}: what it says of itself", dict[str, object])
    for key in ("info", "features", target, "names"):
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return ()
    return tuple(value)


def _target(table: pa.Table, preparation: Preparation, where: str) -> str:
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


def _check_one_label(table: pa.Table, target: str, left: Sequence[str], where: str) -> None:
    """Refuse a target of zeros and ones that is one of several labels, or of one-hot classes, a column each."""
    alike = [name for name in (target, *left) if is_flat(table.column(name)) and _is_zero_or_one(table.column(name))]
    if target not in alike or len(alike) < 3 or target.strip().lower() in TARGETS:
        return
    kept = [name for name in table.column_names if name not in alike or name == target]
    line = f"table[{kept[:_OFFERED]!a}].to_csv('one-label.csv', index=False)"
    values = np.stack([np.asarray(numbers_of(table.column(name)), np.int64) for name in alike])
    if (values.sum(0) == 1).all():
        line = f"table[{alike[:_OFFERED]!a}].idxmax(axis=1)"
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


def _other_targets(table: pa.Table, names: Sequence[str], target: str, given: bool) -> list[str]:
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


def _inputs(
    table: pa.Table, target: str, preparation: Preparation, where: str
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the columns that are inputs, and those that are left out without having been told, by the reason."""
    names = [name for name in table.column_names if name != target]
    if preparation.inputs:
        asked = [preparation.inputs] if preparation.inputs in names else preparation.inputs.split(",")
        given = {name: found for name in asked if (found := found_name(name, names)) is not None}
        if len(set(given.values())) < len(asked):
            missing = [name.strip() for name in asked if name not in given] or asked
            raise DataError(f"{where} has no columns {listed(missing)} for inputs; there are {listed(names)}.")
        return list(given.values()), {}
    for known, fits in ((PICTURES, is_pictures), (TEXTS, is_text)):
        columns = [name for name in called(names, known) if fits(table.column(name))]
        if len(columns) > 1:
            raise DataError(f"{where} has the columns {listed(columns)}, which may all be inputs: say which one it is.")
        if columns:
            return columns, {"": [name for name in names if name not in (*columns, SPLIT)]}
    _check_repeated(table, names, target, where)
    others = _other_targets(table, names, target, bool(preparation.targets))
    left = {
        "": [name for name in names if is_numbering(name)],
        ", as it tells the targets": others,
        ", as they have no values": [
            name for name in names if not is_numbering(name) and _has_nothing(table.column(name))
        ],
        ", as dates": [name for name in names if name not in others and is_date(table.column(name))],
    }
    unread = {name for some in left.values() for name in some}
    rest = [name for name in names if name not in unread and not _is_split(table, name)]
    if not rest:
        raise DataError(f"{where} has no inputs beside its targets; there are {listed(names)}.")
    if len(rest) == 1 and is_rows(table.column(rest[0])):
        return rest, left
    right = [name for name in rest if _has_numbers(table.column(name))]
    wrong = next((name for name in rest if name not in right), None)
    if wrong is not None:
        right = right or [_wordiest(table, rest)]
        line = f", such as --inputs {shlex.quote(','.join(right))}" if len(right) <= _OFFERED else ""
        raise DataError(
            f"{where}: column {wrong[:60]!a} is not all numbers{first_other(table.column(wrong))}; expected a column "
            f"named {', '.join((*TEXTS, *PICTURES))}, or numbers. Say which columns are inputs, of {listed(names)}"
            f"{line}."
        )
    return rest, left


def _check_repeated(table: pa.Table, names: Sequence[str], target: str, where: str) -> None:
    """Refuse columns of the same name where nobody said which of them are inputs."""
    twice = [name for name in table.column_names if is_repeated(name)]
    if len(set(map(repeated_name, twice))) == len(twice):
        return
    rest = [name for name in names if repeated_name(name) != repeated_name(target) and not is_numbering(name)]
    firsts: dict[str, str] = {}
    for name in rest:
        if _has_numbers(table.column(name)):
            firsts.setdefault(repeated_name(name), name)
    line = f", such as --inputs {shlex.quote(','.join(firsts.values()))}" * (0 < len(firsts) <= _OFFERED)
    raise DataError(
        f"{where} has several columns named {repeated_name(twice[0])[:60]!a}, called {listed(twice)} here: say which "
        f"columns are inputs, of {listed(names)}{line}."
    )


def _wordiest(table: pa.Table, names: Sequence[str]) -> str:
    """Return the column with the most different values: texts have more of them than categories."""
    plain = [name for name in names if is_flat(table.column(name))]
    return max(plain, key=lambda name: distinct(table.column(name)), default=names[0])


def _has_nothing(column: pa.ChunkedArray) -> bool:
    return is_flat(column) and bool(gaps_of(column, True).all())


def _has_numbers(column: pa.ChunkedArray) -> bool:
    """Whether a column holds numbers, but for empty cells."""
    gaps = gaps_of(column, True)
    return not gaps.all() and numbers_of(column.filter(~gaps) if gaps.any() else column) is not None


def noted(table: pa.Table, notes: Sequence[str]) -> pa.Table:
    """Return a table that says how it was read."""
    if not notes:
        return table
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _READ_AS: json.dumps(notes)})


def notes_of(table: pa.Table) -> tuple[str, ...]:
    """Return how a table was read, each in a few words."""
    held = (table.schema.metadata or {}).get(_READ_AS)
    return () if held is None else tuple(json.loads(held))


def _is_split(table: pa.Table, name: str) -> bool:
    """Whether a column says the split of each row; one of numbers is a feature."""
    return name.strip().lower() == SPLIT and is_text(table.column(name))


def _split(tables: dict[str, pa.Table], where: str) -> dict[str, pa.Table]:
    """Return a table per split: those of the files, or cut by a column of that name."""
    table = next(iter(tables.values()))
    name = next((one for one in table.column_names if _is_split(table, one)), None)
    if set(tables) != {""} or name is None:
        return tables
    texts = texts_of(table.column(name), f"{where}, column {name}", Budget(where))
    splits = np.array([named_split(str(one))[0] for one in texts])
    wrong = np.flatnonzero(splits == "")
    if len(wrong):
        raise DataError(
            f"{where}, row {wrong[0] + 1:,}: the split is {str(texts[wrong[0]])[:60]!a}; expected train, validation "
            "or test."
        )
    return {one: table.filter(splits == one) for one in dict.fromkeys(splits.tolist())}


def _values_of_inputs(
    table: pa.Table, inputs: list[str], path: Path, budget: Budget, preparation: Preparation, seen: list[PictureHeader]
) -> NDArray[np.generic]:
    if len(inputs) == 1 and is_pictures(table.column(inputs[0])):
        return pictures_of(table.column(inputs[0]), path, budget, preparation, seen)
    place = f"{path}, column {inputs[0]!a}"
    alone = _values(table.column(inputs[0]), place, budget) if len(inputs) == 1 else None
    if alone is not None and (alone.ndim > 1 or alone.dtype == object):
        return alone
    return number_columns(table, inputs, str(path), budget)


def _values(column: pa.ChunkedArray, place: str, budget: Budget) -> NDArray[np.generic] | None:
    """Return a column as what it is: numbers (n,), rows of them, or texts; None for others."""
    check_whole(column, place)
    values = numbers_of(column)
    if values is not None:
        budget.take(values.nbytes, "its numbers")
        return values
    rows = rows_of(column, place, budget)
    return texts_of(column, place, budget) if rows is None and is_text(column) else rows


def _said_inputs(names: Sequence[str]) -> str:
    return f"inputs: column {names[0]}" if len(names) == 1 else f"inputs: {len(names):,} columns, {_short(names)}"


def _short(given: Sequence[str]) -> str:
    names = [name or "(a column without a name)" for name in given]
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]} ... {names[-1]}"
