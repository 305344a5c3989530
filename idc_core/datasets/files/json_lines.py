"""Records as JSON: one per line, or a list of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.datasets.files.delimited import plain_content
from idc_core.datasets.files.dialect import said
from idc_core.datasets.files.tables import check_columns, table_format
from idc_core.errors import DataError
from idc_core.guarded import Budget, read_json, read_json_lines, typed
from idc_core.guarded.opening import File

if TYPE_CHECKING:
    import pyarrow as pa

_RECORD, _KEY = 100, 60
_NUMBER = 40
_CELL = 8
_LINES = re.compile(rb"[ \t\r\n]*\{[^\n]*\}[ \t\r]*\n\s*\{")
"""Two records, a line each."""


@table_format(".jsonl", ".jsonl.gz", ".ndjson", ".json", ".json.gz", label="Records as JSON")
def _read_records(file: File, where: str, budget: Budget) -> pa.Table:
    """Read records that have the same keys, each a column."""
    import pyarrow as pa

    content = plain_content(file, where, budget).removeprefix(b"\xef\xbb\xbf")
    by_line = not content.lstrip().startswith(b"[") and (".json" not in Path(where).suffixes or _LINES.match(content))
    if by_line:
        records = _lines(content, where, budget)
    else:
        records = _records(read_json(content, where, object, finite=False), where)
    if not records:
        raise DataError(f"{where} has no records; expected JSON objects.")
    names = list(dict.fromkeys(name for record in records for name in record))
    check_columns(names, where)
    budget.take(_CELL * len(names) * len(records), "its values")
    columns = []
    for name in names:
        values = [record.get(name) for record in records]
        budget.take(sum(_held(value) for value in values), "its values")
        try:
            columns.append(pa.chunked_array([pa.array(_as_texts(values))]))
        except (pa.ArrowException, OverflowError, ValueError, UnicodeError) as error:
            raise DataError(f"{where}: {name!a} has values of several kinds ({said(error)}).") from error
    return _flat(pa.table(columns, names=names))


def _as_texts(values: list[object]) -> list[object]:
    """Return numbers and texts, which a column cannot hold both, as texts, which a table reads as what they say."""
    kinds = {type(value) for value in values} - {type(None)}
    if str not in kinds or not kinds <= {str, int, float} or len(kinds) == 1:
        return values
    return [None if value is None or value != value else str(value) for value in values]


def _flat(table: pa.Table) -> pa.Table:
    """Return a table whose records inside records are columns of their own: "size.width"."""
    import pyarrow as pa

    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def _records(value: object, where: str) -> list[dict[str, object]]:
    """Return records as a program wrote them: a list of them, or any form in which pandas writes a table (`orient`)."""
    rows: list[dict[str, object]] | None = None
    if isinstance(value, dict) and not isinstance(value.get("columns"), list):
        held = [part for part in value.values() if isinstance(part, list) and part and isinstance(part[0], dict)]
        value = held[0] if len(held) == 1 else value  # records beside what is said of them
    if isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        is_heading = all(isinstance(name, str) for name in value[0]) and any(
            not isinstance(cell, str) for row in value[1:2] for cell in row
        )
        names = value[0] if is_heading else [f"column_{number}" for number in range(1, len(value[0]) + 1)]
        rows = _of_rows(names, value[is_heading:])
    elif isinstance(value, dict) and isinstance(value.get("data"), list) and {"columns", "schema"} & set(value):
        given = value.get("columns")
        rows = _of_rows(given, value["data"]) if isinstance(given, list) else value["data"]
    elif isinstance(value, dict) and value and all(isinstance(part, dict) for part in value.values()):
        rows = _of_parts({str(name): part for name, part in value.items()})
    elif isinstance(value, dict) and value and all(isinstance(part, list) for part in value.values()):
        lengths = {len(part) for part in value.values()}
        if len(lengths) == 1:
            rows = [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
    return typed(value if rows is None else rows, where, list[dict[str, object]])


def _of_rows(names: list[object], rows: list[object]) -> list[dict[str, object]] | None:
    """Return records of rows and names; None where these are not as many."""
    lists = [row for row in rows if isinstance(row, list) and len(row) == len(names)]
    called = list(map(str, names))
    if len(lists) < len(rows) or len(set(called)) < len(called):
        return None
    return [dict(zip(called, row, strict=True)) for row in lists]


def _of_parts(parts: dict[str, dict[str, object]]) -> list[dict[str, object]]:
    """Return records of columns by name, or of rows by number: each a dictionary with the same keys.

    Keys of rows are numbers where names of columns are words; of tables in which both are either, the columns are the
    outer ones, as pandas writes them by default.
    """
    first = next(iter(parts.values()))
    by_row = all(name.lstrip("-").isdigit() for name in parts) and not all(name.lstrip("-").isdigit() for name in first)
    if by_row:
        return list(parts.values())
    keys = list(first)
    same = all(part.keys() == first.keys() for part in parts.values())
    return [{name: part[key] for name, part in parts.items()} for key in keys] if same else list(parts.values())


def _lines(content: bytes, where: str, budget: Budget) -> list[dict[str, object]]:
    records = []
    for number, record in read_json_lines(content, where, budget, finite=False):
        if not isinstance(record, dict):
            raise DataError(f'{where}, line {number:,} is not of the form expected: an object such as {{"label": 1}}.')
        budget.take(_RECORD + _KEY * len(record) + sum(map(_held, record.values())), "its records")
        records.append(record)
    return records


def _held(value: object) -> int:
    """Return the bytes that a value takes in memory, about."""
    if isinstance(value, list):
        return _NUMBER * (1 + len(value)) + sum(_held(part) for part in value if isinstance(part, (list, dict, str)))
    if isinstance(value, dict):
        return sys.getsizeof(value) + sum(_held(part) for part in value.values())
    return sys.getsizeof(value)
