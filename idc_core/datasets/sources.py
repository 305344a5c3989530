"""Where the files of a dataset are: the folder IDC_DATA, else the cache IDC_HOME, else a download into it by pooch."""

import hashlib
import os
import shutil
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast
from urllib.parse import urlsplit

from idc_core.base.files import cache_folder
from idc_core.base.progress import Progress, report
from idc_core.errors import DataError
from idc_core.guarded import opened, read_text

_CHECKSUMS = "SHA256SUMS"
"""File beside the cached ones with a line `digest  name` for each, as `sha256sum` writes it."""

_SCRATCH = ".partial-"
_STALE_SECONDS = 24 * 3600
_PATIENCE_SECONDS = 20  # for the next bytes; a blocked connection would otherwise hang for ever
_CHUNK_BYTES = 1 << 18

_Files = Sequence[str]


@dataclass(frozen=True)
class RemoteFile:
    """A file on a public server: its address, its SHA-256, and how many megabytes it has at most."""

    url: str
    sha256: str
    megabytes: int

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Source:
    """Where a dataset can be downloaded.

    Attributes
    ----------
    files : tuple of RemoteFile
        What is fetched.
    convert : callable, optional
        Called with the folder of what was fetched and an empty one, into which it writes the files of the dataset;
        raises OSError or ValueError if it cannot. Where it is None, they are used as they come.
    """

    files: tuple[RemoteFile, ...]
    convert: Callable[[Path, Path], None] | None = None


def _data_folder() -> Path | None:
    """Return the folder that IDC_DATA names, or None where it names none."""
    value = os.environ.get("IDC_DATA", "")
    return Path(value).expanduser() if value else None


def obtain(
    dataset: str, label: str, alternatives: Sequence[_Files], source: Source | None, on_progress: Progress | None
) -> Path:
    """Return the folder that holds one group of a dataset's files, downloaded where they are not found.

    Parameters
    ----------
    dataset, label : str
        Name of the dataset and of its folder in IDC_DATA and in the cache; its name for a person.
    alternatives : sequence of sequences of str
        The file names that belong together; if the dataset comes in several forms, one group for each.
    source : Source or None
        Where to download it; None where nobody publishes it in a form that can be fetched.

    Raises
    ------
    DataError
        If the files are nowhere and cannot be downloaded, if only some of them are there, or if a cached file
        is not what was downloaded, by its SHA-256. The readers check structure, length and CRC of all.
    CancelledError
        If the callback, told in megabytes, returned False.
    """
    root, cache = _data_folder(), cache_folder()
    if root is not None and _find(root / dataset, alternatives):
        return root / dataset
    target = cache / dataset
    files = _find(target, alternatives)
    if not files:
        _fetch(dataset, label, alternatives[0], source, on_progress)
        files = _find(target, alternatives)
    if not files:
        raise DataError(f"The download of {label} into {target} did not bring the files that are needed.")
    _verify(target, files)
    return target


def _find(folder: Path, alternatives: Sequence[_Files]) -> _Files:
    """Return the first group of files that is whole, or none; complain about groups that are not whole."""
    partial = ""
    for files in alternatives:
        try:
            missing = [name for name in files if not (folder / name).is_file()]
            if missing and len(missing) < len(files):
                # A download by another process may have ended between the first look and the last.
                missing = [name for name in missing if not (folder / name).is_file()]
        except OSError as error:
            raise DataError(f"{folder} cannot be read ({error}).") from error
        if not missing:
            return files
        if len(missing) < len(files) and not partial:
            there = next(name for name in files if name not in missing)
            partial = f"{folder} holds {there} but not {missing[0]}, and one is of no use without the other."
    if partial:
        raise DataError(partial)
    return ()


def _fetch(dataset: str, label: str, files: _Files, source: Source | None, on_progress: Progress | None) -> None:
    root, cache = _data_folder(), cache_folder()
    needed = " and ".join(f"{dataset}/{name}" for name in files)
    given = f"a folder (now: {'not set' if root is None else root})"
    if source is None:
        raise DataError(
            f"{label} is not on this computer and has no public source to download it from: set IDC_DATA to "
            f"{given} that holds {needed}, or put the same into {cache}."
        )
    try:
        _download(dataset, label, cache, source, on_progress)
    except OSError as error:  # no connection, no space, no permission
        raise DataError(
            f"{label} is not on this computer and could not be downloaded ({error}): set IDC_DATA to "
            f"{given} that holds {needed}, or connect to the internet once so that it is downloaded into "
            f"{cache}."
        ) from error


def _download(dataset: str, label: str, cache: Path, source: Source, on_progress: Progress | None) -> None:
    """Download a dataset into `cache / dataset`, in one piece or not at all.

    pooch fetches each file whole and checks its hash, but a dataset is several files, some of them made of what was
    fetched: so all happens in a scratch folder, which takes its name by one renaming at the very end.
    """
    # Imported here: it costs as much as the rest of this package, and only a download needs it.
    import tarfile

    cache.mkdir(parents=True, exist_ok=True)
    _sweep(cache)
    with TemporaryDirectory(prefix=f"{_SCRATCH}{dataset}-", dir=cache, ignore_cleanup_errors=True) as folder:
        fetched, ready = Path(folder) / "fetched", Path(folder) / "ready"
        ready.mkdir()
        total, before = sum(file.megabytes for file in source.files), 0
        for file in source.files:
            _retrieve(file, fetched, _Meter(on_progress, f"Downloading {label}, MB", before, total, file))
            before += file.megabytes
        report(on_progress, total, total, f"Downloading {label}, MB")
        if source.convert is None:
            ready = fetched
        else:
            try:
                source.convert(fetched, ready)
            except (ValueError, EOFError, KeyError, tarfile.TarError, zlib.error) as error:
                raise OSError(f"what came cannot be read: {error}") from error
        lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted(ready.iterdir())]
        (ready / _CHECKSUMS).write_text("".join(lines), encoding="utf-8")
        try:
            ready.rename(cache / dataset)
        except OSError as error:
            # Another process was faster: its files are as good. Whether they are all there is seen next.
            if not (cache / dataset / _CHECKSUMS).is_file():
                raise OSError(f"{cache / dataset} is in the way: delete it") from error


@dataclass
class _Meter:
    """What pooch takes for a progress bar: tells the caller, who may stop, and refuses more than was announced."""

    on_progress: Progress | None
    label: str
    before: int  # megabytes of the files before this one
    everything: int  # megabytes of all
    file: RemoteFile
    done: int = 0  # bytes
    total: int = 0  # set by pooch

    def update(self, count: int) -> None:
        self.done += count
        if self.done > (self.file.megabytes << 20) + _CHUNK_BYTES:
            raise OSError(f"{self.file.url} sends more than the {self.file.megabytes} MB expected")
        report(self.on_progress, self.before + min(self.done >> 20, self.file.megabytes), self.everything, self.label)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass


def _retrieve(file: RemoteFile, folder: Path, meter: _Meter) -> None:
    import pooch
    import requests

    meter.update(0)
    pooch.get_logger().setLevel("WARNING")  # it would print every address
    host = urlsplit(file.url).netloc
    # As stored: what a server compresses for the transfer has another length, and a .gz file must stay one.
    as_stored = {"Accept-Encoding": "identity"}
    fetch = pooch.HTTPDownloader(
        progressbar=meter, chunk_size=_CHUNK_BYTES, timeout=_PATIENCE_SECONDS, headers=as_stored
    )
    try:
        pooch.retrieve(file.url, f"sha256:{file.sha256}", fname=file.name, path=folder, downloader=fetch)
    except requests.Timeout as error:
        raise OSError(f"nothing came from {host} for {_PATIENCE_SECONDS} s") from error
    except requests.HTTPError as error:
        raise OSError(f"{host} refused {file.url} ({str(error).partition(' for url')[0]})") from error
    except requests.RequestException as error:
        raise OSError(f"the connection to {host} failed") from error
    except ValueError as error:
        raise OSError(f"{file.url} is not the file it was: its SHA-256 is another") from error


def _sweep(cache: Path) -> None:
    """Remove scratch folders that a killed process left behind; those of running ones are younger."""
    for folder in cache.glob(f"{_SCRATCH}*"):
        with suppress(FileNotFoundError):  # a download running beside has just ended
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _verify(folder: Path, files: _Files) -> None:
    sums = folder / _CHECKSUMS
    if not sums.is_file():  # put there by hand: the readers check the structure, as they do for IDC_DATA
        return
    try:
        lines = read_text(sums, str(sums)).splitlines()
        recorded = {name.strip(): digest for digest, _, name in (line.partition(" ") for line in lines)}
        for name in files:
            computed = _sha256(folder / name)
            if recorded.get(name) != computed:
                raise DataError(
                    f"{folder / name} is no longer the file that was downloaded (SHA-256 {computed[:12]}..., "
                    f"expected {recorded.get(name, 'none')[:12]}...): delete {folder} and load again."
                )
    except OSError as error:
        raise DataError(f"{folder} cannot be read ({error}): delete it and load again.") from error


def _sha256(path: Path) -> str:
    with opened(path, str(path)) as stream:
        return hashlib.file_digest(cast(BufferedReader, stream), "sha256").hexdigest()
