"""Where the files of a dataset are: the folder IDC_DATA, else the cache IDC_HOME, else a download into it."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from idc_core.datasets.download import CHECKSUMS, Source, download
from idc_core.errors import DataError
from idc_core.files import cache_folder
from idc_core.progress import Progress

Files = Sequence[str]


def data_folder() -> Path | None:
    """Return the folder that IDC_DATA names, or None where it names none."""
    value = os.environ.get("IDC_DATA", "")
    return Path(value).expanduser() if value else None


def obtain(
    dataset: str, label: str, alternatives: Sequence[Files], source: Source | None, on_progress: Progress | None
) -> Path:
    """Find the files of a dataset, and download them where they are not found.

    Parameters
    ----------
    dataset : str
        Name of the dataset, which is also the name of its folder in IDC_DATA and in the cache.
    label : str
        Its name for a person.
    alternatives : sequence of sequences of str
        The file names that belong together; if the dataset comes in several forms, one group for each.
    source : Source or None
        Where to download it; None where nobody publishes it in a form that can be fetched.
    on_progress : Progress or None
        Callback.

    Returns
    -------
    Path
        The folder that holds one group of files. Cached files have been checked against the SHA-256 recorded
        when they were downloaded; for all others the readers check structure, length and CRC.

    Raises
    ------
    DataError
        If the files are nowhere and cannot be downloaded, if only some of them are there, or if a cached file
        is not what was downloaded.
    """
    root, cache = data_folder(), cache_folder()
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


def _find(folder: Path, alternatives: Sequence[Files]) -> Files:
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


def _fetch(dataset: str, label: str, files: Files, source: Source | None, on_progress: Progress | None) -> None:
    root, cache = data_folder(), cache_folder()
    wanted = " and ".join(f"{dataset}/{name}" for name in files)
    given = f"a folder (now: {'not set' if root is None else root})"
    if source is None:
        raise DataError(
            f"{label} is not on this computer and has no public source to download it from: set IDC_DATA to "
            f"{given} that holds {wanted}, or put the same into {cache}."
        )
    try:
        download(dataset, label, cache, source, on_progress)
    except OSError as error:  # no connection, no space, no permission
        reason = getattr(error, "reason", error)  # URLError wraps the cause
        raise DataError(
            f"{label} is not on this computer and could not be downloaded ({reason}): set IDC_DATA to "
            f"{given} that holds {wanted}, or connect to the internet once so that it is downloaded into "
            f"{cache}."
        ) from error


def _verify(folder: Path, files: Files) -> None:
    sums = folder / CHECKSUMS
    if not sums.is_file():  # put there by hand: the readers check the structure, as they do for IDC_DATA
        return
    try:
        lines = sums.read_text(encoding="utf-8").splitlines()
        recorded = {name.strip(): digest for digest, _, name in (line.partition(" ") for line in lines)}
        for name in files:
            with (folder / name).open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if recorded.get(name) != found:
                raise DataError(
                    f"{folder / name} is no longer the file that was downloaded (SHA-256 {found[:12]}..., "
                    f"expected {recorded.get(name, 'none')[:12]}...): delete {folder} and load again."
                )
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{folder} cannot be read ({error}): delete it and load again.") from error
