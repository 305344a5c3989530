"""Data by URL, fetched into the cache folder of whoever reads them: the one place where a path or URL is resolved.

What can be listed is read by `fsspec`: its packages for S3 and others are optional. HTTP is read by `requests`.
A visitor's choices are names and never get here as text: see `docs/SECURITY.md`.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from filelock import FileLock

from idc_core.base.config import config, config_file
from idc_core.base.files import cache_folder, keeping, partial_file
from idc_core.base.own_code import is_url
from idc_core.base.parameters import shown
from idc_core.base.progress import Progress, report
from idc_core.datasets.formats import ending_of, readable
from idc_core.datasets.pictures import is_picture
from idc_core.errors import DataError, IdcError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_PATIENCE_S = 20
"""Seconds for the next bytes of an HTTP server."""

_BLOCK = 1 << 20

_MARKS = re.compile("etag|time|modif|updated|created|version|md5|sha|crc|checksum|hash", re.IGNORECASE)
"""What a file system calls what changes with a file's content; names and sizes alone do not tell it."""

_Blocks = Callable[[], Iterator[bytes]]


@dataclass(frozen=True)
class _Found:
    """What a URL leads to.

    `files` are relative names with what gives their blocks; a single one without a name is a file, others a folder.
    `mark` changes with the content, and is empty where the server tells nothing. `size` is in bytes, or 0 if unknown.
    """

    files: Mapping[str, _Blocks]
    mark: str
    size: int


def local_path(place: Path | str, on_progress: Progress | None = None) -> Path:
    """Return where data lie on this machine.

    Parameters
    ----------
    place : Path or str
        A path, or the URL of a file or of a folder of pictures, which becomes one zip file in the cache folder. The
        newest content of each URL is kept there; the server is asked whether it has changed.
    on_progress : Progress, optional
        Told in megabytes.

    Raises
    ------
    DataError
        If a URL leads to nothing that can be read as data, needs a package that is not installed, cannot be reached,
        or leads to more bytes than the config file allows.
    CancelledError
        If `on_progress` returned False.
    """
    if not is_url(place):
        return Path(place).expanduser().absolute()
    url = str(place)
    with _told(url):
        parts = urlsplit(url)
        if parts.scheme in ("file", "local"):  # a pipe that fsspec opens is waited for
            return Path(url2pathname(parts.path))
        name = PurePosixPath(unquote(parts.path)).name or parts.netloc
        with _over_http(url, name) if parts.scheme in ("http", "https") else _by_fsspec(url, name) as source:
            folder = cache_folder() / "fetched" / _digest(url)
            path = folder / _digest(source.mark) / (name if "" in source.files else f"{name}.zip")
            with keeping(folder, "What a URL names"), FileLock(folder / ".lock"):
                if not (source.mark and path.exists()):
                    _fetch(source, url, path, on_progress)
    return path


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextmanager
def _told(url: str) -> Iterator[None]:
    """Say in a sentence what went wrong at a URL; file systems raise errors of many kinds."""
    try:
        yield
    except IdcError:
        raise
    except ImportError as error:
        raise DataError(f"{_said(url)} needs a package that is not installed: {_install(url)}") from error
    except Exception as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        reason = re.split(" (?:for|with) url", text)[0]
        raise DataError(
            f"{_said(url)} cannot be read ({reason[:200]}): check the URL, and your rights there."
        ) from error


def _said(url: str) -> str:
    """Return a URL as messages show it, which visitors may see: without password and signature."""
    return shown(re.sub(r"(?<=://)[^/@]*@|[?#].*", "", url))


def _install(url: str) -> str:
    """Return the command that installs what a URL needs; fsspec stays as it is pinned."""
    import fsspec
    from fsspec.registry import known_implementations

    scheme = urlsplit(url).scheme
    package = known_implementations[scheme]["class"].split(".")[0]
    extra = f'"fsspec[{scheme}]"' if package == "fsspec" else package
    return f"pip install {extra} fsspec=={fsspec.__version__}"


@contextmanager
def _over_http(url: str, name: str) -> Iterator[_Found]:
    import requests

    if not ending_of(name):
        raise DataError(
            f"{_said(url)} does not end as data do: expected {', '.join(readable())}. A folder of pictures "
            "on such a server needs to be a .zip."
        )
    as_stored = {"Accept-Encoding": "identity"}
    with requests.get(url, stream=True, timeout=_PATIENCE_S, headers=as_stored) as answer:
        answer.raise_for_status()
        head = answer.headers
        marks = [head[field] for field in ("ETag", "Last-Modified") if field in head]
        size = 0 if "Content-Encoding" in head else int(head.get("Content-Length", 0))
        yield _Found({"": lambda: answer.iter_content(_BLOCK)}, f"{marks} {size}" if marks else "", size)


@contextmanager
def _by_fsspec(url: str, name: str) -> Iterator[_Found]:
    from fsspec.core import url_to_fs

    system, path = url_to_fs(url)
    there: dict[str, dict[str, Any]] = system.find(path, detail=True)
    if not there:
        raise DataError(f"There is nothing at {_said(url)}: check the URL.")
    is_file = list(there) == [path]
    if is_file and not ending_of(name):
        raise DataError(f"{_said(url)} is no data that can be read; expected a folder, or {', '.join(readable())}.")
    listing = {file: about for file, about in sorted(there.items()) if is_file or is_picture(file)}
    if not listing:
        raise DataError(f"{_said(url)} holds no pictures: give the URL of a file, or of a folder of pictures.")
    names = {file: "" if is_file else str(PurePosixPath(file).relative_to(path)) for file in listing}
    files = {names[file]: partial(_blocks, system, file) for file in listing}
    told = all(any(value and _MARKS.search(field) for field, value in about.items()) for about in listing.values())
    mark = repr(sorted(listing.items())) if told else ""
    yield _Found(files, mark, sum(about.get("size") or 0 for about in listing.values()))


def _blocks(system: AbstractFileSystem, path: str) -> Iterator[bytes]:
    with system.open(path, "rb") as stream:
        yield from iter(partial(stream.read, _BLOCK), b"")


def _told_blocks(url: str, blocks: _Blocks) -> Iterator[bytes]:
    with _told(url):
        yield from blocks()


def _fetch(found: _Found, url: str, path: Path, on_progress: Progress | None) -> None:
    """Write what was found in one piece or not at all, and forget what this URL led to before."""
    folder, most, done = path.parent.parent, config().fetched, 0

    def copy(name: str, out: IO[bytes]) -> None:
        nonlocal done
        for block in _told_blocks(url, found.files[name]):
            done += len(block)
            check(done)
            out.write(block)
            report(on_progress, done >> 20, max(done, found.size) >> 20, f"Fetching {path.name}, MB")

    def check(size: int) -> None:
        if size > most:
            raise DataError(
                f"{_said(url)} has more than {most:,} bytes, which is what may be fetched: take less, or raise "
                f"fetched_mib in the section limits of {config_file()}."
            )

    check(found.size)
    with partial_file(folder) as written:
        if "" in found.files:
            with written.open("xb") as file:
                copy("", file)
        else:
            with zipfile.ZipFile(written, "x") as archive:
                for name in found.files:
                    with archive.open(name, "w") as member:
                        copy(name, member)
        if found.size and done != found.size:
            raise DataError(f"{_said(url)} broke off after {done:,} of {found.size:,} bytes: try again.")
        path.parent.mkdir(exist_ok=True)
        written.replace(path)
    for other in folder.iterdir():
        if other != path.parent:
            shutil.rmtree(other, ignore_errors=True)  # leaves the lock, which is a file
