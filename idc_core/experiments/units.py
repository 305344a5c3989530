"""Finished units of an experiment on disk, so that interrupting it loses none of them."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.sources import cache_folder
from idc_core.models.weights import write_whole

Arrays = Mapping[str, NDArray[Any]]


class UnitFolder(MutableMapping[str, Arrays]):
    """Arrays by name, one npz file without pickles a unit; a file appears whole or not at all.

    Parameters
    ----------
    path : Path
        Made when the first unit is put in. A damaged file counts as absent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __getitem__(self, key: str) -> Arrays:
        try:
            with np.load(self._file(key), allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise KeyError(key) from error

    def __setitem__(self, key: str, arrays: Arrays) -> None:
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **dict(arrays))
        write_whole(self._file(key), content.getvalue())

    def __delitem__(self, key: str) -> None:
        try:
            self._file(key).unlink()
        except FileNotFoundError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        return (file.stem for file in sorted(self.path.glob("*.npz")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.npz"


def run_folder(experiment: str, address: str) -> Path:
    """Return the folder of an experiment's run: in "runs" of the cache (IDC_HOME, or the platform's cache folder).

    Parameters
    ----------
    experiment : str
    address : str
        Digits that follow from everything the run depends on.
    """
    return cache_folder() / "runs" / experiment / address
