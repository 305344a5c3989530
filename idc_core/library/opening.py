"""From entries of the library to the registries: what was read once is a name like any other."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from idc_core.datasets import DATASETS
from idc_core.datasets.registry import open_data
from idc_core.errors import DataError, IdcError
from idc_core.library import store
from idc_core.library.entry import Entry, Stamp, plain_name
from idc_core.models import MODELS
from idc_core.models.entry import Found
from idc_core.models.formats import Interface, format_of
from idc_core.models.network_file import NetworkFile, open_network
from idc_core.store.documents import may_see

log = logging.getLogger("idc_core")


_lock = threading.Lock()
_seen: list[tuple[object, ...]] = [()]
_entered: dict[str, tuple[Entry, int]] = {}
"""What is in the registries, by the entry's number, with the edition of the data that a network takes."""


def enter_all() -> None:
    """Bring the registries to what the library holds: networks and data sets that were read at least once.

    It costs one look at the folder where nothing has changed.
    """
    with _lock:
        now = store.ENTRIES.state()
        if now == _seen[0]:
            return
        read = {id: entry for id, entry in store.ENTRIES.listed().items() if entry.facts is not None}
        for id in set(_entered) - set(read):
            _remove(id)
        for entry in sorted(read.values(), key=lambda entry: entry.kind):  # data before the networks that take them
            try:
                _enter(entry)
            except IdcError as error:
                log.warning("The entry %r of the library is left out of the menus (%s)", entry.label, error)
                _remove(entry.id)
        _seen[0] = now


def owners() -> dict[str, str]:
    """Return whose a name of the registries is, for those that the library entered; empty: everybody's."""
    return {entry.name: entry.owner for entry, _ in list(_entered.values())}


def hidden(asker: str | None) -> set[str]:
    """Return the names of the registries that somebody does not see."""
    return {entry.name for entry, _ in list(_entered.values()) if not may_see(entry.owner, asker, shared=entry.shared)}


def _has_changed(entry: Entry) -> bool:
    """Whether the file of a path is another one than was read: what was found in it then is not told of it."""
    try:
        return not entry.content and Stamp.of(entry.path) != entry.stamp
    except DataError:
        return False


def remedy(entry: Entry) -> str:
    """Say what is unusual about an entry's file, and what to do; empty where it is as it was."""
    if entry.content:
        return (
            "" if entry.path.exists() else "Its file is missing: the upload was interrupted. Delete it, add it again."
        )
    try:
        same = Stamp.of(entry.path) == entry.stamp
    except DataError:
        return "Its file is gone or cannot be read. Put it back, or delete this entry."
    return "" if same else "Its file has changed since it was read. Read it again."


def network_file(entry: Entry) -> NetworkFile:
    """Return an entry's network with what it is opened with."""
    settings = entry.network_settings
    return NetworkFile(
        entry.path,
        entry.scaling,
        explain=settings.explain or None,
        output=settings.output,
        output_names=settings.output_names,
        held=settings.held,
        output_layout=settings.output_layout,
    )


def interface(entry: Entry) -> Interface:
    """Return what the file of a network says of its inputs and outputs; nothing of a kind that says none."""
    with named(entry):
        told = format_of(entry.path).interface
        return told(entry.path) if told else Interface()


def _menu_label(entry: Entry) -> str:
    """Return an entry's name as menus and pages show it: without what Markdown or HTML would read as markup."""
    return " ".join(re.sub(r"[\\`*_\[\]<>&$~|:]", " ", entry.label).split()) or entry.name


@contextmanager
def named(entry: Entry) -> Iterator[None]:
    """Call a file by its own name in the errors of a block, not by where it lies or is kept."""
    try:
        yield
    except IdcError as error:
        name = entry.source if entry.content else plain_name(entry.path.name)
        raise type(error)(str(error).replace(str(entry.path), name)) from error


def _enter(entry: Entry) -> None:
    """Enter what can be chosen: it was read, and a network has data that are there."""
    if entry.network is not None and (not entry.network.layers or entry.network_settings.data not in DATASETS):
        _remove(entry.id)
        return
    data = DATASETS[entry.network_settings.data].edition if entry.network else 0
    before, edition = _entered.get(entry.id, (None, 0))
    _entered[entry.id] = entry, data
    # What was read before stays in use where another result of a check, or whose it is, is all that has changed.
    same = before and replace(entry, check=before.check, owner=before.owner, shared=before.shared)
    if same is None or (before, edition) != (same, data):
        (_enter_network if entry.kind == "network" else _enter_data)(entry)


def _remove(id: str) -> None:
    if id in _entered:
        entry, _ = _entered.pop(id)
        (MODELS if entry.kind == "network" else DATASETS).pop(entry.name, None)


def _enter_data(entry: Entry) -> None:
    found = entry.data
    assert found is not None
    # Menus ask for these: they must not read the file, which may be large, or gone.
    known: dict[str, Any] = {"input_shape": found.shape, "task": found.task, "class_names": found.class_names}
    known, label = {} if _has_changed(entry) else known, _menu_label(entry)
    open_data(entry.path, name=entry.name, label=label, preparation=entry.preparation, **known)


def _enter_network(entry: Entry) -> None:
    assert entry.network is not None
    settings, label = entry.network_settings, _menu_label(entry)
    found = None if _has_changed(entry) else Found(entry.network.layers, entry.network.default_layer)
    open_network(network_file(entry), settings.data, name=entry.name, label=label, layer=settings.layer, found=found)
