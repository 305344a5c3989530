"""Tables in Parquet, with numbers, texts, lists of numbers, or pictures as Hugging Face writes them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from idc_core.datasets.files.dialect import said
from idc_core.datasets.files.parquet_pages import columns, pages
from idc_core.datasets.files.tables import MOST_COLUMNS, table_format
from idc_core.errors import DataError
from idc_core.guarded import Budget, read_content
from idc_core.guarded.opening import File

if TYPE_CHECKING:
    import pyarrow as pa

_MARK = b"PAR1"
# What a list of columns takes once it is parsed, for each of its bytes.
_FOOTER_COPIES = 60
_VALUE, _LEVELS = 8, 18
"""Bytes of a number, and what is held beside it while it is put into a list or a record."""
_TEXTS = 4
"""How many times a column of texts is held while it is looked at: trimmed, in small letters."""


@table_format(".parquet", label="Table in Parquet")
def _read_parquet(file: File, where: str, budget: Budget) -> pa.Table:
    """Read a table; texts and bytes stay listed once, each row with its number, as they are in the file."""
    import pyarrow as pa
    from pyarrow import parquet

    content = read_content(file, where, budget)
    if len(content) < 12 or content[:4] != _MARK or content[-4:] != _MARK:
        raise DataError(f"{where} is cut off or no Parquet file; copy it again.")
    (footer,) = struct.unpack("<I", content[-8:-4])
    budget.take(_FOOTER_COPIES * min(footer, len(content)), "the list of its columns")
    before = budget.held
    listed = _check_pages(content, len(content) - 8 - footer, budget)
    try:
        found = parquet.ParquetFile(pa.BufferReader(content), read_dictionary=listed)
        table = found.read(use_threads=False)
        table.validate(full=True)
        table.column_names  # noqa: B018 (names that are no text are an error of the library's)
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, UnicodeError, MemoryError) as error:
        raise DataError(f"{where} is damaged or no Parquet file ({said(error)}); write it again.") from error
    budget.give(budget.held - before)  # pages are no longer held
    budget.take(table.nbytes, "its columns")
    _check_texts(table, budget)
    return table


def _check_texts(table: pa.Table, budget: Budget) -> None:
    """Count what texts take that are listed once, each row with its own, before a column of them is made."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if pa.types.is_dictionary(kind):
            parts = (pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() for chunk in column.chunks)
            budget.take(_TEXTS * sum(part or 0 for part in parts), f"its column {name[:60]!a}, a text for each row,")
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            budget.take((_TEXTS - 1) * column.nbytes, f"its column {name[:60]!a}")


def _check_pages(content: bytes, footer: int, budget: Budget) -> list[str]:
    """Count what all pages expand to, before one is expanded; return the columns of texts that are listed once."""
    if footer < len(_MARK):
        raise DataError(f"{budget.where} is cut off or no Parquet file; copy it again.")
    listed, paths = set(), set()
    for column in columns(content, footer, budget.where):
        paths.add(column.path)
        if len(paths) > MOST_COLUMNS:
            raise DataError(f"{budget.where} has more than {MOST_COLUMNS:,} columns, which are not read.")
        if column.is_listed:
            listed.add(column.path)
        for page in pages(content, column.start, column.length, budget.where):
            value = max(_VALUE, column.width) + _LEVELS * ("." in column.path)
            budget.take(page.size + value * page.values, "a page of it once expanded")
    return sorted(listed)
