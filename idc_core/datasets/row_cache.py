"""Rows of bytes on disk that are made when they are first asked for, each with its checksum.

A folder of two sparse files: `rows`, one row after the other, and `digests`, 16 bytes of BLAKE2b and 4 of CRC-32 for
each. A row is written before its digest, so whatever a killed process, a full disk or another program leaves is a row
that does not have its digest: it counts as absent. Plain reads, no mapping: mapped pages would count as the
process's memory, and a file that is cut off would end the process.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.base.files import keeping
from idc_core.errors import DataError
from idc_core.guarded import opened

_MOST = 20 << 30
"""Bytes of all rows on disk; above it the folders go that were not used for longest."""

_DIGEST, _CHECK = 16, 4
_ENTRY = _DIGEST + _CHECK
_SPARE = 256 << 20
# Never through a link, and without waiting where a pipe lies; the flags do not exist everywhere.
_FLAGS = os.O_WRONLY | os.O_CREAT | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))

Put = Callable[[int, NDArray[np.uint8]], None]


class RowCache:
    """Rows of one length in a folder.

    Parameters
    ----------
    folder : Path
        Named after everything that the rows follow from.
    count : int
        Rows that there are at most.
    length : int
        Bytes of a row.
    """

    def __init__(self, folder: Path, count: int, length: int) -> None:
        self.folder, self.count, self.length = folder, count, length

    def digests(self) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Return the digest of every row, uint8 (count, 16), and whether it is there, bool (count,)."""
        empty = np.zeros((self.count, _DIGEST), np.uint8), np.zeros(self.count, bool)
        path = self.folder / "digests"
        if not os.path.lexists(path):
            return empty
        try:
            with opened(path, str(path)) as stream:
                content = stream.read(self.count * _ENTRY)
        except (DataError, OSError):
            return empty
        entries = np.frombuffer(content[: len(content) // _ENTRY * _ENTRY], np.uint8).reshape(-1, _ENTRY)
        digests, there = empty
        digests[: len(entries)] = entries[:, :_DIGEST]
        for row in np.flatnonzero(entries.any(1)).tolist():
            there[row] = _entry(digests[row].tobytes(), row) == entries[row].tobytes()
        return digests, there

    def read(self, rows: NDArray[np.int64], digests: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Return some rows, uint8 (k, length), and which of them have the digests (k, 16) that they should have."""
        contents = np.zeros((len(rows), self.length), np.uint8)
        good = np.zeros(len(rows), bool)
        path = self.folder / "rows"
        try:
            with opened(path, str(path)) as stream:
                for at, row in enumerate(rows.tolist()):
                    stream.seek(row * self.length)
                    stream.readinto(contents[at].data)  # type: ignore[attr-defined]
                    good[at] = digest(contents[at]) == digests[at].tobytes()
        except (DataError, OSError):
            pass  # what could not be read has not its digest
        return contents, good

    @contextmanager
    def writing(self, more: int) -> Iterator[Put]:
        """Give a function that keeps a row, for several threads; `more` rows are about to come.

        Raises
        ------
        DataError
            If the disk or the limit has no room for them.
        """
        with keeping(self.folder, "Decoded pictures"):
            self._check_room(more)
            lock = threading.Lock()
            with _to_write(self.folder / "rows") as rows, _to_write(self.folder / "digests") as entries:

                def put(row: int, values: NDArray[np.uint8]) -> None:
                    content = np.ascontiguousarray(values).reshape(-1)
                    entry = _entry(digest(content), row)
                    with lock:
                        os.lseek(rows, row * self.length, os.SEEK_SET)
                        _write(rows, content.data)
                        os.lseek(entries, row * _ENTRY, os.SEEK_SET)
                        _write(entries, memoryview(entry))

                yield put

    def used(self) -> None:
        """Note that it is used, so that it is kept longer than others."""
        if self.folder.is_dir():
            os.utime(self.folder)

    def _check_room(self, more: int) -> None:
        """Make room for rows, and refuse where there is none."""
        needed = more * self.length
        if needed > _MOST:
            raise DataError(
                f"{more:,} pictures would take {needed:,} bytes on disk once decoded; at most {_MOST:,} are kept. Take "
                "fewer inputs, or make the pictures smaller by the size of the preparation."
            )
        _make_room(self.folder, needed)
        free = shutil.disk_usage(self.folder).free
        if needed + _SPARE > free:
            raise DataError(
                f"{more:,} pictures would take {needed:,} bytes on disk once decoded, and {free:,} are free in "
                f"{self.folder.parent}: make room there, or name another folder by the environment variable IDC_HOME."
            )


def digest(content: NDArray[np.uint8]) -> bytes:
    """Return the 16 bytes that tell a row from others."""
    return hashlib.blake2b(content.data, digest_size=_DIGEST).digest()


def _entry(content: bytes, row: int) -> bytes:
    """Return a row's entry: its digest, and a checksum of digest and number."""
    return content + zlib.crc32(content + row.to_bytes(8, "little")).to_bytes(_CHECK, "little")


@contextmanager
def _to_write(path: Path) -> Iterator[int]:
    """Open a file to be written anywhere."""
    number = os.open(path, _FLAGS, 0o600)
    try:
        yield number
    finally:
        os.close(number)


def _write(number: int, content: memoryview) -> None:
    done = 0
    while done < len(content):
        done += os.write(number, content[done:])


def _make_room(folder: Path, needed: int) -> None:
    """Remove the folders beside one that were not used for longest, until all take at most `_MOST` bytes."""
    sizes = {}
    for cache in folder.parent.iterdir():
        try:
            sizes[cache] = cache.stat().st_mtime_ns, (cache / "rows").stat().st_blocks * 512
        except OSError:  # no such folder, or another process makes room
            continue
    total = needed + sum(size for _, size in sizes.values())
    for cache in sorted(sizes, key=lambda path: sizes[path][0]):
        if total <= _MOST:
            break
        if cache != folder:
            shutil.rmtree(cache, ignore_errors=True)
            total -= sizes[cache][1]
