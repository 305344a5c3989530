"""Records as JSON: one per line, or a list of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.datasets.files.delimited import plain_content, said
from idc_core.datasets.files.tables import check_columns, table_format
from idc_core.errors import DataError
from idc_core.guarded import Budget, read_json, read_json_lines

if TYPE_CHECKING:
    import pyarrow as pa

_RECORD, _KEY = 100, 60
_NUMBER = 40


@table_format(".jsonl", ".jsonl.gz", ".ndjson", ".json", label="Records as JSON")
def _read_records(path: Path, budget: Budget) -> pa.Table:
    """Read records that have the same keys, each a column."""
    import pyarrow as pa

    where = str(path)
    if path.suffix.lower() == ".json":
        records = read_json(path, where, list[dict[str, object]])
    else:
        records = _lines(plain_content(path, budget), where, budget)
    if not records:
        raise DataError(f"{where} has no records; expected JSON objects.")
    names = list(records[0])
    check_columns(names, where)
    for number, record in enumerate(records):
        if record.keys() != records[0].keys():
            other = sorted(record.keys() ^ records[0].keys())[:5]
            raise DataError(
                f"{where}, record {number + 1:,} has other keys than the first one: {', '.join(map(ascii, other))}."
            )
    columns = []
    for name in names:
        values = [record[name] for record in records]
        budget.take(sum(_held(value) for value in values), "its values")
        try:
            columns.append(pa.chunked_array([pa.array(values)]))
        except (pa.ArrowException, OverflowError, ValueError, UnicodeError) as error:
            raise DataError(f"{where}: {name!a} has values of several kinds ({said(error)}).") from error
    return pa.table(columns, names=names)


def _lines(content: bytes, where: str, budget: Budget) -> list[dict[str, object]]:
    records = []
    for number, record in read_json_lines(content, where, budget):
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
