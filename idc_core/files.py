"""Files that appear whole or not at all, and the folder of what is made on this computer."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from idc_core.errors import DataError


def cache_folder() -> Path:
    """Return the folder of downloads and of finished work: IDC_HOME, or the platform's cache folder of "idc-studio"."""
    value = os.environ.get("IDC_HOME", "")
    return Path(value).expanduser() if value else platformdirs.user_cache_path("idc-studio")


@contextmanager
def partial_file(folder: Path) -> Iterator[Path]:
    """Name a hidden file, to be written and renamed within its folder; what was not renamed is gone at the end."""
    path = folder / f".{secrets.token_hex(8)}.partial"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader never sees half of it; OSError, with nothing left behind, if it cannot be."""
    with partial_file(path.parent) as partial:
        partial.write_bytes(content)
        partial.replace(path)


@contextmanager
def keeping(folder: Path, what: str) -> Iterator[None]:
    """Make a folder of the cache for a block that writes into it.

    Raises
    ------
    DataError
        If that fails, saying that `what`, the beginning of a sentence, cannot be kept.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise DataError(
            f"{what} cannot be kept in {folder} ({error}): make room there, or name another folder by the environment "
            "variable IDC_HOME."
        ) from error
