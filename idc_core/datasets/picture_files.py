"""The pictures of a folder or a zip file, by name, and how their bytes are read."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from idc_core.datasets.archived_pictures import MAX_EXPANSION
from idc_core.errors import DataError
from idc_core.guarded import Archive, Folder, open_archive, picture_header
from idc_core.guarded.photos import ENDINGS

Header = tuple[int, int, bool]
"""Rows, columns, and whether it is grey."""


class PictureFiles:
    """The pictures of a folder or a zip file.

    Attributes
    ----------
    where : str
        The path, for messages.
    names : tuple of str
        Pictures by their endings, with "/" between folders, sorted.
    notes : tuple of str
        What is left out, in a few words.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)
        self._folder = Folder(path, self.where) if path.is_dir() else None
        if self._folder is not None:
            names, hidden = self._folder.names, self._folder.hidden
            stamps: object = [(name, *self._folder.stamp(name)) for name in names if is_picture(name)]
        else:
            with open_archive(path, self.where, expansion=MAX_EXPANSION) as archive:
                seen = [name for name in archive.names if not _is_hidden(name)]
                names, hidden = tuple(seen), len(archive.names) - len(seen)
            stat = path.stat()
            stamps = [stat.st_size, stat.st_mtime_ns]
        self.names = tuple(name for name in names if is_picture(name))
        self.others = tuple(name for name in names if not is_picture(name))
        self.notes = _left_out(self.others, hidden)
        self.stamp = hashlib.blake2b(repr((str(path.resolve()), stamps)).encode("utf-8", "replace")).hexdigest()

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], bytes]]:
        """Give a function from a name to the content of its file, which several threads may call."""
        if self._folder is not None:
            yield self._folder.read
            return
        lock = threading.Lock()
        with open_archive(self.path, self.where, expansion=MAX_EXPANSION) as archive:

            def read(name: str) -> bytes:
                with lock:
                    return archive.read(name)

            yield read

    def headers(self, names: list[str]) -> Iterator[tuple[str, Header]]:
        """Yield names with what the headers of their pictures say."""
        if self._folder is not None:
            yield from ((name, self._header(self._folder, name)) for name in names)
            return
        with open_archive(self.path, self.where, expansion=MAX_EXPANSION) as archive:
            yield from ((name, self._header(archive, name)) for name in names)

    def said(self, name: str) -> str:
        """Return how messages begin that speak of one picture."""
        return f"{self.where}: the picture {name!r}"

    def _header(self, place: Folder | Archive, name: str) -> Header:
        stream: IO[bytes]
        with place.open(name) as stream:
            return picture_header(stream, self.said(name))  # type: ignore[arg-type]


def is_picture(name: str) -> bool:
    """Return whether a name ends like a picture."""
    return name.lower().endswith(ENDINGS)


def _is_hidden(name: str) -> bool:
    """Return whether a name in a zip file is one that file managers leave: hidden, or in a hidden folder."""
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def _left_out(others: tuple[str, ...], hidden: int) -> tuple[str, ...]:
    """Say what is left out."""
    kinds = Counter(PurePosixPath(name).suffix.lower() or "no ending" for name in others)
    if hidden:
        kinds["hidden"] += hidden
    if not kinds:
        return ()
    text = ", ".join(f"{count:,} {kind!a}" if kind[0] == "." else f"{count:,} {kind}" for kind, count in kinds.items())
    return (f"left out, as they are no pictures: {text[:200]}",)


def no_pictures(files: PictureFiles) -> DataError:
    """Return what is said of a folder or zip file without pictures."""
    if any(PurePosixPath(name).name == "config.json" for name in files.others):
        return DataError(
            f"{files.where} holds a network (config.json) and no data: open it as the network, with --model."
        )
    return DataError(
        f"{files.where} holds no pictures ({', '.join(ENDINGS)}); expected class folders such as cat/1.png, or "
        f"train/cat/1.png and test/cat/2.png{''.join(f' ({note})' for note in files.notes)}."
    )
