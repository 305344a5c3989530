"""What all registries share: entries by name, an unknown name answered with the names there are, fields found later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from idc_core.base.parameters import shown
from idc_core.errors import SettingError

_Entry = TypeVar("_Entry")


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

    def __getitem__(self, name: str) -> _Entry:
        # What is no text may have no hash: it is an unknown name like any other.
        return super().__getitem__(name) if isinstance(name, str) else self.__missing__(name)

    def __missing__(self, name: str) -> _Entry:
        raise SettingError(f"Unknown {self._what} {shown(name)}: expected one of {', '.join(self)}.")

    def enter(self, name: str, entry: _Entry) -> None:
        """Add an entry under a name that is not taken."""
        if name in self:
            raise SettingError(f"There is a {self._what} {name!r} already: give the new one another name.")
        self[name] = entry


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
