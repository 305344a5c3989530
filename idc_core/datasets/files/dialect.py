"""How a table is written as text: what stands above it, the sign between its columns, its heading."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from idc_core.datasets.files.columns import NOTHING
from idc_core.datasets.files.names import is_known, tidy_name, told_apart
from idc_core.errors import DataError

_SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_LINES = 20
"""Rows from which the sign between columns is told."""

_START = 1 << 22
_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
_TOLD = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)
"""First line by which Excel is told the sign."""
_BLANKS = re.compile(rb'("(?:[^"\r\n]|"")*")|[ \t]+')
_MARGIN = re.compile(rb"^[ \t]+|[ \t]+(?=\r?$)", re.MULTILINE)
_FILE = re.compile(r".*[^\s.]\.[A-Za-z][A-Za-z0-9]{1,4}")
_TITLES = 12
"""Lines above a table that are taken for its title."""


@dataclass(frozen=True)
class Dialect:
    """How a table is written.

    Attributes
    ----------
    sign : str
        Between columns.
    names : tuple of str
        Of the columns; some made here where the heading lacks them.
    start : int
        Byte at which the table begins: with its heading if `has_heading`, else with its first row.
    has_heading : bool
        Whether the names can be read where the table begins.
    is_padded : bool
        Whether spaces follow the signs, which are no part of names and values.
    notes : tuple of str
        What is unusual, each in a few words.
    """

    sign: str
    names: tuple[str, ...]
    start: int = 0
    has_heading: bool = True
    is_padded: bool = False
    notes: tuple[str, ...] = ()


def said(error: Exception) -> str:
    """Return the first line of an error, shortened, of characters that can be shown."""
    return ascii((str(error).splitlines() or [type(error).__name__])[0][:200])[1:-1]


def with_tabs(content: bytes) -> tuple[bytes, bool]:
    """Return a table whose columns stand apart by blanks alone with tabs instead, and whether it was one."""
    lines = [line for line in content[:_START].splitlines()[: _LINES + _TITLES] if line.strip()]
    rows = [_BLANKS.sub(lambda blank: blank[1] or b"\t", line.strip()).split(b"\t") for line in lines]
    rows = [row for row in rows if not row[0].startswith(b"#")]
    widths = set(map(len, rows[1:]))
    heading = len(rows[0]) if rows else 0
    of_names = heading > 1 and widths == {heading + 1}  # the names of rows have none themselves
    text = content[:_START].decode("utf-8", "ignore")
    signs = any(_width(one, sign) > 1 for sign in _SIGNS for one in (text, text[len(_titles(text, sign)) :]))
    if signs or heading < 2 or not (of_names or widths <= {heading}):
        return content, False
    plain = _MARGIN.sub(b"", content)
    return _BLANKS.sub(lambda blank: blank[1] or b"\t", plain), True


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
    told = _TOLD.match(start)
    begin = told.end() if told else 0
    text = start[begin:]
    signs = (told[1],) if told else (usual, *_SIGNS)
    sign, has_titles = _sign_of(text, signs)
    titles = _titles(text, sign) if has_titles else ""
    text = text[len(titles) :]
    try:
        rows = _rows(text, sign, _LINES)
        "".join(name for row in rows for name in row).encode()
    except (csv.Error, UnicodeEncodeError) as error:
        raise DataError(f"{where} has a heading that cannot be read ({said(error)}).") from error
    notes: tuple[str, ...] = () if sign in ",\t" else (f"{_SIGNS.get(sign, ascii(sign))} between columns",)
    above = _names_above(titles, sign, rows)
    lines = len(titles.splitlines()) - bool(above)
    notes += (f"{lines} lines above the table left out",) if lines else ()
    made = _of_rows(Dialect(sign, (), len(start[:begin].encode()) + len(titles.encode()), notes=notes), rows, text)
    return replace(made, names=above, has_heading=False, notes=notes) if above else made


def _sign_of(text: str, signs: Sequence[str]) -> tuple[str, bool]:
    """Return the sign between columns, and whether lines stand above the table.

    Without such lines the first sign that all rows have as often; below them the one that makes the most columns.
    """
    plain = next((sign for sign in signs if _width(text, sign) > 1), None)
    if plain is not None:
        return plain, True
    widths = {sign: _width(text[len(_titles(text, sign)) :], sign) for sign in reversed(signs)}
    best = max(widths, key=widths.__getitem__)
    return (best, True) if widths[best] > 1 else (signs[0], False)


def _of_rows(dialect: Dialect, rows: list[list[str]], text: str) -> Dialect:
    """Return the names and the beginning of a table by its first rows."""
    first = [tidy_name(cell) for cell in rows[0]] if rows else []
    is_padded = len(first) > 1 and all(cell.startswith(" ") for row in rows for cell in row[1:] if cell)
    dialect = replace(dialect, is_padded=is_padded)
    if not _is_heading(first, rows[1:]):
        names = tuple(f"column_{number}" for number in range(1, len(first) + 1))
        note = "no heading: columns are called column_1 and so on"
        return replace(dialect, names=names, has_heading=False, notes=(*dialect.notes, note))
    if any(map(_NUMBER.fullmatch, first)):
        dialect = replace(dialect, notes=(*dialect.notes, "the first row read as names of columns"))
    names = _whole_heading(told_apart(first), rows[1:])
    if names == tuple(rows[0] if rows else ()):
        return replace(dialect, names=names)
    after = dialect.start + len(_first_row(text, dialect.sign).encode())
    return replace(dialect, names=names, start=after, has_heading=False)


def _whole_heading(first: Sequence[str], others: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return a heading with a name for every column: rows may have a name before them, or a sign after them."""
    names = list(first)
    if others and {len(row) for row in others} == {len(first) + 1}:
        names = [*first, ""] if not any(row[-1].strip() for row in others) else ["", *first]
    nameless = [place for place, name in enumerate(names) if not name]
    for place in nameless if len(nameless) > 1 else []:
        names[place] = f"unnamed: {place}"
    return tuple(names)


def _first_row(text: str, sign: str) -> str:
    """Return the first row as it is written, with its end."""
    stream = io.StringIO(text, newline="")
    for row in csv.reader(iter(stream.readline, ""), delimiter=sign):
        if row:
            break
    return text[: stream.tell()]


def _titles(text: str, sign: str) -> str:
    """Return what stands above a table: lines with a first cell alone, and comments."""
    end = 0
    for line in text.splitlines(keepends=True)[:_TITLES]:
        try:
            cells = next(csv.reader([line], delimiter=sign), [])
        except csv.Error:  # who reads the rows says it
            return text[:end]
        if line.count('"') % 2 or not (line.startswith("#") or not any(map(str.strip, cells[1:]))):
            return text[:end]
        end += len(line)
    return ""


def _names_above(titles: str, sign: str, rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the names in the comment just above a table of numbers, as NumPy writes them, or nothing."""
    last = (titles.splitlines() or [""])[-1]
    if not last.startswith("#") or not rows or not any(map(_NUMBER.fullmatch, rows[0])):
        return ()
    names = told_apart([tidy_name(name) for name in last.lstrip("# \t").split(sign)])
    return tuple(names) if len(names) == len(rows[0]) > 1 else ()


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
    first, others = len(rows[0]), {len(row) for row in rows[1:]}
    return max(others, default=first) if others <= {first} or (others == {first + 1} and first > 1) else 1


def _is_heading(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether a first row holds names, told by what stands below it.

    It does where one of them says what a column is, or stands above numbers alone; not where a word or a number comes
    again in its column, or names a file as the whole column does. Numbers beside no words are names where they count
    the columns; beside words where they are whole, as years are, or rise from column to column.
    """
    columns = [[row[place].strip() for row in others if len(row) == len(first)] for place in range(len(first))]
    if not others or not all(columns) or any(map(is_known, first)):
        return True
    cells = [cell.strip() for cell in first]
    numbers = [place for place, cell in enumerate(cells) if _NUMBER.fullmatch(cell)]
    words = [place for place, cell in enumerate(cells) if place not in numbers and cell.lower() not in NOTHING]
    again = {place for place, cell in enumerate(cells) if cell in columns[place]}
    others_of = {place: [cell for cell in columns[place] if cell != cells[place]] for place in words}
    if any(found and all(map(_NUMBER.fullmatch, found)) for found in others_of.values()):
        return True
    if again & set(words) or any(all(map(_FILE.fullmatch, (cells[place], *columns[place]))) for place in words):
        return False
    if not numbers:
        return True
    counts = [[str(place + begin) for place in range(len(numbers))] for begin in (0, 1)]
    if not words:
        return [cells[place] for place in numbers] in counts and len(numbers) > 1 and not again >= set(numbers)
    if again & set(numbers):
        return False
    values = [float(cells[place].replace(",", ".")) for place in numbers]
    rise = len(values) > 2 and all(one < other for one, other in pairwise(values))
    return rise or all(value.is_integer() for value in values)
