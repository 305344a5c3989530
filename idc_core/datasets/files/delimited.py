"""Tables as text: CSV and TSV, plain or gzipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.datasets.encodings import as_utf_8
from idc_core.datasets.files.dialect import dialect_of, said, with_tabs
from idc_core.datasets.files.tables import MOST_COLUMNS, check_columns, noted, table_format
from idc_core.datasets.files.written import with_plain_numbers
from idc_core.datasets.other_files import from_here, said_beginning
from idc_core.errors import DataError
from idc_core.guarded import Budget, open_gzip, opened, read_content
from idc_core.guarded.opening import File

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 20
_ESCAPED = re.compile(rb'[,;\t|\n]"(?:[^"\n\\]|\\[^"\n])*\\"[^,;\t|\r\n"]')
"""A quotation mark inside a cell as Spark and MySQL write it: one before a sign or another mark may end its cell."""
_ZIPPED = b"\x1f\x8b"
# A cell of one character is two bytes of CSV and five of Arrow's text, which is held once more while it is cut.
_COPIES = 8
_ROWS = 1 << 24
"""Bytes that are taken apart at a time; a row may be as long."""
_COLUMN = 4_000
_MOST_HEADING = 1 << 24


@table_format(".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".dat", ".data", ".txt", label="Table as text")
def read_csv(file: File, where: str, budget: Budget) -> pa.Table:
    """Read a table; every value is the text that it is, but for numbers, which are written as Python reads them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    content, encoding = as_utf_8(plain_content(file, where, budget), where, budget)
    _check_width(content, where)
    budget.take(_COPIES * len(content), "its values")
    escaped = rb"\"" in content and _ESCAPED.search(content) is not None
    if escaped:
        content = content.replace(rb"\"", b'""')
    content, by_blanks = with_tabs(content)
    dialect = dialect_of(content, "\t" if ".tsv" in Path(where).name.lower() else ",", where)
    names = list(dialect.names)
    check_columns(names, where)
    budget.take(_COLUMN * len(names), "its columns")
    given = None if dialect.has_heading else names
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(content).slice(dialect.start)),
            read_options=csv.ReadOptions(use_threads=False, block_size=_ROWS, column_names=given),
            parse_options=csv.ParseOptions(delimiter=dialect.sign, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=True
            ),
        )
        other = table.column_names != names
    except (pa.ArrowException, ValueError, KeyError) as error:
        if not content[dialect.start :].partition(b"\n")[2 * dialect.has_heading].strip():
            raise DataError(f"{where} has no rows; expected at least one row below its heading.") from error
        line = f"pandas.read_csv({from_here(where)!r}, sep={dialect.sign!r}, on_bad_lines='skip')"
        raise DataError(
            f"{where} is no table with as many values in every row ({said(error)}). Mend that row, or leave such rows "
            f"out in Python: import pandas; {line}.to_csv('mended.csv', index=False)."
        ) from error
    if other:
        raise DataError(f"{where} has a heading that is damaged; write it again.")
    if dialect.is_padded:
        table = pa.table({name: pc.utf8_trim_whitespace(table.column(name)) for name in names})
    table, again = _without_headings(table)
    table, numbers = with_plain_numbers(table, dialect.sign)
    blanks = ("blanks between columns",) * by_blanks + ("backslashes before quotation marks",) * escaped
    return noted(table, (*blanks, *dialect.notes, *encoding, *again, *numbers))


def _without_headings(table: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """Leave out rows that are the heading again, as files put together have them, and say so."""
    import pyarrow.compute as pc

    again = None
    for name in table.column_names:
        alike = pc.equal(table.column(name), name)
        again = alike if again is None else pc.and_(again, alike)
        if not pc.any(again).as_py():
            return table, ()
    return table.filter(pc.invert(again)), (f"{pc.sum(again).as_py():,} rows that are the heading again left out",)


def plain_content(file: File, where: str, budget: Budget) -> bytes:
    """Return the content of a file, expanded where its name ends in .gz, within the limit of memory."""
    with opened(file, where) as stream:
        zipped = where.lower().endswith(".gz") and stream.read(2) == _ZIPPED  # browsers expand files by themselves
    if not zipped:
        content = read_content(file, where, budget)
    else:
        parts = []
        with open_gzip(file, where) as stream:
            while part := stream.read(_BLOCK):
                budget.take(2 * len(part), "its content once expanded")
                parts.append(part)
        content = b"".join(parts)
    if other := said_beginning(content, where.removesuffix(".gz")):
        raise DataError(other)
    return content


def _check_width(content: bytes, where: str) -> None:
    """Refuse tables of too many columns before they are read, as each column takes memory."""
    end = content.find(b"\n", 0, _MOST_HEADING)
    line = content[:_MOST_HEADING] if end < 0 else content[:end]
    count = max(map(line.count, (b",", b";", b"\t", b"|"))) + 1
    if count > MOST_COLUMNS:
        raise DataError(f"{where} has {count:,} columns; at most {MOST_COLUMNS:,} are read: save it as npz.")
