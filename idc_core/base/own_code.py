"""A person's own code: its mistakes told by file and line, and the files that it consists of."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from idc_core.errors import IdcError

_Result = TypeVar("_Result")

next_registration = itertools.count(1).__next__
"""Number of the next registration: an entry that is registered again is another edition."""

_OURS = ("idc_core", "studio", "pages", "app")
_INSTALLED = ("site-packages", "dist-packages", "node_modules")


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
    try:
        return work()
    except IdcError:
        raise
    except (Exception, SystemExit) as error:
        text = (str(error.msg) if isinstance(error, SyntaxError) else str(error)).strip().splitlines()
        reason = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
        raise kind(f"{_place(error, file)}: {doing} failed: {reason.rstrip('.')}.") from error


def _place(error: BaseException, file: str) -> str:
    """Return file and line of a mistake: of the person's file, or of the file that cannot be read as Python."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    line = _line(error.__traceback__, file)
    return file if line is None else f"{file}, line {line}"


def _line(trace: TracebackType | None, file: str) -> int | None:
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


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


def own_modules(file: Path) -> dict[str, Path]:
    """Return the loaded modules that lie in the folder of a person's file or below, by name; no installed ones."""
    folder = f"{file.parent}/"
    modules = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__dict__", {}).get("__file__")
        if not isinstance(path, str) or not path.startswith(folder) or name.split(".")[0] in _OURS:
            continue
        parts = path.removeprefix(folder).split("/")
        if not any(part in _INSTALLED or part.startswith(".") for part in parts):
            modules[name] = Path(path)
    return modules


def code_digest(function: Callable[..., object]) -> str:
    """Return 16 hexadecimal digits that change when the code around a function does: its file, and those beside it.

    What holds a live object tells it as the attribute `digest`.
    """
    if (known := getattr(function, "digest", None)) is not None:
        return str(known)
    if hasattr(function, "path"):
        return ""  # no code, and the weights say it all
    file = Path(source_of(function)[0])
    digest = hashlib.sha256()
    for path in sorted({file, *own_modules(file).values()}):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
