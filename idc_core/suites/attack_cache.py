"""Attacked blocks on disk, so that what took minutes is made once, and an interrupted suite goes on where it stopped.

In the folder "suites" of the cache (IDC_HOME, or the platform's cache folder), one npz file a block, without pickles.
A file's name is the SHA-256 of everything its content follows from: the inputs themselves, their classes and numbers,
the network's weights, recipe, settings and seed. So nothing in it is ever out of date, test sets of which one is the
beginning of the other share their blocks, and the folder may be deleted at any time. Above `LIMIT` bytes the files
that were not used for longest go.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.files import cache_folder, keeping, write_whole

LIMIT = 1 << 30
"""Bytes that all files together may take."""

KEPT = 0.8
"""Share of `LIMIT` that is left when old files go."""


def kept(inputs: NDArray[Any], key: object, make: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return a block from disk, or make and keep it.

    Parameters
    ----------
    inputs : ndarray (k, ...)
        What the block is made of; it has the same shape.
    key : object
        Everything else that the block follows from, as Python writes it.
    make : callable
        Makes the block.

    Returns
    -------
    ndarray, float32 (k, ...)

    Raises
    ------
    DataError
        If the block cannot be written.
    """
    digest = hashlib.sha256(repr((key, inputs.dtype.str, inputs.shape)).encode())
    digest.update(np.ascontiguousarray(inputs).data)
    path = cache_folder() / "suites" / f"{digest.hexdigest()[:32]}.npz"
    found = _read(path, inputs.shape)
    if found is None:
        found = make()
        _write(path, found)
    return found


def _read(path: Path, shape: tuple[int, ...]) -> NDArray[np.float32] | None:
    """Return the block in a file; None where there is no such file, or it was damaged from outside."""
    try:
        with np.load(path, allow_pickle=False) as file:
            block: NDArray[np.float32] = file["inputs"]
        os.utime(path)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    return block if block.shape == shape and block.dtype == np.float32 else None


def _write(path: Path, block: NDArray[np.float32]) -> None:
    """Write a file whole or not at all, and make room for it."""
    content = io.BytesIO()
    np.savez_compressed(content, inputs=block)
    with keeping(path.parent, "The attacked inputs"):
        _make_room(path.parent, content.tell())
        write_whole(path, content.getvalue())


def _make_room(folder: Path, size: int) -> None:
    files = []
    for path in folder.glob("*.npz"):
        try:
            files.append((path.stat(), path))
        except FileNotFoundError:  # another process made room
            continue
    total = size + sum(stat.st_size for stat, _ in files)
    if total <= LIMIT:
        return
    for stat, path in sorted(files, key=lambda one: one[0].st_mtime):
        path.unlink(missing_ok=True)
        total -= stat.st_size
        if total <= KEPT * LIMIT:
            break
