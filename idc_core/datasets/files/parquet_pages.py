"""The headers of a Parquet file's pages, read by hand, for they alone say how much memory a page takes.

pyarrow's metadata does not serve: the sizes that it gives are those of the list of columns, which nothing compares with
the pages. A file of 70 kB whose list says 1,000 bytes, with 25 million zeros on one page, takes 324 MB once it is read
(pyarrow 26.0.1); a damaged list ends the process that asks for it from Python; and neither a limit of its memory pools
nor a pool of one's own for `ParquetFile` is offered. Lists and headers are structs of Thrift's compact protocol,
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md, with the fields of
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from idc_core.errors import DataError

_TRUE, _FALSE, _BYTE, _WIDEST_NUMBER, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = (
    1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13,
)  # fmt: skip
_SIZE, _COMPRESSED, _DATA, _DATA_2 = 2, 3, 5, 8
_VALUES, _ENCODING, _ENCODING_2 = 1, 2, 4
_DELTA_BYTE_ARRAY = 7
_DEEPEST = 16
_LONG = 15
_MOST = 1 << 31

_SCHEMA, _WIDTH, _GROUPS, _COLUMNS, _ABOUT = 2, 2, 4, 1, 3
_KIND, _PATH, _LENGTH, _FIRST, _DICTIONARY = 1, 3, 7, 9, 11
_BYTE_ARRAY, _FIXED = 6, 7

_Struct = dict[int, Any]


@dataclass(frozen=True)
class _Column:
    """A part of a column: its path in the schema, its place, and whether it lists texts once and numbers them.

    `width` are the bytes of a value, where all values have as many.
    """

    path: str
    start: int
    length: int
    is_listed: bool
    width: int


def columns(content: bytes, start: int, where: str) -> Iterator[_Column]:
    """Yield the parts of columns that the list at this place names.

    Raises
    ------
    DataError
        If the list is damaged.
    """
    try:
        about, _ = _struct(content, start, 0)
        widest = max(element.get(_WIDTH, 0) for element in about[_SCHEMA])
        for group in about.get(_GROUPS, ()):
            for part in group[_COLUMNS]:
                column = part[_ABOUT]
                listed = _DICTIONARY in column
                first = min(column[_FIRST], column[_DICTIONARY]) if listed else column[_FIRST]
                texts = listed and column[_KIND] == _BYTE_ARRAY
                width = _size(widest) if column[_KIND] == _FIXED else 0
                yield _Column(".".join(column[_PATH]), _size(first), _size(column[_LENGTH]), texts, width)
    except (IndexError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{where} is damaged: the list of its columns cannot be read; copy it again.") from error


@dataclass(frozen=True)
class _Page:
    """Bytes of a page once expanded, and how many values it has."""

    size: int
    values: int


def pages(content: bytes, start: int, length: int, where: str) -> Iterator[_Page]:
    """Yield the pages of a column that takes so many bytes from here.

    Raises
    ------
    DataError
        If a header is damaged, or a page is written so that a few bytes stand for any number of them.
    """
    place, end = start, start + length
    if not 0 <= start <= end <= len(content):
        raise DataError(f"{where} is damaged: a column lies outside the file; copy it again.")
    while place < end:
        try:
            header, place = _struct(content, place, 0)
            size, compressed = _number(header, _SIZE), _number(header, _COMPRESSED)
            first, second = header.get(_DATA), header.get(_DATA_2)
            inner = first if isinstance(first, dict) else second if isinstance(second, dict) else {}
            values = _number(inner, _VALUES) if inner else 0
            encoding = inner.get(_ENCODING if inner is first else _ENCODING_2)
        except (IndexError, ValueError) as error:
            raise DataError(f"{where} is damaged: the header of a page cannot be read; copy it again.") from error
        if encoding == _DELTA_BYTE_ARRAY:
            raise DataError(
                f"{where} holds texts as differences (DELTA_BYTE_ARRAY); write them plain or as a dictionary."
            )
        place += compressed
        yield _Page(size, values)


def _number(header: _Struct, field: int) -> int:
    number = _size(header.get(field, -1))
    if number >= _MOST:
        raise ValueError("a size is too large")
    return number


def _size(found: object) -> int:
    if not isinstance(found, int) or found < 0:
        raise ValueError("a size is missing or negative")
    return found


def _struct(content: bytes, place: int, depth: int) -> tuple[_Struct, int]:
    """Return the whole numbers, texts, structs and lists of a struct by field, and where it ends."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    values: _Struct = {}
    field = 0
    while kind_and_step := content[place]:
        place += 1
        kind, step = kind_and_step & 15, kind_and_step >> 4
        if step:
            field += step
        else:
            field, place = _zigzag(content, place)
        value, place = _value(content, place, kind, depth)
        if value is not None:
            values[field] = value
    return values, place + 1


def _value(content: bytes, place: int, kind: int, depth: int) -> tuple[object, int]:
    if kind in (_TRUE, _FALSE):
        return None, place
    if kind == _BYTE:
        return None, place + 1
    if kind <= _WIDEST_NUMBER:
        return _zigzag(content, place)
    if kind == _STRUCT:
        return _struct(content, place, depth + 1)
    if kind == _BINARY:
        length, place = _varint(content, place)
        return content[place : place + length].decode("utf-8", "replace"), place + length
    fixed = {_DOUBLE: 8, _UUID: 16}
    if kind in fixed:
        return None, place + fixed[kind]
    if kind in (_LIST, _SET):
        return _list(content, place, depth)
    raise ValueError("an unknown kind of value")


def _list(content: bytes, place: int, depth: int) -> tuple[list[object], int]:
    length, kind = content[place] >> 4, content[place] & 15
    place += 1
    if length == _LONG:
        length, place = _varint(content, place)
    if length > len(content) - place:
        raise ValueError("a list is longer than the file")
    values = []
    for _ in range(length):
        # In a list, truth values are bytes.
        value, place = _value(content, place, _BYTE if kind in (_TRUE, _FALSE) else kind, depth)
        values.append(value)
    return values, place


def _varint(content: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = content[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
    raise ValueError("a number is too long")


def _zigzag(content: bytes, place: int) -> tuple[int, int]:
    number, place = _varint(content, place)
    return (number >> 1) ^ -(number & 1), place
