"""Tables as text: CSV and TSV, plain or gzipped."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.datasets.files.columns import with_points
from idc_core.datasets.files.dialect import as_utf_8, dialect_of
from idc_core.datasets.files.tables import MOST_COLUMNS, check_columns, noted, table_format
from idc_core.errors import DataError
from idc_core.guarded import Budget, open_gzip, read_content

if TYPE_CHECKING:
    import pyarrow as pa

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BLOCK = 1 << 20
# A cell of one character is two bytes of CSV and five of Arrow's text, which is held once more while it is cut.
_COPIES = 8
_ROWS = 1 << 24
"""Bytes that are taken apart at a time; a row may be as long."""
_COLUMN = 4_000
_MOST_HEADING = 1 << 24


@table_format(".csv", ".csv.gz", ".tsv", ".tsv.gz", label="Table as text")
def _read_csv(path: Path, budget: Budget) -> pa.Table:
    """Read a table; every value is the text that it is, but for decimal commas."""
    import pyarrow as pa
    from pyarrow import csv

    where = str(path)
    content = plain_content(path, budget)
    if content.startswith(_UTF_16) or b"\0" in content[:_BLOCK]:
        raise DataError(f"{where} is no table in UTF-8 but UTF-16 or binary; save it as CSV in UTF-8.")
    if b"\0" in content:
        raise DataError(f"{where} is no table in UTF-8: it holds a zero byte; save it as CSV in UTF-8.")
    content, in_latin = as_utf_8(content.removeprefix(b"\xef\xbb\xbf"), where)
    usual = "\t" if ".tsv" in path.name.lower() else ","
    _check_width(content, where)
    dialect = dialect_of(content, usual, where)
    names = list(dialect.names)
    check_columns(names, where)
    budget.take(_COPIES * len(content) + _COLUMN * len(names), "its values")
    given = None if dialect.has_heading else names
    try:
        table = csv.read_csv(
            io.BytesIO(content),
            read_options=csv.ReadOptions(use_threads=False, block_size=_ROWS, column_names=given),
            parse_options=csv.ParseOptions(delimiter=dialect.sign, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=True
            ),
        )
        other = table.column_names != names
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise DataError(f"{where} is no table in UTF-8 with as many values in every row ({said(error)}).") from error
    if other:
        raise DataError(f"{where} has a heading that is damaged; write it again.")
    table, decimals = (table, False) if dialect.sign == "," else with_points(table)
    notes = (*dialect.notes, *("read as latin-1",) * in_latin, *("decimal commas",) * decimals)
    return noted(table, notes)


def plain_content(path: Path, budget: Budget) -> bytes:
    """Return the content of a file, expanded where its name ends in .gz, within the limit of memory."""
    where = str(path)
    if not path.name.lower().endswith(".gz"):
        return read_content(path, where, budget)
    parts = []
    with open_gzip(path, where) as stream:
        while part := stream.read(_BLOCK):
            budget.take(2 * len(part), "its content once expanded")
            parts.append(part)
    return b"".join(parts)


def said(error: Exception) -> str:
    """Return the first line of an error, shortened, of characters that can be shown."""
    return ascii((str(error).splitlines() or [type(error).__name__])[0][:200])[1:-1]


def _check_width(content: bytes, where: str) -> None:
    """Refuse tables of too many columns before they are read, as each column takes memory."""
    end = content.find(b"\n", 0, _MOST_HEADING)
    line = content[:_MOST_HEADING] if end < 0 else content[:end]
    count = max(map(line.count, (b",", b";", b"\t", b"|"))) + 1
    if count > MOST_COLUMNS:
        raise DataError(f"{where} has {count:,} columns; at most {MOST_COLUMNS:,} are read: save it as npz.")
