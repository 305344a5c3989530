"""Texts from outside: UTF-8, JSON and TOML, bounded before they are parsed, typed while they are."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from idc_core.errors import DataError
from idc_core.guarded.budget import Budget
from idc_core.guarded.opening import File, read_content

_T = TypeVar("_T")

_MARK = b"\xef\xbb\xbf"
"""What UTF-8 may begin with."""

_MOST_NESTED = 100
# Python's reader takes time by the square of the parts of a key.
_MOST_TOML = 1 << 16
_MOST_SAID = 500

# An empty list is three bytes of JSON and 64 of memory.
_JSON_COPIES = 25


def read_text(file: File, where: str) -> str:
    """Return a text in UTF-8, with or without a byte order mark; raise `DataError` where it is none."""
    content = read_content(file, where, copies=5)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is no text in UTF-8 ({error}).") from error


def read_json(file: File, where: str, kind: type[_T], *, finite: bool = True) -> _T:
    """Read JSON as an object of a certain type.

    Parameters
    ----------
    file : Path, bytes or binary file
    where : str
        What is read, for messages: the beginning of a sentence.
    kind : type
        A dataclass, or types of these, lists, dicts and plain values; what does not fit is refused by its place.
    finite : bool
        Whether a number that is not finite is refused; else NaN and Infinity are read, as Python writes them.

    Raises
    ------
    DataError
        If it is no JSON, too large, nested too deeply, has a key twice, a number that is not finite, or another form.
    """
    return typed(_parsed(read_content(file, where, copies=_JSON_COPIES), where, finite), where, kind)


def read_json_lines(content: bytes, where: str, budget: Budget, *, finite: bool = True) -> Iterator[tuple[int, object]]:
    """Read JSON values, one per line, each with the number of its line; empty lines are left out.

    Parameters
    ----------
    content : bytes
    where : str
        What is read, for messages: the beginning of a sentence.
    budget : Budget
        What a line takes while it is parsed counts here; what is kept of it, whoever keeps it counts.
    finite : bool
        As in `read_json`.

    Raises
    ------
    DataError
        If a line is no JSON, with its number, or the conditions of `read_json` are not met.
    """
    start, number = len(_MARK) if content.startswith(_MARK) else 0, 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        number += 1
        line = content[start:end]
        start = end + 1
        if line.strip():
            budget.take(_JSON_COPIES * len(line), f"line {number:,}")
            budget.give(_JSON_COPIES * len(line))
            yield number, _parsed(line, f"{where}, line {number:,}", finite)


def _parsed(content: bytes, where: str, finite: bool) -> object:
    """Return the plain values that JSON says."""
    try:
        text = content.decode("utf-8-sig")  # of bytes the library would guess the encoding
        constant, number = (_refuse, _finite) if finite else (float, float)
        plain = json.loads(text, object_pairs_hook=_once, parse_constant=constant, parse_float=number)
        _check_depth(plain)
        if b"\\u" in content:
            # Half a character cannot be written again: nobody wants it.
            json.dumps(plain, ensure_ascii=False).encode()
    except (ValueError, RecursionError, OverflowError) as error:
        raise DataError(f"{where} cannot be read as JSON ({error}).") from error
    return plain


def read_toml(file: File, where: str) -> dict[str, object]:
    """Read a small TOML file as plain values.

    Parameters
    ----------
    file : Path, bytes or binary file
    where : str
        What is read, for messages: the beginning of a sentence.

    Raises
    ------
    DataError
        If it is no TOML, too large, nested too deeply, or has a number that is not finite.
    """
    text = read_text(file, where)
    if len(text) > _MOST_TOML:
        raise DataError(f"{where} has {len(text):,} characters; expected at most {_MOST_TOML:,}.")
    try:
        table = tomllib.loads(text, parse_float=_finite)
        _check_depth(table)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} cannot be read as TOML ({str(error)[:_MOST_SAID]}).") from error
    return table


def typed(plain: object, where: str, kind: type[_T]) -> _T:
    """Return plain values as an object of a certain type; raise `DataError` where they do not fit."""
    try:
        return msgspec.convert(plain, kind)
    except (msgspec.ValidationError, ValueError, RecursionError, OverflowError) as error:
        raise DataError(f"{where} is not of the form expected: {str(error)[:_MOST_SAID].rstrip('.')}.") from error


def _check_depth(plain: object) -> None:
    level = [plain]
    for _ in range(_MOST_NESTED):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {_MOST_NESTED} deep")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a key comes twice in one object")
    return entries


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no finite number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse(text[:60])
    return number
