"""Names of the library: networks and data that a person added there, by the name or the label that they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from idc_core.base.parameters import shown
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.library import Entry

_KINDS = {"models": ("network", "network"), "data": ("data", "data set")}
"""Kinds of names that the library has: what an entry calls them, and what a sentence does."""


def in_library(kind: str, text: str, registry: Mapping[str, object]) -> str:
    """Return the name in the registry of what the library calls so, once it is entered there; empty where nothing is.

    An entry's own name, of which there is one, comes before the labels that people give.

    Raises
    ------
    SettingError
        If several entries have the label, or it cannot be opened yet.
    """
    if kind not in _KINDS:
        return ""
    from idc_core import library

    entries = [entry for entry in _entries(kind) if text in (entry.name, entry.label)]
    entries = [entry for entry in entries if entry.name == text] or entries
    if not entries:
        return ""
    if len(entries) > 1:
        names = " or ".join(sorted(entry.name for entry in entries))
        raise SettingError(
            f"names {len(entries)} {_KINDS[kind][1]}s of the library, all called {shown(text)}: give {names}"
        )
    library.enter_all()
    if entries[0].name not in registry:
        raise SettingError(f"names the {_KINDS[kind][1]} {shown(text)} of the library, {_reason(entries[0])}")
    return entries[0].name


def library_names(kind: str) -> list[str]:
    """Return the names in the registries of what the library holds of a kind."""
    return [entry.name for entry in _entries(kind)] if kind in _KINDS else []


def enter_library(kind: str) -> None:
    """Enter what the library holds in the registries, where a kind of names has such."""
    if kind in _KINDS:
        from idc_core import library

        library.enter_all()


def _entries(kind: str) -> list[Entry]:
    from idc_core import library

    return [entry for entry in library.ENTRIES.listed().values() if entry.kind == _KINDS[kind][0]]


def _reason(entry: Entry) -> str:
    """Say why an entry is not in the registries, and what to do."""
    from idc_core import library

    if remedy := library.remedy(entry):
        return f"which cannot be opened: {remedy[0].lower()}{remedy[1:].rstrip('.')}"
    if entry.facts is None:
        return "which has not been read yet: open its details on the Library page"
    if entry.kind == "network" and not entry.network_settings.data:
        return "which has no data yet: choose them on the Library page, or give the network's path with --data"
    return "which cannot be opened, as what it takes is gone: choose its data again on the Library page"
