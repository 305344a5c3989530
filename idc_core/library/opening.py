"""From entries of the library to the registries: what was read once is a name like any other."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from idc_core.datasets import DATASETS
from idc_core.datasets.opening import open_data
from idc_core.datasets.preparation import Preparation
from idc_core.documents import may_see
from idc_core.errors import DataError, IdcError
from idc_core.library import store
from idc_core.library.entry import Entry, Stamp, plain_name
from idc_core.models import MODELS
from idc_core.models.opening import open_network
from idc_core.models.own import Found
from idc_core.models.scaling import Scaling

log = logging.getLogger("idc_core")

HIDDEN = "library-"
"""Beginning of names under which entries are tried, before anybody may choose them."""


@dataclass(frozen=True)
class _Entered:
    """What is in the registries of one entry, and how it was opened."""

    key: tuple[Any, ...]
    name: str
    kind: str
    owner: str
    shared: bool


_lock = threading.Lock()
_seen: list[tuple[Any, ...]] = [()]
_entered: dict[str, _Entered] = {}


def enter_all() -> None:
    """Bring the registries to what the library holds: networks and data sets that were read at least once.

    It costs one look at the folder where nothing has changed.
    """
    with _lock:
        now = store.ENTRIES.state()
        if now == _seen[0]:
            return
        found = {id: entry for id, entry in store.ENTRIES.listed().items() if entry.facts is not None}
        for id in [id for id in _entered if id not in found]:
            _remove(id)
        for entry in sorted(found.values(), key=lambda entry: entry.kind):  # data before the networks that take them
            try:
                _enter(entry)
            except IdcError as error:
                log.warning("The entry %r of the library is left out of the menus (%s)", entry.label, error)
                _remove(entry.id)
        _seen[0] = now


def owners() -> dict[str, str]:
    """Return whose a name of the registries is, for those that the library entered; empty: everybody's."""
    return {one.name: one.owner for one in list(_entered.values())}


def hidden(asker: str | None) -> set[str]:
    """Return the names of the registries that somebody does not see."""
    return {one.name for one in list(_entered.values()) if not may_see(one.owner, asker, shared=one.shared)}


def scaling_of(entry: Entry) -> Scaling | None:
    """Return what is done to inputs in front of an entry's network; None for nothing."""
    plain = entry.network_settings.scaling
    return None if plain is None else Scaling.from_json(dict(plain), f"The scaling of {entry.label}")


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


def preparation_of(entry: Entry) -> Preparation:
    """Return how an entry's files become inputs."""
    return Preparation.from_json(dict(entry.data_settings.preparation), f"The preparation of {entry.label}")


def _menu_label(entry: Entry) -> str:
    """Return an entry's name as menus and pages show it: without what Markdown or HTML would read as markup."""
    return " ".join(re.sub(r"[\\`*_\[\]<>&$~|:]", " ", entry.label).split()) or entry.name


@contextmanager
def named(entry: Entry) -> Iterator[None]:
    """Call a file by its own name in the errors of a block, not by where it lies or is kept."""
    try:
        yield
    except IdcError as error:
        said = str(error).replace(str(entry.path), entry.source if entry.content else plain_name(entry.path.name))
        raise type(error)(said.replace(HIDDEN + entry.id, entry.label)) from error


def _enter(entry: Entry) -> None:
    """Enter what can be chosen: it was read, and a network has data that are there."""
    if entry.network is not None and (not entry.network.layers or entry.network_settings.data not in DATASETS):
        _remove(entry.id)
        return
    data = DATASETS[entry.network_settings.data].edition if entry.network else 0
    # Not on the result of a check, nor on whose it is: what was read before stays in use.
    key = (replace(entry, check=None, owner="", shared=False), data)
    before = _entered.get(entry.id)
    _entered[entry.id] = _Entered(key, entry.name, entry.kind, entry.owner, entry.shared)
    if before is None or before.key != key:
        (_enter_network if entry.kind == "network" else _enter_data)(entry)


def _remove(id: str) -> None:
    entered = _entered.pop(id, None)
    if entered is not None:
        (MODELS if entered.kind == "network" else DATASETS).pop(entered.name, None)


def _enter_data(entry: Entry) -> None:
    opened = open_data(entry.path, name=entry.name, label=_menu_label(entry), preparation=preparation_of(entry))
    assert entry.data is not None
    # Menus ask for these: they must not read the file, which may be large, or gone.
    known = {"input_shape": entry.data.shape, "task": entry.data.task, "class_names": entry.data.class_names}
    opened.__dict__.update(known)


def _enter_network(entry: Entry) -> None:
    settings, facts = entry.network_settings, entry.network
    opened = open_network(
        entry.path,
        data=settings.data,
        name=entry.name,
        label=_menu_label(entry),
        layer=settings.layer,
        scaling=scaling_of(entry),
        explain=settings.explain or None,
    )
    if facts is not None:
        opened.__dict__["found"] = Found(facts.layers, facts.default_layer)
