"""Folders that may be hostile: no link leads out of them, and only regular files are opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from idc_core.errors import DataError
from idc_core.guarded.budget import Budget
from idc_core.guarded.opening import opened, read_content

# What Python holds of a name, its entry and its place in a few lists.
_NAME_COPIES, _NAME_BYTES = 4, 400
_DEEPEST = 16


class Folder:
    """A folder whose files have been listed, and links checked.

    Attributes
    ----------
    where : str
        What is read, for messages.
    names : tuple of str
        Its files, with "/" between folders, sorted; hidden ones are left out, and what lies in hidden folders.
    hidden : int
        Files and folders that were left out.
    """

    def __init__(self, path: Path, where: str) -> None:
        self.where = where
        self.hidden = 0
        self._root = path.resolve()
        self._budget = Budget(where)
        self._stamps: dict[str, tuple[int, int]] = {}
        try:
            self._list(path, "", 0)
        except OSError as error:
            raise DataError(f"{where} cannot be read: {error.strerror}.") from error
        self.names = tuple(sorted(self._stamps))

    def stamp(self, name: str) -> tuple[int, int]:
        """Return the bytes of a file and when it was changed, as they were when the folder was listed."""
        return self._stamps[name]

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a file of the folder."""
        with opened(self._path(name), f"{self.where}: the file {name!r}") as stream:
            yield stream

    def read(self, name: str) -> bytes:
        """Return the content of a file of the folder."""
        return read_content(self._path(name), f"{self.where}: the file {name!r}")

    def _path(self, name: str) -> Path:
        path = self._root / name
        # Again, for it may have become a link since the folder was listed.
        if name not in self._stamps or not _target(path).is_relative_to(self._root):
            raise DataError(f"{self.where}: {name!r} leads out of the folder, or is no file of it: refused.")
        return path

    def _list(self, folder: Path, before: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise DataError(f"{self.where}: {before!r} lies more than {_DEEPEST} folders deep; expected class folders.")
        with os.scandir(folder) as entries:
            for entry in entries:
                name = before + entry.name
                if entry.name.startswith(".") or entry.name == "__MACOSX":
                    self.hidden += 1
                    continue
                if entry.is_symlink() and not _target(entry.path).is_relative_to(self._root):
                    raise DataError(
                        f"{self.where}: {name!r} is a link that leads out of the folder: refused. Copy the files "
                        "themselves into it."
                    )
                if entry.is_dir(follow_symlinks=False):
                    self._list(Path(entry.path), f"{name}/", depth + 1)
                # Path's answer is False for a link that goes in a circle, and slow.
                elif entry.is_file(follow_symlinks=False) or Path(entry.path).is_file():
                    self._budget.take(_NAME_COPIES * len(name) + _NAME_BYTES, "the list of its files")
                    stat = entry.stat()
                    self._stamps[name] = stat.st_size, stat.st_mtime_ns


def _target(path: Path | str) -> Path:
    """Return where a path leads, links that go round in circles included."""
    return Path(os.path.realpath(path))
