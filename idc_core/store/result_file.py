"""A result as one file: a safetensors file with its arrays, and all else as JSON in the header.

One file is written whole or not at all, so that no moment exists at which a result is half there; whoever copies the
file has copied the result.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from idc_core.base.files import partial_file, unreadable
from idc_core.errors import DataError
from idc_core.guarded import Budget, read_json
from idc_core.store.values import UnkeptError, pack, unpack

log = logging.getLogger("idc_core")

ENDING = ".safetensors"

# The file is mapped while its arrays are copied from it. What a value takes besides its text, in the lists of JSON and
# in those that the result is made of, is at most this.
_FILE_COPIES, _TEXT_COPIES, _VALUE_BYTES = 2, 6, 200

_Missing = type("Missing", (), {})
MISSING = _Missing()
"""What `find` returns where nothing is kept: None can be a result."""


@dataclass(frozen=True)
class Facts:
    """What can be said of a result without reading its arrays.

    Attributes
    ----------
    kind : str
        What sort of result it is.
    version : str
        Of its kind, as `idc_core.store.versions` says.
    made : str
        When it was finished, ISO 8601 in UTC.
    seconds : float
        How long that took.
    settings : dict
        What a person chose, by name: plain values.
    scores : dict of str to float
        What came out, by name.
    """

    kind: str
    version: str
    made: str
    seconds: float
    settings: dict[str, object]
    scores: dict[str, float]


def write(path: Path, value: object, facts: Facts) -> None:
    """Write a result.

    Raises
    ------
    UnkeptError
        If it holds something that cannot be written.
    OSError
        If there is no room, or the folder cannot be written to; nothing is left behind.
    """
    tree, arrays = pack(value)
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    texts = {"facts": json.dumps(vars(facts), allow_nan=False), "tree": json.dumps(tree, allow_nan=False)}
    with partial_file(path.parent) as partial:
        try:
            save_file(whole, partial, {**texts, "checksum": _checksum(texts, whole)})
        except KeyError as error:
            raise UnkeptError(f"Arrays of type {error} cannot be kept.") from error
        except SafetensorError as error:
            raise OSError(str(error)) from error
        partial.replace(path)


def read(path: Path, budget: Budget | None = None, classes: Collection[str] | None = None) -> Any:
    """Return the result in a file; arrays are not writeable.

    Parameters
    ----------
    path : Path
    budget : Budget, optional
        Of a file from outside: all that reading it holds counts there, before it is held.
    classes : collection of str, optional
        As `unpack` takes them.

    Raises
    ------
    DataError
        If the file is damaged, holds what this program does not know, or would take more memory than is allowed.
    """
    texts, arrays = _opened(path, with_arrays=True, budget=budget)
    if _checksum(texts, arrays) != texts.get("checksum"):
        raise DataError(f"{path} is damaged: its content does not have the checksum that it was written with.")
    for array in arrays.values():
        array.setflags(write=False)
    if budget is not None:
        text = texts.get("tree", "")
        values = sum(map(text.count, ",[{"))
        budget.take(_TEXT_COPIES * len(text) + _VALUE_BYTES * values, f"its {values:,} single values")
    try:
        tree = json.loads(texts["tree"])
    except (KeyError, ValueError, RecursionError) as error:
        raise DataError(f"{path} holds no result ({error}).") from error
    return unpack(tree, arrays, budget, classes)


def find(path: Path) -> Any:
    """Return the result in a file of `place`, or `MISSING`; a damaged one is missing, and the log says so."""
    if not path.exists():
        return MISSING
    try:
        result = read(path)
    except DataError as error:
        log.warning("%s is made again: %s", path, error)
        return MISSING
    with suppress(OSError):  # it went meanwhile, or the folder is read-only: then no file ever goes
        os.utime(path)
    return result


def read_facts(path: Path) -> Facts:
    """Return what is said of the result in a file, without its arrays; raises as `read`."""
    texts, _ = _opened(path, with_arrays=False)
    # Until November 2026 the version was a digest of the program's source.
    facts = texts.get("facts", "").replace('"edition": "', '"version": "', 1)
    return read_json(facts.encode(errors="replace"), f"What {path} says of its result", Facts)


def _opened(
    path: Path, *, with_arrays: bool, budget: Budget | None = None
) -> tuple[dict[str, str], dict[str, NDArray[np.generic]]]:
    if reason := unreadable(path):  # a pipe would be waited for
        raise DataError(f"{path} {reason}.")
    if budget is not None:
        budget.take(_FILE_COPIES * path.stat().st_size, "its content")
    try:
        with safe_open(path, framework="numpy") as file:
            names = file.keys() if with_arrays else ()
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} cannot be read ({error}).") from error


def _checksum(texts: Mapping[str, str], arrays: Mapping[str, NDArray[np.generic]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in ("facts", "tree"):
        digest.update(texts.get(name, "").encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
