"""Downloading a dataset into the cache: in one piece or not at all."""

import hashlib
import os
import shutil
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from idc_core.progress import Progress, report

CHECKSUMS = "SHA256SUMS"
"""File beside the cached ones with a line `digest  name` for each, as `sha256sum` writes it."""

_SCRATCH = ".partial-"
_STALE_SECONDS = 24 * 3600
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 60  # for the first byte; a blocked connection would otherwise hang for ever


@dataclass(frozen=True)
class Source:
    """Where a dataset can be downloaded.

    Attributes
    ----------
    megabytes : int
        About how much is transferred, for the progress bar.
    make : callable
        Called with (scratch, ready), two empty folders: downloads into the first, checks what came, and
        writes the files of the dataset into the second. Raises OSError or ValueError if that fails.
    """

    megabytes: int
    make: Callable[[Path, Path], None]


def download(dataset: str, label: str, cache: Path, source: Source, on_progress: Progress | None) -> None:
    """Download a dataset into `cache / dataset`.

    Everything happens in a scratch folder inside the cache. It becomes `cache / dataset` by one renaming at
    the very end, and is removed if anything goes wrong before, an interruption included.

    Parameters
    ----------
    dataset : str
        Name of the new folder.
    label : str
        Name for a person.
    cache : Path
        Folder for downloads; made if it is not there.
    source : Source
        Where it comes from.
    on_progress : Progress or None
        Called about five times a second, in megabytes.

    Raises
    ------
    OSError
        If there is no connection, no space or no permission, or if what came is not what was expected.
    CancelledError
        If the callback returned False.
    """
    # Imported here: together they cost as much as the rest of this package, and only a download needs them.
    import tarfile
    from http.client import HTTPException

    cache.mkdir(parents=True, exist_ok=True)
    _sweep(cache)
    with TemporaryDirectory(prefix=f"{_SCRATCH}{dataset}-", dir=cache, ignore_cleanup_errors=True) as folder:
        try:
            ready = _run(source, Path(folder), label, on_progress)
        except (ValueError, EOFError, HTTPException, tarfile.TarError, zlib.error, ImportError) as error:
            raise OSError(str(error)) from error
        lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted(ready.iterdir())]
        (ready / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
        try:
            ready.rename(cache / dataset)
        except OSError as error:
            # Another process was faster: its files are as good. Whether they are all there is seen next.
            if not (cache / dataset / CHECKSUMS).is_file():
                raise OSError(f"{cache / dataset} is in the way: delete it") from error


def _run(source: Source, folder: Path, label: str, on_progress: Progress | None) -> Path:
    # The fetch functions of scikit-learn tell nobody how far they are, but write what comes into a folder: so
    # they run beside, and the growth of that folder is the progress. The thread is a daemon: it must not keep
    # the program alive after an interruption.
    scratch, ready = folder / "scratch", folder / "ready"
    scratch.mkdir()
    ready.mkdir()
    future: Future[None] = Future()
    abandoned = Event()

    def work() -> None:
        try:
            source.make(scratch, ready)
            future.set_result(None)
        except BaseException as error:  # handed over to the thread that waits
            future.set_exception(error)
        # The thread cannot be stopped, and may have gone on writing after the folder was removed.
        if abandoned.is_set():
            shutil.rmtree(folder, ignore_errors=True)

    Thread(target=work, name=f"download {label}", daemon=True).start()
    try:
        _wait(future, scratch, source.megabytes, f"Downloading {label}, MB", on_progress)
    except BaseException:
        abandoned.set()
        raise
    return ready


def _wait(future: Future[None], scratch: Path, megabytes: int, doing: str, on_progress: Progress | None) -> None:
    start = time.monotonic()
    while not wait([future], _POLL_SECONDS).done:
        arrived = _size(scratch)
        if not arrived and time.monotonic() - start > _PATIENCE_SECONDS:
            raise OSError(f"nothing came for {_PATIENCE_SECONDS} s")
        report(on_progress, min(arrived >> 20, megabytes), megabytes, doing)
    future.result()
    report(on_progress, megabytes, megabytes, doing)


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):  # which, unlike Path.rglob, bears folders that vanish meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(place) / name).stat().st_size
    return total


def _sweep(cache: Path) -> None:
    """Remove scratch folders that a killed process left behind; those of running ones are younger."""
    for folder in cache.glob(f"{_SCRATCH}*"):
        with suppress(FileNotFoundError):  # a download running beside has just ended
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
