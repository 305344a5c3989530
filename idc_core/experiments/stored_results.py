"""Finished parts of experiments on disk, so that an interrupted run loses none of them and goes on where it stopped.

In the folder "runs" of the cache (IDC_HOME, or the platform's cache folder): records as JSON, one file each
(`stored`), and arrays as npz files, one folder per run (`ArrayFolder`). Names are digests of everything that a result
follows from, as the network's weights, the tests, the settings and the seed. So nothing in it is ever out of date,
experiments share results, and the folder may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.files import cache_folder, keeping, write_whole

Record = dict[str, Any]
"""Text, numbers, None, and lists and dicts of these."""

Arrays = Mapping[str, NDArray[Any]]


def stored(kind: str, key: Mapping[str, Any], make: Callable[[], Record], *, fresh: bool = False) -> Record:
    """Return a record from the folder `kind`, or make and keep it; `fresh` makes it even where it is there.

    `key` is everything that the record follows from. Both are plain values that JSON can write, and the record is
    returned as JSON gives it back, whether it was made now or before: tuples are lists, keys are text.
    """
    if not kind.isidentifier():
        raise SettingError(f"The kind of a record names a folder; expected one word, not {kind!r}.")
    written = _text(dict(key), f"the key of kind {kind!r}")
    path = runs_folder() / kind / f"{hashlib.sha256(written.encode()).hexdigest()[:32]}.json"
    found = None if fresh else _read(path, json.loads(written))
    if found is None:
        text = _text({"key": dict(key), "record": make()}, f"the record of kind {kind!r}")
        with keeping(path.parent, "Finished work"):
            write_whole(path, text.encode())
        found = json.loads(text)["record"]
    return found


def runs_folder() -> Path:
    """Return the folder of all records and runs."""
    return cache_folder() / "runs"


class ArrayFolder(MutableMapping[str, Arrays]):
    """Arrays by name, one npz file without pickles per entry; a damaged file counts as absent."""

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
        with keeping(self.path, "Finished work"):
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


def _text(value: Record, what: str) -> str:
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingError(
            f"{what[0].upper()}{what[1:]} cannot be kept ({error}): give plain finite values."
        ) from error


def _read(path: Path, key: Record) -> Record | None:
    """Return the record in a file; None where there is no such file, or it was damaged from outside."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(content, dict) and content.get("key") == key and isinstance(content.get("record"), dict)
    return content["record"] if whole else None
