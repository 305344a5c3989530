"""From a path to a data set of the registry."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import idc_core.datasets.pictures  # noqa: F401 (enters its formats)
from idc_core.datasets.dataset import Items, Task
from idc_core.datasets.entry import DatasetEntry
from idc_core.datasets.formats import format_of
from idc_core.datasets.own import OwnData, OwnReader
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.registry import DATASETS
from idc_core.datasets.remote import local_path
from idc_core.own_code import free_name, next_edition
from idc_core.progress import Progress


class FileReader:
    """Reads the splits of one file or folder; `path` says where what is wrong lies."""

    def __init__(self, path: Path, preparation: Preparation) -> None:
        self.path, self.preparation = path, preparation
        self.format = format_of(path)

    def __call__(self, split: str, limit: int | None, on_progress: Progress | None) -> Items:
        """Return one split, or its first `limit` items."""
        return self.format.read(self.path, self.preparation, split, limit, on_progress)


def open_data(
    path: Path | str,
    *,
    name: str = "",
    label: str = "",
    preparation: Preparation | None = None,
    on_progress: Progress | None = None,
) -> DatasetEntry:
    """Enter a file or folder into `DATASETS`, in place of what was opened from it before.

    Parameters
    ----------
    path : Path or str
        A file whose ending is in `DATA_FORMATS`, or a folder; or its URL, as `local_path` takes it.
    name, label : str
        By default after the file.
    preparation : Preparation, optional
        How it becomes inputs; by default as the files tell.
    on_progress : Progress, optional
        Told while what a URL leads to is fetched.

    Returns
    -------
    DatasetEntry

    Raises
    ------
    DataError
        If it cannot be read as data, or a URL cannot be fetched.
    """
    whole = local_path(path, on_progress)
    reader = FileReader(whole, preparation or Preparation())
    name = name or free_name(whole, DATASETS, lambda entry: _path_of(cast("DatasetEntry", entry)))
    entry = OwnData(
        name,
        label or name,
        f"Read from {whole.name}.",
        cast("Task", None),
        (),
        (),
        "",
        "",
        OwnReader(name, reader, None, ()),
        edition=next_edition(),
    )
    DATASETS[name] = entry
    return entry


def preparation_of(entry: DatasetEntry) -> Preparation | None:
    """Return how the files of a data set become inputs, as it was given; None for one that no files are behind."""
    return getattr(getattr(entry.load, "read", None), "preparation", None)


def _path_of(entry: DatasetEntry) -> Path | None:
    """Return the file that an entry was opened from."""
    return getattr(getattr(entry.load, "read", None), "path", None)
