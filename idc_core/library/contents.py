"""What was uploaded, by content: the SHA-256 of a file is its name, so that the same file is kept once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from idc_core.base.config import config, config_file
from idc_core.base.files import cache_folder, keeping, partial_file, partial_folder
from idc_core.base.progress import Progress, report
from idc_core.errors import DataError
from idc_core.guarded import open_archive

FOLDER = ".d"
"""Ending of contents that are folders."""

_BLOCK = 1 << 20
_EXPANSION = 100
"""How many times its size a zip file may take once it is unpacked."""


def contents_folder() -> Path:
    """Return the folder of what was uploaded, by content; it need not exist."""
    return cache_folder() / "library" / "contents"


def used() -> int:
    """Return the bytes of all uploads, unfinished ones included; 0 where there are none."""
    return _bytes_below(contents_folder())


def _bytes_below(place: Path) -> int:
    """Return the bytes of a file, or of all files of a folder; what another process has just removed counts not."""
    total = 0
    with suppress(FileNotFoundError):
        total += 0 if place.is_dir() else place.lstat().st_size
    for parent, _, names in os.walk(place):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(parent) / name).lstat().st_size
    return total


def size(content: str) -> int:
    """Return the bytes of one content; 0 where it is missing."""
    return _bytes_below(contents_folder() / content)


@dataclass(frozen=True)
class _Room:
    """Bytes that are left for an upload: in the library, and of what its owner may keep, where that is bounded."""

    library: int
    own: int | None = None

    def check(self, name: str, size: int) -> None:
        """Raise `DataError` where an upload of a size does not fit."""
        rooms = ((self.library, "the library has", "library_mib"), (self.own, "you have", "person_mib"))
        for left, whose, limit in rooms:
            if left is not None and size > left:
                most = getattr(config(), limit)
                raise DataError(
                    f"{name} does not fit: {whose} {max(0, left):,} bytes left of {most:,} MiB. Delete uploads that "
                    f"are no longer needed, add files by path, or raise {limit} in the section limits of "
                    f"{config_file().name}."
                )


@contextmanager
def received(
    stream: BinaryIO, name: str, ending: str, own_room: int | None, on_progress: Progress | None
) -> Iterator[tuple[str, Path]]:
    """Write a stream of bytes into the library; yield what the content is called, and its folder, still hidden.

    `ending` is `FOLDER` where a zip file is to be unpacked, `own_room` the bytes that its owner may still keep, where
    there is such a limit. What the block does not `place` is gone at its end.

    Raises
    ------
    DataError
        If it is empty, larger than an upload may be, or more than there is room for.
    """
    folder = contents_folder()
    with keeping(folder, "The upload"), partial_file(folder) as partial:
        content = _written(stream, name, partial, _Room(config().library - used(), own_room), on_progress) + ending
        with partial_folder(folder) as place_:
            inner = Path(place_) / "content"
            inner.mkdir()
            if ending == FOLDER:
                inner = _unpacked(partial, name, inner, _Room(config().library - used(), own_room))
            else:
                partial.replace(inner / content)
            yield content, inner


def place(content: str, hidden: Path) -> None:
    """Give what was received its name; where the same content is there already, that one stays."""
    path = contents_folder() / content
    if not path.exists():
        hidden.replace(path)


def remove(content: str) -> None:
    """Remove a content: hidden first, so that whoever is killed meanwhile leaves nothing that looks whole."""
    path = contents_folder() / content
    with partial_folder(path.parent) as place_:
        path.replace(Path(place_) / content)


def _written(stream: BinaryIO, name: str, partial: Path, room: _Room, on_progress: Progress | None) -> str:
    """Write a stream block by block and return its SHA-256."""
    most, digest, size = config().upload, hashlib.sha256(), 0
    with partial.open("wb") as file:
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > most:
                raise DataError(
                    f"{name} is larger than {config().upload_mib:,} MiB, the most that can be uploaded. Add it by its "
                    f"path, or raise upload_mib in the section limits of {config_file().name}."
                )
            room.check(name, size)
            digest.update(block)
            file.write(block)
            report(on_progress, size, 0, "bytes received")
    if not size:
        raise DataError(f"{name} is empty; upload it again.")
    return digest.hexdigest()


def _unpacked(file: Path, name: str, inner: Path, room: _Room) -> Path:
    """Unpack a zip file into a folder and return it; the one inside where the zip file holds nothing else."""
    with open_archive(file, name, expansion=_EXPANSION) as archive:
        room.check(name, sum(map(archive.size, archive.names)))
        archive.unpack(inner)
    held = list(inner.iterdir())
    return held[0] if len(held) == 1 and held[0].is_dir() else inner
