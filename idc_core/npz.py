"""Arrays of npz and npy files, from people and from our own cache: checked by their headers, never unpickled."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError

MOST_BYTES = 2 << 30
"""Size of one array, in bytes once read, that is not refused."""

_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError, NotImplementedError)

File = Path | bytes | BinaryIO


def read_arrays(file: File, where: str, wanted: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read arrays of an npz file; their size is known from their headers before anything is read.

    Parameters
    ----------
    file : Path, bytes or binary file
    where : str
        What holds the arrays, for messages: the beginning of a sentence.
    wanted : sequence of str, optional
        Their names; default all that there are.

    Raises
    ------
    DataError
        If it is no such file, lacks an array, holds pickled objects or more than `MOST_BYTES`.
    """
    with _opened(file, where) as archive:
        there = _names(archive)
        names = there if wanted is None else wanted
        missing = [name for name in names if name not in there]
        if missing:
            raise DataError(
                f"{where} lacks {' and '.join(missing)}: expected an npz file with the arrays {' and '.join(names)}, "
                f"found {', '.join(there) or 'nothing'}."
            )
        return {name: _member(archive, name, where) for name in names}


def array_names(file: File, where: str) -> list[str]:
    """Return the names of the arrays in an npz file; raise `DataError` where it is none."""
    with _opened(file, where) as archive:
        return _names(archive)


def read_text(file: File, name: str, where: str) -> str:
    """Return a text that lies beside the arrays of an npz file; raise `DataError` where there is none."""
    with _opened(file, where) as archive:
        if name not in archive.namelist():
            raise DataError(f"{where} has no member {name}.")
        return archive.read(name).decode("utf-8")


def read_array(content: bytes, where: str) -> NDArray[Any]:
    """Read an npy file; raise `DataError` where it is none, holds pickled objects or more than `MOST_BYTES`."""
    if content.startswith(b"PK"):
        raise DataError(f"{where} holds several arrays; save a single one with numpy.save.")
    try:
        return _read(io.BytesIO(content), len(content), where)
    except (DataError, *_DAMAGED) as error:
        raise DataError(f"{where} is no NumPy array ({error}); save one with numpy.save.") from error


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the content of a compressed npz file."""
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return content.getvalue()


@contextmanager
def _opened(file: File, where: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(io.BytesIO(file) if isinstance(file, bytes) else file) as archive:
            yield archive
    except _DAMAGED as error:
        raise DataError(f"{where} is no npz file, or is damaged ({error}): write it again with numpy.savez.") from error


def _names(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist()]


def _member(archive: zipfile.ZipFile, name: str, where: str) -> NDArray[Any]:
    member = archive.getinfo(f"{name}.npy" if f"{name}.npy" in archive.namelist() else name)
    with archive.open(member) as stream:
        return _read(stream, member.file_size, f"{where}: {name}")


def _read(stream: Any, most: int, where: str) -> NDArray[Any]:
    """Read one array of a file of at most so many bytes."""
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, kind = header(stream)
    if kind.hasobject:
        raise DataError(f"{where} holds Python objects, which are not read; expected an array of numbers.")
    size = math.prod(shape) * kind.itemsize
    if size > MOST_BYTES:
        raise DataError(f"{where} holds {size:,} bytes; at most {MOST_BYTES:,} are read.")
    # What a header promises is not reserved before the file is known to be as long.
    content = bytearray(size if size <= most else 0)
    read = stream.readinto(content)
    if read != size:
        raise DataError(f"{where} ends early, after {min(most, max(read, 0)):,} of {size:,} bytes; write it again.")
    array: NDArray[Any] = np.frombuffer(content, kind)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
