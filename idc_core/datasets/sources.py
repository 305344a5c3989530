"""Where the files of a dataset are: the folder IDC_DATA, the cache IDC_HOME, or, after a download, the cache."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import platformdirs

from idc_core.errors import DataError
from idc_core.progress import Progress

CHECKSUMS = "SHA256SUMS"
"""File beside the cached ones with a line `digest  name` for each, as `sha256sum` writes it."""


def data_folder() -> Path | None:
    """Return the folder that IDC_DATA names, or None where it names none."""
    value = os.environ.get("IDC_DATA", "")
    return Path(value).expanduser() if value else None


def cache_folder() -> Path:
    """Return the folder for downloads: IDC_HOME, or the platform's cache folder of "idc-studio"."""
    value = os.environ.get("IDC_HOME", "")
    return Path(value).expanduser() if value else platformdirs.user_cache_path("idc-studio")


def locate(dataset: str, files: Sequence[str]) -> Path | None:
    """Find the folder that holds all the named files of a dataset.

    Parameters
    ----------
    dataset : str
        Name of the dataset, which is also the name of its folder in IDC_DATA and in the cache.
    files : sequence of str
        File names that belong together.

    Returns
    -------
    Path or None
        The folder in IDC_DATA, else the one in the cache (its files checked against the checksums recorded
        when they were downloaded), else None.

    Raises
    ------
    DataError
        If only some of the files are there, or if a cached file is not what was downloaded.
    """
    root = data_folder()
    if root is not None and _complete(root / dataset, files):
        return root / dataset
    cached = cache_folder() / dataset
    if _complete(cached, files):
        _verify(cached, files)
        return cached
    return None


def obtain(
    dataset: str, files: Sequence[str], download: Callable[[Progress | None], None], on_progress: Progress | None
) -> Path:
    """Find the files of a dataset, and download them where they are not found.

    Parameters
    ----------
    dataset, files
        As for `locate`.
    download : callable
        Puts the dataset into the cache, or raises DataError; called with `on_progress`.
    on_progress : Progress or None
        Callback of the caller.

    Returns
    -------
    Path
        The folder that holds the files.

    Raises
    ------
    DataError
        As `locate`, and if the download fails.
    """
    folder = locate(dataset, files)
    if folder is None:
        download(on_progress)
        folder = locate(dataset, files)
    if folder is None:
        raise DataError(f"The download of {dataset} did not bring the files {', '.join(files)}.")
    return folder


def _complete(folder: Path, files: Sequence[str]) -> bool:
    there = [name for name in files if (folder / name).is_file()]
    if there and len(there) < len(files):
        missing = next(name for name in files if name not in there)
        raise DataError(
            f"{folder} holds {there[0]} but not {missing}, which belongs to it: put it there, or take the others away."
        )
    return len(there) == len(files)


def _verify(folder: Path, files: Sequence[str]) -> None:
    sums = folder / CHECKSUMS
    if not sums.is_file():  # put there by hand: the readers check its structure, as they do for IDC_DATA
        return
    recorded = {
        name.strip(): digest for digest, _, name in (line.partition(" ") for line in sums.read_text().splitlines())
    }
    for name in files:
        with (folder / name).open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if recorded.get(name) != found:
            raise DataError(
                f"{folder / name} is not the file that was downloaded (its SHA-256 is {found[:12]}..., "
                f"recorded was {recorded.get(name, 'none')[:12]}...): delete the folder {folder} and load again."
            )
