"""The entries on disk: one checksummed file each, written whole or not at all.

Entries and contents change together only under one lock of all processes. An entry is written before its content
appears: whoever is killed leaves at most an entry whose file is missing, or content that the next deletion removes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from idc_core.base.files import keeping
from idc_core.errors import DataError, SettingError
from idc_core.guarded import read_json, seal_text
from idc_core.library.contents import contents_folder, remove
from idc_core.library.entry import Entry, plain_name
from idc_core.store.documents import Documents, read_sealed

_CONTENT = re.compile(r"([0-9a-f]{64}(\.[a-z0-9]{1,16}){1,2})?")


def _read(path: Path) -> Entry:
    where = f"The entry {path.name} of the library"
    entry = read_sealed(path, where, Entry)
    if entry.id != path.stem or not _CONTENT.fullmatch(entry.content):
        raise DataError(f"{where} holds another entry than its name says.")
    return entry


ENTRIES = Documents(
    "library/entries",
    "[0-9a-f]{16}",
    _read,
    unknown="There is no such entry in the library: it was deleted meanwhile.",
    what="The library",
    remedy="Delete it, and add its network or data again.",
    order=lambda entry: entry.label.lower(),
)
"""The entries by id, in the order of their labels."""


@contextmanager
def locked() -> Iterator[None]:
    """Let no other process or thread change which contents are in use; the system unlocks where one is killed."""
    folder = ENTRIES.folder.parent
    with keeping(folder, "The library"), FileLock(folder / ".lock"):
        yield


def write(entry: Entry) -> Entry:
    """Write an entry, in place of the one of its id, and return it as it is read again."""
    text = json.dumps(asdict(entry), allow_nan=False)
    ENTRIES.write(entry.id, seal_text(text))
    return read_json(text.encode(), "The entry", Entry)


def replaced(entry: Entry, **changes: Any) -> Entry:
    """Write an entry with some fields changed, unless it was deleted meanwhile, and return it."""
    return write(replace(ENTRIES.find(entry.id), **changes))


def rename(entry: Entry, label: str) -> Entry:
    """Give an entry another name for people; addresses keep the old one. SettingError where it is empty."""
    label = plain_name(label)
    if not label:
        raise SettingError("A name is needed; give at least one letter or digit.")
    return replaced(entry, label=label)


def share(entry: Entry, shared: bool = True) -> Entry:
    """Show an entry to all visitors, with the data that a network takes; or to its owner alone, without them."""
    if shared and entry.kind == "network":
        for other in ENTRIES.listed().values():
            if (other.kind, other.name, other.owner) == ("data", entry.network_settings.data, entry.owner):
                replaced(other, shared=True)
    return replaced(entry, shared=shared)


def delete(id: str, asker: str | None = None) -> None:
    """Delete an entry as `ENTRIES` does, and its content where no other entry has it; a path's files stay."""
    with locked():
        ENTRIES.delete(id, asker)
        _clear()


def _clear() -> None:
    """Remove contents that no entry has; none while a damaged entry may have them."""
    in_use = {entry.content for entry in ENTRIES.listed().values()}
    if not ENTRIES.damaged():
        for path in list(contents_folder().glob("*")):
            if not path.name.startswith(".") and path.name not in in_use:
                remove(path.name)
