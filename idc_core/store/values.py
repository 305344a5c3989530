"""Results as plain values and arrays: what a result is made of is written down, and it is made again of that.

A result is a tree of dataclasses, tuples, lists, dicts and sets with plain values at its ends; arrays lie beside it.
Nothing is ever unpickled: a dataclass is called with its fields, and only those of the project's own packages are.
"""

from __future__ import annotations

import base64
import importlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError, SettingError
from idc_core.guarded import Budget

_PACKAGES = ("idc_core", "studio")
"""Packages whose dataclasses a result may be made of."""

MOVED: dict[str, str] = {}
"""Classes that results name as ``module:class`` and that are somewhere else today: where they are."""

_Tree = Any
"""Text, numbers, None, lists, and dicts with one entry: what kind of value it is, and what it is made of."""

_Arrays = dict[str, NDArray[np.generic]]

_IN_TREE = "OUSMm"
"""Kinds of arrays whose values lie in the tree."""

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


def unpack(
    tree: _Tree,
    arrays: Mapping[str, NDArray[np.generic]],
    budget: Budget | None = None,
    classes: Collection[str] | None = None,
) -> Any:
    """Make a result again of what `pack` gave.

    Parameters
    ----------
    tree, arrays
        As `pack` gave them.
    budget : Budget, optional
        Where arrays of texts count, all together: a file of a few bytes could ask for any number. Default a new one.
    classes : collection of str, optional
        The only classes that it may be made of, each as ``module:class``; by default all dataclasses, named tuples and
        enumerations of the project.

    Raises
    ------
    DataError
        If the tree names what does not exist here, as after a change of the program, or is not of these classes.
    """
    try:
        return _Making(arrays, budget or Budget("A kept result"), classes).made(tree)
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
        if value.dtype.kind in _IN_TREE:
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


class _Making:
    """What a result is made from: its arrays, what its texts may take in all, and the classes that it may hold."""

    def __init__(
        self, arrays: Mapping[str, NDArray[np.generic]], budget: Budget, classes: Collection[str] | None
    ) -> None:
        self.arrays, self.budget, self.classes = arrays, budget, classes

    def made(self, tree: _Tree) -> Any:
        if isinstance(tree, (*_PLAIN, float)):
            return tree
        if isinstance(tree, list):
            return [self.made(item) for item in tree]
        ((kind, parts),) = tree.items()
        if kind == "array":
            return self.arrays[parts]
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
            return self._array(*parts)
        if kind == "member":
            return self._named(parts[0])[parts[1]]
        if kind in ("object", "named"):
            return self._named(parts[0])(**{name: self.made(item) for name, item in parts[1].items()})
        if kind == "dict":
            return {self.made(key): self.made(held) for key, held in parts}
        return _MANY[kind](self.made(item) for item in parts)

    def _array(self, kind: str, shape: list[int], items: list[_Tree]) -> NDArray[np.generic]:
        """Make an array whose values lie in the tree; all of a result count together before they are made."""
        held = np.dtype(kind)
        if held.kind not in _IN_TREE or held.subdtype is not None:
            raise ValueError(f"{kind} is no type of an array of texts")
        if math.prod(shape) != len(items):
            raise ValueError(f"{len(items)} values are no array of shape {shape}")
        self.budget.take(held.itemsize * len(items), "an array of texts")
        array = np.empty(shape, held)
        array.ravel()[:] = self.made(items)
        return array

    def _named(self, name: str) -> Any:
        """Return a class that the result may hold."""
        if self.classes is not None and name not in self.classes:
            raise ValueError(f"{name} is no class of such a result")
        return _named(name)
