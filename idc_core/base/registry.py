"""What all registries share: entries by name, an unknown name answered with the names there are, fields found later."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from idc_core.base.own_digest import reached_digest
from idc_core.base.own_modules import is_own
from idc_core.base.parameters import shown
from idc_core.errors import SettingError

_Entry = TypeVar("_Entry")

_TYPED_IN = "<typed in>"

_WITH_OWN: list[Registry[Any]] = []
"""Registries that hold entries of a person's own."""


class Registry(dict[str, _Entry]):
    """Entries by name, in the order in which menus show them; to look up an unknown name raises `SettingError`.

    Parameters
    ----------
    what : str
        What an entry is, for the message, as "attack".
    entries : mapping of str to entry, optional
        What is there from the start.
    """

    def __init__(self, what: str, entries: Mapping[str, _Entry] | None = None) -> None:
        super().__init__(entries or {})
        self._what = what
        self._homes: dict[str, str] = {}  # the files that have entered them; empty for those of the program
        self._codes: dict[str, tuple[_Entry, str]] = {}

    def __getitem__(self, name: str) -> _Entry:
        # What is no text may have no hash: it is an unknown name like any other.
        return super().__getitem__(name) if isinstance(name, str) else self.__missing__(name)

    def __missing__(self, name: str) -> _Entry:
        raise SettingError(f"Unknown {self._what} {shown(name)}: expected one of {', '.join(self)}.")

    def __setitem__(self, name: str, entry: _Entry) -> None:
        if name not in self:  # one that was taken out may have been another file's
            self._homes[name] = _home()
        if self._homes.get(name) and not any(one is self for one in _WITH_OWN):
            _WITH_OWN.append(self)
        super().__setitem__(name, entry)

    def enter(self, name: str, entry: _Entry) -> None:
        """Add an entry under a name that is not taken; a person's file that is read again replaces its own."""
        if name in self and (not (home := _home()) or self._homes.get(name) != home):
            raise SettingError(f"There is a {self._what} {name!r} already: give the new one another name.")
        self[name] = entry

    def has_of(self, file: str) -> bool:
        """Whether a person's file has entered something."""
        return any(home == file and name in self for name, home in self._homes.items())

    def named_in(self, text: str) -> list[tuple[str, _Entry]]:
        """Return a person's own entries whose names a text has."""
        return [
            (name, self[name]) for name, home in sorted(self._homes.items()) if home and name in text and name in self
        ]

    def code_of(self, name: str) -> str:
        """Return the digest of all that an entry computes with, as it was when it was first asked for."""
        entry = self[name]
        if self._codes.get(name, (None,))[0] is not entry:
            self._codes[name] = entry, reached_digest(entry)
        return self._codes[name][1]


def own_code(text: str) -> str:
    """Return a digest of a person's own entries whose names a text has, or theirs in turn; empty where there are none.

    A result is kept by names, and one of these may mean something else tomorrow: a rule, a criterion, a transform.
    """
    codes: dict[tuple[int, str], str] = {}
    while _WITH_OWN:
        found = [
            (place, registry, name, entry)
            for place, registry in enumerate(_WITH_OWN)
            for name, entry in registry.named_in(text)
            if (place, name) not in codes
        ]
        if not found:
            break
        codes |= {(place, name): f"{name} {registry.code_of(name)}" for place, registry, name, _ in found}
        text = " ".join(repr(entry) for *_, entry in found)  # a table names other rules
    return " ".join(sorted(codes.values()))


def _home() -> str:
    """Return the file of a person's code that runs this; empty where a module of the program does as it is loaded."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "<module>" and not is_own(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    file = "" if frame is None else frame.f_code.co_filename
    if file.startswith("<"):
        return _TYPED_IN
    return "" if not is_own(file) else file if os.path.isfile(file) else _TYPED_IN  # noqa: PTH113 (may be no path)


class _Lazy:
    """What a field is that was not given: found when it is first asked for, and kept."""

    def __init__(self, find: Callable[[Any], object]) -> None:
        self._find = find

    def __set_name__(self, kind: type, name: str) -> None:
        self._given, self._found = name, f"_found_{name}"

    def __get__(self, entry: object, kind: type) -> object:
        if entry is None:
            return None  # the field's default: not given
        held = vars(entry)
        if not held[self._given] and self._found not in held:
            held[self._found] = self._find(entry)
        return held[self._given] or held[self._found]

    def __set__(self, entry: object, value: object) -> None:
        vars(entry)[self._given] = value


def lazy(find: Callable[[Any], Any]) -> Any:
    """Declare a field of an entry's dataclass that is found from the entry where it was not given, or was empty."""
    return _Lazy(find)
