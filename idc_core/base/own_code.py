"""A person's own code: its mistakes told by file and line, and the files that it consists of."""

from __future__ import annotations

import itertools
import os
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from idc_core.base.own_modules import at_home, is_own
from idc_core.errors import IdcError

_Result = TypeVar("_Result")

next_registration = itertools.count(1).__next__
"""Number of the next registration: an entry that is registered again is another edition."""


def run_own(doing: str, file: str, work: Callable[[], _Result], kind: type[IdcError]) -> _Result:
    """Run a person's code.

    Parameters
    ----------
    doing : str
        What it does, for the message, as "building the network 'x'".
    file : str
        File that the message names; its last line on the way to the mistake is the line.
    work : callable
        Runs the code and returns its result.
    kind : type
        The error to raise.

    Raises
    ------
    IdcError
        Of that kind, with file, line and the mistake in a sentence; mistakes explained by the engine as they are.
    """
    at_home(file)
    try:
        return work()
    except IdcError:
        raise
    except BaseException as error:
        if not is_mistake(error):
            raise
        raise kind(f"{_place(error, file)}: {doing} failed: {said(error)}.") from error


def is_mistake(error: BaseException) -> bool:
    """Whether an exception is one of a person's code; not Ctrl-C, nor what the dashboard stops a script with.

    Code that ends the program, as `sys.exit()` does, has reached no result: that is a mistake like any other.
    """
    if isinstance(error, Exception | SystemExit | GeneratorExit):
        return True
    return not isinstance(error, KeyboardInterrupt) and any(is_own(file) for file, _ in _lines(error)[-1:])


def said(error: BaseException) -> str:
    """Return the kind of an exception and the first line of its text, where it has one that can be had."""
    kind = type(error).__name__
    try:
        text = str(error.msg) if isinstance(error, SyntaxError) else str(error)
    except BaseException as another:  # the text is a person's code, too
        if not is_mistake(another):
            raise
        return f"{kind}, whose text cannot be had ({type(another).__name__})"
    lines = text.strip().splitlines()
    return f"{kind}: {lines[0].rstrip('.')}" if lines else kind


def explained(error: BaseException) -> str:
    """Return an exception as a sentence; empty for a mistake of this program, and for what `is_mistake` leaves out."""
    if isinstance(error, IdcError):
        return str(error)
    cause: BaseException | None = error if is_mistake(error) else None
    while cause is not None:
        own = [f"{file}, line {line}" for file, line in _lines(cause) if is_own(file)]
        if own:
            return f"{own[-1]}: this code failed: {said(error)}."
        cause = cause.__cause__ or cause.__context__
    return ""


def _lines(error: BaseException) -> list[tuple[str, int]]:
    """Return files and lines on the way to an exception."""
    return [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]


def _place(error: BaseException, file: str) -> str:
    """Return file and line of a mistake: of the person's file, or of the file that cannot be read as Python."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    lines = [line for own, line in _lines(error) if own == file]
    return f"{file}, line {lines[-1]}" if lines else file


def source_of(function: Callable[..., object]) -> tuple[str, int]:
    """Return the file and the line in which a function begins; its own name and 0 where it has no file.

    What is read from a file that holds no code has that file as the attribute `path`, and no line.
    """
    if (path := getattr(function, "path", None)) is not None:
        return str(path), 0
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else (repr(function), 0)


def said_source(function: Callable[..., object]) -> str:
    """Say where a function is, as "my_setup.py, line 12"."""
    file, line = source_of(function)
    return f"{file}, line {line}" if line else file


def looks_like_path(name: str) -> bool:
    """Whether a name that no registry has is meant as a path: it has an ending, a folder, or is there."""
    return bool(name) and ("/" in name or "." in name or os.path.exists(name))  # noqa: PTH110 (a name may be too long)


def is_url(place: Path | str) -> bool:
    """Whether a text is a URL, such as s3://bucket/tests.npz; a `Path` never is."""
    return re.match(r"[A-Za-z][\w+.-]+://.", str(place)) is not None


def name_after(path: Path) -> str:
    """Return the name that is made of a file's, of small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:40] or "unnamed"


def free_name(path: Path, registry: Mapping[str, object]) -> str:
    """Return a name after a file that no entry from elsewhere has: with a number where it is taken."""
    first = name_after(path)
    names = (first if number == 1 else f"{first}-{number}" for number in itertools.count(1))
    return next(name for name in names if name not in registry or getattr(registry[name], "file", "") == str(path))
