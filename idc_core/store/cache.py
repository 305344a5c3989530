"""Finished work on disk: an interrupted run continues where it stopped, and nothing is made twice.

Records are JSON, one file each (`stored`); arrays are npz files without pickles (`ArrayFolder`). Names are digests of
everything that a result follows from: weights, tests, settings, seed. So nothing here is ever out of date, and every
folder may be deleted at any time. Each file carries a checksum; one that is damaged is made again, and the log says so.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from idc_core.base.files import cache_folder, keeping, make_room, write_whole
from idc_core.errors import DataError, SettingError
from idc_core.guarded import check_sealed_zip, damaged, pack_arrays, read_arrays, seal_text, seal_zip
from idc_core.store.documents import read_sealed

Record = dict[str, Any]
"""Text, numbers, None, and lists and dicts of these."""

_Arrays = Mapping[str, NDArray[Any]]


def stored(kind: str, key: Mapping[str, object], make: Callable[[], Record], *, fresh: bool = False) -> Record:
    """Return a record from the folder `kind`, or make and keep it; `fresh` makes it even where it is there.

    `key` is everything that the record follows from. Both are plain values that JSON can write, and the record is
    returned as JSON gives it back, whether it was made now or before: tuples are lists, keys are text.
    """
    if not kind.isidentifier():
        raise SettingError(f"The kind of a record names a folder; expected one word, not {kind!r}.")
    written = _text(dict(key), f"the key of kind {kind!r}")
    path = records_folder() / kind / f"{hashlib.sha256(written.encode()).hexdigest()[:32]}.json"
    record = None if fresh else _read(path, json.loads(written))
    if record is None:
        text = _text({"key": dict(key), "record": make()}, f"the record of kind {kind!r}")
        with keeping(path.parent, "Finished work"):
            write_whole(path, seal_text(text))
        record = json.loads(text)["record"]
    return record


def records_folder() -> Path:
    """Return the folder of all records and runs."""
    return cache_folder() / "runs"


class ArrayFolder(MutableMapping[str, _Arrays]):
    """Arrays by name, one npz file without pickles per entry; a damaged file counts as absent.

    `what` begins messages; `limit` is the most bytes of all files together: above it the least recently used go.
    """

    def __init__(self, path: Path, what: str = "Finished work", limit: int | None = None) -> None:
        self.path, self._what, self._limit = path, what, limit

    def __getitem__(self, key: str) -> _Arrays:
        path = self._file(key)
        if not os.path.lexists(path):
            raise KeyError(key)
        try:
            check_sealed_zip(path, str(path))
            arrays = read_arrays(path, str(path))
        except DataError as error:
            damaged(path, error)
            raise KeyError(key) from error
        if self._limit is not None:
            os.utime(path)
        return arrays

    def __setitem__(self, key: str, arrays: _Arrays) -> None:
        content = seal_zip(pack_arrays(arrays))
        with keeping(self.path, self._what):
            if self._limit is not None:
                make_room(self.path, "*.npz", self._limit - len(content))
            write_whole(self._file(key), content)

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
    if not os.path.lexists(path):
        return None
    try:
        content = read_sealed(path, str(path), dict[str, Record])
        if content.get("key") != key or "record" not in content:
            raise DataError(f"{path} holds another record than its name says.")
    except DataError as error:
        damaged(path, error)
        return None
    return content["record"]
