"""Arrays that grow by rows: in memory, and past a bound of bytes in files without a name."""

from __future__ import annotations

import math
import mmap
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

import numpy as np

from idc_core.base.arrays import Array
from idc_core.base.config import config
from idc_core.base.files import cache_folder, keeping

_BLOCK = 8 << 20
"""Bytes that are read from a file at a time."""


class GrowingArrays:
    """Arrays by name, each of which grows by rows of one shape and type.

    Past `most` bytes together (default: ``activations_mib`` of the config file) all of them lie in files in the cache
    folder. A file has no name there: its space is free again when its array is no longer used, and when the process
    ends, however it ends.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = config().activations if most is None else most
        self._held = 0
        self._parts: dict[Hashable, _Blocks] = {}
        self._files: dict[Hashable, _File] = {}
        self._on_disk = False

    def append(self, name: Hashable, rows: Array) -> None:
        """Add rows (k, ...) to an array.

        Raises
        ------
        DataError
            If they have to go to disk, and cannot be written there.
        """
        if self._on_disk:
            self._write(name, rows)
            return
        self._parts.setdefault(name, _Blocks(rows)).add(rows)
        self._held += rows.nbytes
        if self._held > self._most:
            self._on_disk = True
            for key in list(self._parts):
                for block in self._parts.pop(key).filled():
                    self._write(key, block)

    def blocks(self, name: Hashable) -> Iterator[Array]:
        """Yield the rows of an array in their order, a few megabytes at a time where they are on disk."""
        if self._on_disk:
            yield from self._files[name].blocks()
        else:
            yield from self._parts[name].filled()

    def joined(self, name: Hashable) -> Array:
        """Return an array, read-only: in memory, or mapped from its file."""
        array = self._files[name].mapped() if self._on_disk else np.concatenate(self._parts[name].filled())
        array.setflags(write=False)
        return array

    def drop(self, name: Hashable) -> None:
        """Forget an array."""
        self._parts.pop(name, None)
        self._files.pop(name, None)

    def _write(self, name: Hashable, rows: Array) -> None:
        with keeping(cache_folder(), "Activations that memory has no room for"):
            if name not in self._files:
                self._files[name] = _File(rows)
            self._files[name].write(rows)


class ShelvedRows:
    """Rows by name, put here part by part and taken once.

    Past ``activations_mib`` of the config file they lie in one file in the cache folder, which has no name there and is
    gone when everything is taken, or with this object.
    """

    def __init__(self) -> None:
        self._most, self._held = config().activations, 0
        self._parts: dict[Hashable, list[Array | _Place]] = {}
        self._stream: IO[bytes] | None = None

    def __contains__(self, name: Hashable) -> bool:
        return name in self._parts

    def put(self, name: Hashable, rows: Array) -> None:
        """Add rows (k, ...) of a name.

        Raises
        ------
        DataError
            If they have to go to disk, and cannot be written there.
        """
        parts = self._parts.setdefault(name, [])
        if self._held + rows.nbytes <= self._most:
            self._held += rows.nbytes
            parts.append(rows.copy())  # a view would keep all that it is a part of
            return
        with keeping(cache_folder(), "Activations that memory has no room for"):
            if self._stream is None:
                self._stream = TemporaryFile(dir=cache_folder())  # noqa: SIM115  # it lives as long as its rows
            start = self._stream.seek(0, 2)
            self._stream.write(np.ascontiguousarray(rows).data)
        parts.append(_Place(start, rows.shape, rows.dtype))

    def take(self, name: Hashable) -> Iterator[Array]:
        """Yield the rows of a name as they were put here, and forget them; none of a name that is not here."""
        for part in self._parts.pop(name, ()):
            if isinstance(part, np.ndarray):
                self._held -= part.nbytes
                yield part
            elif self._stream is not None:
                self._stream.seek(part.start)
                yield np.fromfile(self._stream, part.dtype, math.prod(part.shape)).reshape(part.shape)
        if not self._parts and self._stream is not None:
            self._stream.close()
            self._stream = None


@dataclass(frozen=True)
class _Place:
    """Where in a file an array lies."""

    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


class _Blocks:
    """Rows in few arrays, each twice as large as the one before, up to `_BLOCK` bytes.

    Small ones, held between the larger ones of a pass that come and go, would keep the memory of those from being
    freed.
    """

    def __init__(self, like: Array) -> None:
        self._blocks, self._used = [np.empty((0, *like.shape[1:]), like.dtype)], 0
        self._most = _rows_of_block(like.shape[1:], like.dtype)

    def add(self, rows: Array) -> None:
        while len(rows):
            last = self._blocks[-1]
            if self._used == len(last):
                size = min(max(len(rows), 2 * len(last)), self._most)
                last, self._used = np.empty((size, *last.shape[1:]), last.dtype), 0
                self._blocks.append(last)
            some = rows[: len(last) - self._used]
            last[self._used : self._used + len(some)] = some
            self._used, rows = self._used + len(some), rows[len(some) :]

    def filled(self) -> list[Array]:
        return [*self._blocks[:-1], self._blocks[-1][: self._used]]


def _rows_of_block(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> int:
    """Return how many rows `_BLOCK` bytes hold; at least one."""
    return max(1, _BLOCK // max(1, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize))


class _File:
    """Rows of one shape and type in a file that has no name."""

    def __init__(self, like: Array) -> None:
        self._shape, self._dtype, self._rows = like.shape[1:], like.dtype, 0
        self._stream: IO[bytes] = TemporaryFile(dir=cache_folder())  # noqa: SIM115  # it lives as long as its rows

    def write(self, rows: Array) -> None:
        self._stream.write(np.ascontiguousarray(rows, self._dtype).data)
        self._rows += len(rows)

    def blocks(self) -> Iterator[Array]:
        self._stream.flush()
        length = int(np.prod(self._shape, dtype=np.int64))
        step = _rows_of_block(self._shape, self._dtype)
        for start in range(0, self._rows, step):
            self._stream.seek(start * length * self._dtype.itemsize)
            count = min(step, self._rows - start)
            yield np.fromfile(self._stream, self._dtype, count * length).reshape(count, *self._shape)
        self._stream.seek(0, 2)

    def mapped(self) -> Array:
        self._stream.flush()
        if not self._rows:
            return np.empty((0, *self._shape), self._dtype)
        return np.memmap(self._stream, self._dtype, "r", shape=(self._rows, *self._shape))


def row_blocks(array: Array) -> Iterator[tuple[int, Array]]:
    """Yield an array's rows with the number of the first of them: a mapped one in blocks, another one whole."""
    if _mapping(array) is None:
        yield 0, array
        return
    step = _rows_of_block(array.shape[1:], array.dtype)
    for start in range(0, len(array), step):
        yield start, array[start : start + step]
        give_back(array)


def give_back(array: object) -> None:
    """Let the pages of a mapped array go, which else count as this process's memory; they are read again if needed."""
    mapping = _mapping(array)
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


def _mapping(array: object) -> mmap.mmap | None:
    """Return the mapping that an array's values lie in; None where they are in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None
