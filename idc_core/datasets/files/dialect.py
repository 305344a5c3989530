"""How a table is written as text: its encoding, the sign between its columns, whether its first row is a heading."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from idc_core.errors import DataError

_SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_LINES = 20
"""Rows from which the sign between columns is told."""

_START = 1 << 22
_BLOCK = 1 << 20
_LATIN = "cp1252"
"""What Windows calls latin-1: the same letters, and some signs more."""

_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class Dialect:
    """How a table is written.

    Attributes
    ----------
    sign : str
        Between columns.
    names : tuple of str
        Of the columns; made here where there is no heading.
    has_heading : bool
    """

    sign: str
    names: tuple[str, ...]
    has_heading: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """What is unusual, each in a few words."""
        signs = () if self.sign in ",\t" else (f"{_SIGNS[self.sign]} between columns",)
        return (*signs, *(() if self.has_heading else ("no heading: columns are called column_1 and so on",)))


def as_utf_8(content: bytes, where: str) -> tuple[bytes, bool]:
    """Return a text in UTF-8, and whether it came in latin-1; DataError where it is neither."""
    decoder, position = codecs.getincrementaldecoder("utf-8")(), 0
    try:
        for position in range(0, len(content), _BLOCK):  # a table as one text would take several times its memory
            decoder.decode(content[position : position + _BLOCK])
        decoder.decode(b"", final=True)
        return content, False
    except UnicodeDecodeError as error:
        position += error.start
    try:
        text = content.decode(_LATIN)
    except UnicodeDecodeError:
        text = "\0"
    if any(ord(letter) < 32 and letter not in "\t\r\n" for letter in set(text)):
        raise DataError(f"{where} is no table in UTF-8, nor in latin-1 (byte {position:,}); save it as CSV in UTF-8.")
    return text.encode(), True


def dialect_of(content: bytes, usual: str, where: str) -> Dialect:
    """Tell how a table is written from its beginning.

    Parameters
    ----------
    content : bytes
        In UTF-8.
    usual : str
        The sign that its name promises.
    where : str
        What is read, for messages: the beginning of a sentence.

    Raises
    ------
    DataError
        If its first row cannot be read.
    """
    start = content[:_START].decode("utf-8", "ignore")
    counts = {sign: _width(start, sign) for sign in (usual, *_SIGNS)}
    sign = next((sign for sign, width in counts.items() if width > 1), usual)
    try:
        rows = _rows(start, sign, _LINES)
        "".join(name for row in rows for name in row).encode()
    except (csv.Error, UnicodeEncodeError) as error:
        reason = ascii((str(error).splitlines() or [""])[0][:200])[1:-1]
        raise DataError(f"{where} has a heading that cannot be read ({reason}).") from error
    first = rows[0] if rows else []
    if _is_heading(first, rows[1:]):
        return Dialect(sign, tuple(first), True)
    return Dialect(sign, tuple(f"column_{number}" for number in range(1, len(first) + 1)), False)


def _rows(text: str, sign: str, most: int) -> list[list[str]]:
    rows: list[list[str]] = []
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign):
        if row:
            rows.append(row)
        if len(rows) == most:
            break
    return rows


def _width(start: str, sign: str) -> int:
    """Return how many columns a table has if this sign is between them; 1 where its rows do not agree."""
    if sign not in start.partition("\n")[0]:
        return 1
    try:
        rows = _rows(start, sign, _LINES)
    except csv.Error:
        return 1
    rows = rows[:-1] if len(rows) > 2 and len(start) == _START else rows  # the last may be cut off
    widths = Counter(map(len, rows))
    return len(rows[0]) if len(widths) == 1 else 1


def _is_heading(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether a first row holds names: no numbers, or such that count the columns or stand beside words.

    A word that comes again further down in its column is a value.
    """
    numbers = [cell.strip() for cell in first if _NUMBER.fullmatch(cell)]
    columns = [[row[place] for row in others if len(row) == len(first)] for place in range(len(first))]
    if not numbers or not others or not all(columns):
        return True
    if numbers in ([str(place + begin) for place in range(len(numbers))] for begin in (0, 1)) and len(numbers) > 1:
        return True
    words = [place for place, cell in enumerate(first) if cell.strip() and not _NUMBER.fullmatch(cell)]
    return bool(words) and not any(first[place] in columns[place] for place in words)
