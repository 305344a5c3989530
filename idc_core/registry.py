"""What all registries share: entries by name, and an unknown name that is answered with the names there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from idc_core.errors import SettingError
from idc_core.parameters import shown

Entry = TypeVar("Entry")


class Registry(dict[str, Entry]):
    """Entries by name, in the order in which menus show them; to look up an unknown name raises `SettingError`.

    Parameters
    ----------
    what : str
        What an entry is, for the message, as "attack".
    entries : mapping of str to entry, optional
        What is there from the start.
    """

    def __init__(self, what: str, entries: Mapping[str, Entry] | None = None) -> None:
        super().__init__(entries or {})
        self._what = what

    def __getitem__(self, name: str) -> Entry:
        # What is no text may have no hash: it is an unknown name like any other.
        return super().__getitem__(name) if isinstance(name, str) else self.__missing__(name)

    def __missing__(self, name: str) -> Entry:
        raise SettingError(f"Unknown {self._what} {shown(name)}: expected one of {', '.join(self)}.")

    def enter(self, name: str, entry: Entry) -> None:
        """Add an entry under a name that is not taken."""
        if name in self:
            raise SettingError(f"There is a {self._what} {name!r} already: give the new one another name.")
        self[name] = entry
