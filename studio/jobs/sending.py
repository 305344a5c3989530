"""Work on its way to another process: what that process can open by itself is named, all else is copied.

Both ends are this program, and the pipe between them is nobody else's: that is why pickles may be read here.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import cloudpickle

from idc_core.base.progress import Progress


@dataclass(frozen=True, eq=False)
class Named:
    """A result that another process opens by itself: it reads the file that is kept, or does the same `work`.

    It then has the same `fingerprint`, where results of the kind have one.
    """

    kind: str
    key: Hashable
    work: Callable[[Progress], object] | None = None
    fingerprint: str = ""


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles functions and classes too; of an object that has a name, the name alone."""

    def __init__(self, file: io.BytesIO, name: Callable[[object], object]) -> None:
        super().__init__(file)
        self._name = name

    def persistent_id(self, value: object) -> object:
        return self._name(value)


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote, and has names opened."""

    def __init__(self, file: io.BytesIO, opened: Callable[[Any], object]) -> None:
        super().__init__(file)
        self._opened = opened

    def persistent_load(self, name: object) -> object:
        return self._opened(name)


def packed(value: object, name: Callable[[object], object] = lambda value: None) -> bytes:
    """Write a value; objects for which `name` returns something are replaced by it."""
    file = io.BytesIO()
    _Pickler(file, name).dump(value)
    return file.getvalue()


def unpacked(content: bytes, opened: Callable[[Any], object]) -> Any:
    """Read what `packed` wrote; `opened` is called with what stands in place of objects."""
    return _Unpickler(io.BytesIO(content), opened).load()
