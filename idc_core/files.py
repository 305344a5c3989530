"""Files that appear whole or not at all, and the folder of what is made on this computer."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import platformdirs

from idc_core.errors import DataError


def cache_folder() -> Path:
    """Return the folder of downloads and of finished work: IDC_HOME, or the platform's cache folder of "idc-studio"."""
    value = os.environ.get("IDC_HOME", "")
    return Path(value).expanduser() if value else platformdirs.user_cache_path("idc-studio")


# Which machine a partial file belongs to: a folder may be shared, and numbers of processes are each machine's own.
_OWNER = hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()
_SUFFIX = ".partial"
_PARTIAL = re.compile(r"\.([0-9a-f]{8})-([0-9]{1,10})-[0-9a-z_]{8,16}\.partial")
_STALE_SECONDS = 24 * 3600


def sweep() -> list[Path]:
    """Remove partial files and folders that killed processes left in the cache folder; return them.

    Those of this machine go when their process has gone, those of others when they are a day old.
    """
    gone = []
    for folder, folders, names in os.walk(cache_folder()):
        for name in folders + names:
            if (found := _PARTIAL.fullmatch(name)) and _abandoned(Path(folder) / name, found[1], int(found[2])):
                gone.append(Path(folder) / name)
    for path in gone:
        with suppress(OSError):  # another process sweeps too, or the folder cannot be written to
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return gone


def _prefix() -> str:
    return f".{_OWNER}-{os.getpid()}-"


def partial_folder(parent: Path) -> TemporaryDirectory[str]:
    """Make a folder for work in progress, which `sweep` removes where this process was killed."""
    return TemporaryDirectory(prefix=_prefix(), suffix=_SUFFIX, dir=parent)


def _abandoned(path: Path, owner: str, process: int) -> bool:
    try:
        if owner == _OWNER and os.name == "posix":
            os.kill(process, 0)
            return False
        return time.time() - path.stat().st_mtime > _STALE_SECONDS
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # it is another user's, or has just gone
        return False


@contextmanager
def partial_file(folder: Path) -> Iterator[Path]:
    """Name a hidden file, to be written and renamed within its folder; what was not renamed is gone at the end."""
    path = folder / f"{_prefix()}{secrets.token_hex(8)}{_SUFFIX}"
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
