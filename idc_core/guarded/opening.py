"""Opening a file from outside: a regular file and nothing else, of a size that is known before it is read."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from idc_core.errors import DataError
from idc_core.guarded.budget import Budget

File = Path | bytes | BinaryIO
"""A path, the content of a file, or an opened file that can seek."""

_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
# A pipe without a writer must not hold up whoever opens it; the flag does not exist everywhere.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def opened(file: File, where: str) -> Iterator[BinaryIO]:
    """Open a file for reading; an opened one is begun anew and stays open.

    Raises
    ------
    DataError
        If it is absent, cannot be read, or is a folder, a pipe or a device. `where` begins the sentence.
    """
    if isinstance(file, bytes):
        yield io.BytesIO(file)
    elif isinstance(file, Path):
        with _open(file, where) as stream:
            yield stream
    else:
        file.seek(0)
        yield file


def _open(path: Path, where: str) -> BinaryIO:
    try:
        number = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{where} cannot be read: {reason}.") from error
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(number, "rb")
    os.close(number)
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")
    raise DataError(f"{where} is {kind}; expected a file.")


def size_of(stream: BinaryIO) -> int:
    """Return the bytes of an opened file, which is then at its beginning."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    return size


def read_content(file: File, where: str, budget: Budget | None = None, *, copies: int = 1) -> bytes:
    """Return the whole content of a file.

    Parameters
    ----------
    file : Path, bytes or binary file
    where : str
        What is read, for messages: the beginning of a sentence.
    budget : Budget, optional
        Default a new one.
    copies : int
        How many times the file's size is held once it is parsed.

    Raises
    ------
    DataError
        If it cannot be read, or would take more memory than is allowed.
    """
    budget = budget or Budget(where)
    with opened(file, where) as stream:
        size = size_of(stream)
        budget.take(size * copies, "its content")
        try:
            content = stream.read(size)
        except OSError as error:
            raise DataError(f"{where} cannot be read: {error.strerror}.") from error
    if len(content) != size:
        raise DataError(f"{where} changed while it was read; read it again.")
    return content
