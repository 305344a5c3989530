"""Files that appear whole or not at all, and the folder of what is made on this computer."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import platformdirs

from idc_core.base.parameters import shown
from idc_core.errors import DataError

_LEFT = 0.8
"""Share of a folder's limit that is left when old files go."""

_ROOT = Path(__file__).resolve().parents[1]
_INSTALLED = _ROOT / "shipped"
SHIPPED = _INSTALLED if _INSTALLED.is_dir() else _ROOT.parent
"""Folder of app.py, pages, assets and the server's settings: a wheel has them in the package, a clone at its root."""

COMMAND = "idc-studio" if _INSTALLED.is_dir() else "python -m idc_core"
"""How the command line is called; the second way works in a wheel, too, but the first one not in a clone."""

_ANOTHER_HOME = "name another folder by the environment variable IDC_HOME"


def cache_folder() -> Path:
    """Return the folder of downloads and of finished work: IDC_HOME, or the platform's cache folder of "idc-studio".

    Raises
    ------
    DataError
        If something else than a folder is there, or where it would be made.
    """
    value = os.environ.get("IDC_HOME", "")
    try:
        folder = Path(value).expanduser() if value else platformdirs.user_cache_path("idc-studio")
        if folder.is_dir():
            return folder
        stands = _standing(folder)
        mode = stands.stat().st_mode
    except (OSError, RuntimeError) as error:  # a name that is too long, a user who does not exist
        raise DataError(f"The folder {shown(value)} cannot be used ({error}): {_ANOTHER_HOME}.") from error
    if not stat.S_ISDIR(mode):
        raise DataError(f"The folder {folder} cannot be used, for {stands} is no folder: {_ANOTHER_HOME}.")
    return folder


def _standing(path: Path) -> Path:
    """Return a path itself, or what of it is there already."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


def unreadable(path: Path) -> str:
    """Say why a file cannot be read from, as the end of a sentence; empty where it is a regular file.

    A pipe or a device, on which a reader would wait or read without end, is not opened.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except ValueError:
        return "is no name of a file"
    return "" if stat.S_ISREG(mode) else f"is {_kind(mode)}, not a file"


def unwritable(path: Path) -> str:
    """Say why a file cannot be written, as the end of a sentence; empty where it can be made or replaced."""
    folder = path.absolute().parent
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:
        return f"cannot be written ({error.strerror})"
    except ValueError:
        return "is no name of a file"
    if not stat.S_ISREG(mode):
        return f"cannot be written, for it is {_kind(mode)}"
    if not folder.is_dir():
        return "cannot be written, for its folder does not exist"
    return "" if os.access(folder, os.W_OK | os.X_OK) else "cannot be written, for its folder is read-only"


def unmakeable(folder: Path) -> str:
    """Say why files cannot be written into a folder, as the end of a sentence; empty where they can."""
    try:
        stands = _standing(folder)
        is_folder = stands.is_dir()
    except OSError as error:
        return f"cannot be made ({error.strerror})"
    except ValueError:
        return "is no name of a folder"
    if not is_folder:
        return f"cannot be made, for {stands} is no folder"
    return "" if os.access(stands, os.W_OK | os.X_OK) else f"cannot be written into, for {stands} is read-only"


def _kind(mode: int) -> str:
    return "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"


# Which machine a partial file belongs to: a folder may be shared, and numbers of processes are each machine's own.
_OWNER = hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()
_SUFFIX = ".partial"
_PARTIAL = re.compile(r"\.([0-9a-f]{8})-([0-9]{1,10})-[0-9a-z_]{8,16}\.partial")
_STALE_SECONDS = 24 * 3600


def sweep() -> list[Path]:
    """Remove partial files and folders that killed processes left in the cache folder; return them.

    Those of this machine go when their process has gone, those of others when they are a day old.
    """
    return [path for folder, _, _ in os.walk(cache_folder()) for path in sweep_folder(Path(folder))]


def sweep_folder(folder: Path) -> list[Path]:
    """Remove partial files and folders from one folder, but not from those in it, as `sweep` does; return them."""
    named = [(path, _PARTIAL.fullmatch(path.name)) for path in folder.glob(f".*{_SUFFIX}")]
    gone = [path for path, match in named if match and _abandoned(path, match[1], int(match[2]))]
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


def make_room(folder: Path, pattern: str, limit: int, spared: Container[str] = ()) -> None:
    """Remove the files used longest ago until those of a pattern take at most `limit` bytes, and then some more.

    Files whose names are `spared` stay. OSError where a file cannot be removed.
    """
    files = []
    for path in folder.glob(pattern):
        with suppress(FileNotFoundError):  # another process makes room too
            files.append((path.stat(), path))
    total = sum(stat.st_size for stat, _ in files)
    if total <= limit:
        return
    for about, path in sorted(files, key=lambda file: file[0].st_mtime):
        if total <= _LEFT * limit:
            break
        if path.name not in spared:
            path.unlink(missing_ok=True)
            total -= about.st_size


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
