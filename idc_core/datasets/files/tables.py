"""Tables of any format: which columns are inputs and targets, and their values."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Items
from idc_core.datasets.files.columns import (
    distinct,
    first_other,
    gaps_of,
    is_date,
    is_flat,
    is_rows,
    is_text,
    labels_of,
    number_columns,
    numbers_of,
    texts_of,
    values_of,
    with_answers,
)
from idc_core.datasets.files.contents import Content, Part, items_of
from idc_core.datasets.files.gaps import mended
from idc_core.datasets.files.names import (
    PICTURES,
    SPLIT,
    TEXTS,
    called,
    check_names,
    found_name,
    is_numbering,
    is_repeated,
    listed,
    repeated_name,
)
from idc_core.datasets.files.table_pictures import is_pictures, pictures_of
from idc_core.datasets.files.targets import OFFERED, check_one_label, other_targets, target_column
from idc_core.datasets.formats import DATA_FORMATS, DataFormat, ReadTable
from idc_core.datasets.preparation import Preparation, said_of_pictures
from idc_core.datasets.splits import named_split
from idc_core.errors import DataError
from idc_core.guarded import Budget, PictureHeader, read_json

if TYPE_CHECKING:
    import pyarrow as pa

_CLASSES = ("label", "labels", "class", "category")
"""Columns whose whole numbers are classes, written as floats too."""
_READ_AS = f"read-as-{secrets.token_hex(8)}".encode()
"""Key of a table's metadata, that no file can have: how it was read."""

MOST_COLUMNS = 20_000


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
    target = target_column(first, preparation, where)
    tables, answers = with_answers(tables, [name for name in first.column_names if name != target])
    first = next(iter(tables.values()))
    inputs, left = _inputs(first, target, preparation, where)
    if preparation.targets:
        check_one_label(first, target, left.get("", []), where)
    parts: dict[str, Part] = {}
    seen: list[PictureHeader] = []
    notes = [*notes_of(first), f"targets: column {target}", _said_inputs(inputs)]
    answered = [name for name in answers if name in inputs]
    notes += [f"yes as 1, no as 0: {short(answered)}"] if answered else []
    notes += said_left(left)
    tables, filled = mended(tables, inputs, target, preparation.empty, where)
    notes += filled
    whole_task = bool(preparation.task) or target.strip().lower() not in _CLASSES
    for name, table in _split(tables, where).items():
        targets = labels_of(table.column(target), f"{where}, column {target!a}", budget)
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
    check_names(names, "column", where, least=0)


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
    others = other_targets(table, names, target, bool(preparation.targets))
    left = {", as it tells the targets": others, **left_out(table, [name for name in names if name not in others])}
    unread = {name for some in left.values() for name in some}
    rest = [name for name in names if name not in unread and not _is_split(table, name)]
    if not rest:
        raise DataError(f"{where} has no inputs beside its targets; its columns are {listed(table.column_names)}.")
    if len(rest) == 1 and is_rows(table.column(rest[0])):
        return rest, left
    right = [name for name in rest if _has_numbers(table.column(name))]
    wrong = next((name for name in rest if name not in right), None)
    if wrong is not None:
        right = right or [_wordiest(table, rest)]
        line = f", such as --inputs {shlex.quote(','.join(right))}" if len(right) <= OFFERED else ""
        raise DataError(
            f"{where}: column {wrong[:60]!a} is not all numbers{first_other(table.column(wrong))}; expected a column "
            f"named {', '.join((*TEXTS, *PICTURES))}, or numbers. Say which columns are inputs, of {listed(names)}"
            f"{line}."
        )
    return rest, left


def left_out(table: pa.Table, names: Sequence[str]) -> dict[str, list[str]]:
    """Return which of these columns are neither inputs nor targets, by the reason: row numbers, empty ones, dates."""
    columns = {name: table.column(name) for name in names if not is_numbering(name)}
    empty = [name for name, column in columns.items() if is_flat(column) and len(table) and gaps_of(column).all()]
    return {
        "": [name for name in names if name not in columns],
        ", as they have no values": empty,
        ", as dates": [name for name, column in columns.items() if name not in empty and is_date(column)],
    }


def said_left(left: Mapping[str, Sequence[str]]) -> list[str]:
    """Say what `left_out` returned, each in a few words."""
    return [f"left out{why}: {short(names)}" for why, names in left.items() if names]


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
    line = f", such as --inputs {shlex.quote(','.join(firsts.values()))}" * (0 < len(firsts) <= OFFERED)
    raise DataError(
        f"{where} has several columns named {repeated_name(twice[0])[:60]!a}, called {listed(twice)} here: say which "
        f"columns are inputs, of {listed(names)}{line}."
    )


def _wordiest(table: pa.Table, names: Sequence[str]) -> str:
    """Return the column with the most different values: texts have more of them than categories."""
    plain = [name for name in names if is_flat(table.column(name))]
    return max(plain, key=lambda name: distinct(table.column(name)), default=names[0])


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
    alone = values_of(table.column(inputs[0]), place, budget) if len(inputs) == 1 else None
    if alone is not None and (alone.ndim > 1 or alone.dtype == object):
        return alone
    return number_columns(table, inputs, str(path), budget)


def _said_inputs(names: Sequence[str]) -> str:
    return f"inputs: column {names[0]}" if len(names) == 1 else f"inputs: {len(names):,} columns, {short(names)}"


def short(given: Sequence[str]) -> str:
    """Write names of columns, the first and the last of many."""
    names = [name or "(a column without a name)" for name in given]
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]} ... {names[-1]}"
