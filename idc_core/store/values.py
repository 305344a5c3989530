"""Results as plain values and arrays: what a result is made of is written down, and it is made again of that.

A result is a tree of dataclasses, tuples, lists, dicts and sets with plain values at its ends; arrays lie beside it.
Nothing is ever unpickled: a dataclass is called with its fields, and only those of the project's own packages are.
"""

from __future__ import annotations

import base64
import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError, SettingError

_PACKAGES = ("idc_core", "studio")
"""Packages whose dataclasses a result may be made of."""

MOVED: dict[str, str] = {}
"""Classes that results name as ``module:class`` and that are somewhere else today: where they are."""

_Tree = Any
"""Text, numbers, None, lists, and dicts with one entry: what kind of value it is, and what it is made of."""

_Arrays = dict[str, NDArray[np.generic]]

_MOST_TEXT = 1 << 30
"""Bytes of an array of texts: a file of a few bytes could ask for any number."""

_PLAIN = (type(None), bool, int, str)
_MANY: dict[str, Callable[[Iterable[object]], object]] = {"tuple": tuple, "set": set, "frozenset": frozenset}


class UnkeptError(SettingError):
    """A value that the store cannot keep: it holds something that is more than values and arrays."""


def pack(value: object) -> tuple[_Tree, _Arrays]:
    """Take a result apart.

    Parameters
    ----------
    value : object
        None, truth values, numbers, text, bytes, arrays, NumPy's numbers, enumerations of the project, and tuples,
        lists, dicts, sets and dataclasses of these.

    Returns
    -------
    tree : plain values that JSON can write
    arrays : dict of str to ndarray
        Not copied; the same array in two places comes once.

    Raises
    ------
    UnkeptError
        If anything else is in it.
    """
    packing = _Packing()
    return packing.tree(value), packing.arrays


def unpack(tree: _Tree, arrays: Mapping[str, NDArray[np.generic]]) -> Any:
    """Make a result again of what `pack` gave.

    Raises
    ------
    DataError
        If the tree names what does not exist here, as after a change of the program.
    """
    try:
        return _made(tree, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, ImportError, RecursionError) as error:
        raise DataError(f"A kept result cannot be read ({error}); it is computed again.") from error


class _Packing:
    """The arrays met so far, by the object that each is."""

    def __init__(self) -> None:
        self.arrays: _Arrays = {}
        self._names: dict[int, str] = {}

    def tree(self, value: object) -> _Tree:
        if isinstance(value, _PLAIN) and not isinstance(value, Enum):
            return value
        if isinstance(value, float) and not isinstance(value, np.generic):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, list):
            return [self.tree(item) for item in value]
        kind = _kind(value)
        return {kind: self._parts(kind, value)}

    def _parts(self, kind: str, value: Any) -> _Tree:
        if kind == "dict":
            return [[self.tree(key), self.tree(held)] for key, held in value.items()]
        if kind in ("set", "frozenset"):
            return [self.tree(item) for item in sorted(value, key=repr)]
        if kind == "tuple":
            return [self.tree(item) for item in value]
        if kind == "bytes":
            return base64.b64encode(value).decode()
        if kind == "number":
            return [value.dtype.str, value.item()]
        if kind == "type":
            return [value.str]
        if kind == "member":
            return [_name(type(value)), value.name]
        names = value._fields if kind == "named" else [item.name for item in fields(value) if item.init]
        return [_name(type(value)), {name: self.tree(getattr(value, name)) for name in names}]

    def _array(self, value: NDArray[np.generic]) -> _Tree:
        if value.dtype.hasobject or value.dtype.kind in "USMm":
            # Cells of many neurons have numbers beyond 64 bits; labels are text.
            return {"items": [value.dtype.str, list(value.shape), [self.tree(item) for item in value.ravel().tolist()]]}
        if id(value) not in self._names:
            name = str(len(self.arrays))
            self._names[id(value)], self.arrays[name] = name, value
        return {"array": self._names[id(value)]}


def _kind(value: object) -> str:
    """Say what a value is, by the word under which it is written."""
    if isinstance(value, Enum):
        return "member"
    if isinstance(value, np.generic):
        return "number"
    if isinstance(value, np.dtype):
        return "type"
    if is_dataclass(value) and not isinstance(value, type):
        return "object"
    if isinstance(value, tuple):
        return "named" if hasattr(value, "_fields") else "tuple"
    for kind in (dict, set, frozenset, bytes):
        if type(value) is kind:
            return kind.__name__
    raise UnkeptError(f"A {type(value).__qualname__} cannot be kept: expected values, arrays and dataclasses of them.")


def _name(kind: type) -> str:
    if kind.__module__.partition(".")[0] not in _PACKAGES or "<" in kind.__qualname__:
        raise UnkeptError(f"A {kind.__qualname__} of {kind.__module__} cannot be kept: it is none of the project's.")
    return f"{kind.__module__}:{kind.__qualname__}"


def _named(name: str) -> Any:
    """Return a class by its name; only dataclasses, named tuples and enumerations of the project's packages."""
    module, _, path = MOVED.get(name, name).partition(":")
    if module.partition(".")[0] not in _PACKAGES or module.endswith("__main__"):
        raise ValueError(f"{name} is none of the project's classes")
    kind: Any = importlib.import_module(module)
    for part in path.split("."):
        kind = getattr(kind, part)
    known = isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, (Enum, tuple)))
    if not known or kind.__module__ != module:
        raise ValueError(f"{name} is no class of results")
    return kind


def _made(tree: _Tree, arrays: Mapping[str, NDArray[np.generic]]) -> Any:
    if isinstance(tree, (*_PLAIN, float)):
        return tree
    if isinstance(tree, list):
        return [_made(item, arrays) for item in tree]
    ((kind, parts),) = tree.items()
    if kind == "array":
        return arrays[parts]
    if kind == "float":
        return float(parts)
    if kind == "bytes":
        return base64.b64decode(parts)
    if kind == "number":
        if np.dtype(parts[0]).kind not in "biuf":
            raise ValueError(f"{parts[0]} is no type of a number")
        return np.dtype(parts[0]).type(parts[1])
    if kind == "type":
        return np.dtype(parts[0])
    if kind == "items":
        if math.prod(parts[1]) != len(parts[2]):
            raise ValueError(f"{len(parts[2])} values are no array of shape {parts[1]}")
        if np.dtype(parts[0]).itemsize * len(parts[2]) > _MOST_TEXT:
            raise ValueError(f"an array of {parts[0]} is longer than any that is kept")
        array = np.empty(parts[1], dtype=parts[0])
        array.ravel()[:] = _made(parts[2], arrays)
        return array
    if kind == "member":
        return _named(parts[0])[parts[1]]
    if kind in ("object", "named"):
        return _named(parts[0])(**{name: _made(item, arrays) for name, item in parts[1].items()})
    if kind == "dict":
        return {_made(key, arrays): _made(held, arrays) for key, held in parts}
    return _MANY[kind](_made(item, arrays) for item in parts)
