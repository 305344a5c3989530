"""What was uploaded, by content: the SHA-256 of a file is its name, so that the same file is kept once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    total = 0
    for parent, _, names in os.walk(contents_folder()):
        for name in names:
            with suppress(FileNotFoundError):  # another process has just finished or removed it
                total += (Path(parent) / name).lstat().st_size
    return total


@contextmanager
def received(stream: BinaryIO, name: str, ending: str, on_progress: Progress | None) -> Iterator[tuple[str, Path]]:
    """Write a stream of bytes into the library; yield what the content is called, and its folder, still hidden.

    `ending` is `FOLDER` where a zip file is to be unpacked. What the block does not `place` is gone at its end.

    Raises
    ------
    DataError
        If it is empty, larger than an upload may be, or more than there is room for.
    """
    folder = contents_folder()
    with keeping(folder, "The upload"), partial_file(folder) as partial:
        content = _written(stream, name, partial, on_progress) + ending
        with partial_folder(folder) as place_:
            inner = Path(place_) / "content"
            inner.mkdir()
            if ending == FOLDER:
                inner = _unpacked(partial, name, inner)
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


def _written(stream: BinaryIO, name: str, partial: Path, on_progress: Progress | None) -> str:
    """Write a stream block by block and return its SHA-256."""
    most, digest, size = config().upload, hashlib.sha256(), 0
    room = config().library - used()
    with partial.open("wb") as file:
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > most:
                raise DataError(
                    f"{name} is larger than {config().upload_mib:,} MiB, the most that can be uploaded. Add it by its "
                    f"path, or raise upload_mib in the section limits of {config_file().name}."
                )
            _check_room(name, size, room)
            digest.update(block)
            file.write(block)
            report(on_progress, size, 0, "bytes received")
    if not size:
        raise DataError(f"{name} is empty; upload it again.")
    return digest.hexdigest()


def _check_room(name: str, size: int, room: int) -> None:
    if size > room:
        raise DataError(
            f"{name} does not fit into the library, which has {max(0, room):,} bytes left of {config().library_mib:,} "
            f"MiB. Delete uploads that are no longer needed, add files by path, or raise library_mib in the section "
            f"limits of {config_file().name}."
        )


def _unpacked(file: Path, name: str, inner: Path) -> Path:
    """Unpack a zip file into a folder and return it; the one inside where the zip file holds nothing else."""
    with open_archive(file, name, expansion=_EXPANSION) as archive:
        _check_room(name, sum(map(archive.size, archive.names)), config().library - used())
        archive.unpack(inner)
    held = list(inner.iterdir())
    return held[0] if len(held) == 1 and held[0].is_dir() else inner
