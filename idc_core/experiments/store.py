"""Finished units of an experiment on disk, so that an interrupted run loses none of them and goes on where it stopped.

In the folder "runs" of the cache (IDC_HOME, or the platform's cache folder), one JSON file a unit, without pickles. A
file's name is the SHA-256 of the unit's key: everything its record follows from, as the network's weights, the tests,
the settings and the seed. So nothing in it is ever out of date, experiments that need the same unit share it, and the
folder may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from idc_core.datasets.sources import cache_folder
from idc_core.errors import DataError, SettingError

Record = dict[str, Any]
"""What a unit found: text, numbers, None, and lists and dicts of these."""


def unit(kind: str, key: Mapping[str, Any], make: Callable[[], Record], *, fresh: bool = False) -> Record:
    """Return a unit's record from disk, or make and keep it.

    Parameters
    ----------
    kind : str
        What is made, as "reading"; the folder that the file is in.
    key : mapping
        Everything that the record follows from, as values that JSON can write.
    make : callable
        Makes the record; only called where there is none. What it raises leaves nothing behind.
    fresh : bool
        Make it even where it is there.

    Returns
    -------
    dict
        As JSON gives it back, whether it was made now or before: tuples are lists, keys are text.

    Raises
    ------
    SettingError
        If key or record hold what JSON cannot write, as arrays, NaN or infinity.
    DataError
        If the file cannot be written.
    """
    if not kind.isidentifier():
        raise SettingError(f"The kind of a unit names a folder; expected one word, not {kind!r}.")
    written = _text(dict(key), f"the key of a unit {kind!r}")
    path = runs_folder() / kind / f"{hashlib.sha256(written.encode()).hexdigest()[:32]}.json"
    found = None if fresh else _read(path, json.loads(written))
    if found is None:
        text = _text({"key": dict(key), "record": make()}, f"the record of a unit {kind!r}")
        _write(path, text)
        found = json.loads(text)["record"]
    return found


def finished(kind: str) -> int:
    """Return how many units of a kind are kept."""
    return len(list((runs_folder() / kind).glob("*.json")))


def runs_folder() -> Path:
    """Return the folder of all units."""
    return cache_folder() / "runs"


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


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".unit.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"Finished work cannot be kept in {path.parent} ({error}): make room there, or name another folder by the "
            "environment variable IDC_HOME."
        ) from error
