"""Where the library lies on disk, and how much of it there is."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from idc_core.errors import DataError
from idc_core.files import cache_folder

FOLDER = ".d"
"""Ending of contents that are folders."""

_MOST_FILES = 200_000
"""Files of a folder that are looked at."""


def library_folder() -> Path:
    """Return the folder of the library; it need not exist."""
    return cache_folder() / "library"


def entries_folder() -> Path:
    """Return the folder of the entries, one JSON file each."""
    return library_folder() / "entries"


def contents_folder() -> Path:
    """Return the folder of what was uploaded, by content."""
    return library_folder() / "contents"


def content_path(content: str) -> Path:
    """Return where a content is read from: a folder, or a file alone in one: no reader finds others beside it."""
    place = contents_folder() / content
    return place if content.endswith(FOLDER) else place / content


def used() -> int:
    """Return the bytes of all uploads, unfinished ones included."""
    return _folder_size(contents_folder())


def _folder_size(folder: Path) -> int:
    """Return the bytes of all files below a folder; 0 where it is not there."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).lstat().st_size
            except FileNotFoundError:  # another process has just finished or removed it
                continue
    return total


def measure(path: Path) -> tuple[int, str]:
    """Return the bytes of a file or folder, and a digest of its names, sizes and times.

    Raises
    ------
    DataError
        If it is gone, cannot be read, is a pipe or a device, or holds too many files.
    """
    try:
        mode = path.stat()
        if stat.S_ISREG(mode.st_mode):
            return mode.st_size, _digest([("", mode.st_size, mode.st_mtime_ns)])
        if not stat.S_ISDIR(mode.st_mode):
            raise DataError(f"{path} is a pipe or a device; expected a file or a folder.")
        found = []
        for parent, _, names in os.walk(path):
            for name in names:
                file = Path(parent) / name
                one = file.lstat()
                found.append((str(file.relative_to(path)), one.st_size, one.st_mtime_ns))
                if len(found) > _MOST_FILES:
                    raise DataError(f"{path} holds more than {_MOST_FILES:,} files; name a smaller folder.")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataError(f"{str(path)!r} is no name of a file.") from error
    return sum(size for _, size, _ in found), _digest(sorted(found))


def _digest(files: list[tuple[str, int, int]]) -> str:
    return hashlib.blake2b(repr(files).encode(errors="surrogateescape"), digest_size=8).hexdigest()
