"""The entries on disk: one checksummed file each, written whole or not at all.

Entries and contents change together only under one lock of all processes. An entry is written before its content
appears: whoever is killed leaves at most an entry whose file is missing, or content that the next look removes.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from idc_core.errors import DataError, SettingError
from idc_core.files import keeping, write_whole
from idc_core.guarded import open_sealed_text, read_content, read_json, seal_text
from idc_core.library.contents import remove
from idc_core.library.entry import Entry, plain_name
from idc_core.library.places import contents_folder, entries_folder, library_folder
from idc_core.people import may_change, may_see

_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Damaged:
    """An entry that cannot be read, and why."""

    id: str
    reason: str


def new_id() -> str:
    """Return a name that no other entry has."""
    return secrets.token_hex(8)


@contextmanager
def locked() -> Iterator[None]:
    """Let no other process or thread change which contents are in use; the system unlocks where one is killed."""
    folder = library_folder()
    with keeping(folder, "The library"), FileLock(folder / ".lock"):
        yield


def listing() -> tuple[tuple[str, int, int], ...]:
    """Return names, inodes and times of the entries: equal as long as none has changed."""
    found = []
    for path in sorted(entries_folder().glob("*.json")):
        with suppress(OSError):  # it was deleted meanwhile
            about = path.stat()
            found.append((str(path), about.st_ino, about.st_mtime_ns))
    return tuple(found)


def listed(owner: str | None = None) -> list[Entry | Damaged]:
    """Return the entries in the order of their labels, damaged ones last.

    Parameters
    ----------
    owner : str, optional
        Only what this one may see; None: all.
    """
    found = [_read(Path(name), inode, changed) for name, inode, changed in listing()]
    whole = [one for one in found if isinstance(one, Entry) and may_see(one.owner, owner, shared=one.shared)]
    damaged = [one for one in found if isinstance(one, Damaged)]
    return [*sorted(whole, key=lambda one: (one.label.lower(), one.id)), *damaged]


def entries(owner: str | None = None) -> list[Entry]:
    """Return the entries that can be read, as `listed` does."""
    return [one for one in listed(owner) if isinstance(one, Entry)]


def find(id: str, owner: str | None = None) -> Entry:
    """Return one entry.

    Raises
    ------
    SettingError
        If there is none of that id, or it is somebody else's.
    DataError
        If it is damaged.
    """
    found = next((one for one in listed(owner) if one.id == id), None)
    if found is None:
        raise SettingError("There is no such entry in the library: it was deleted meanwhile.")
    if isinstance(found, Damaged):
        raise DataError(found.reason)
    return found


def own(id: str, owner: str | None) -> Entry:
    """Return an entry that somebody may change; raises as `find`, also where they only see it."""
    found = find(id, owner)
    if not may_change(found.owner, owner, shared=found.shared):
        raise SettingError(f"{found.label} is somebody else's, who shares it: only they can change it.")
    return found


def write(entry: Entry) -> Entry:
    """Write an entry, in place of the one of its id, and return it as it is read again."""
    text = json.dumps(asdict(entry), allow_nan=False)
    with keeping(entries_folder(), "The library"):
        write_whole(_path(entry.id), seal_text(text))
    return read_json(text.encode(), "The entry", Entry)


def replaced(entry: Entry, **changes: Any) -> Entry:
    """Write an entry with some fields changed, unless it was deleted meanwhile, and return it."""
    return write(replace(find(entry.id), **changes))


def rename(entry: Entry, label: str) -> Entry:
    """Give an entry another name for people; addresses keep the old one. SettingError where it is empty."""
    label = plain_name(label)
    if not label:
        raise SettingError("A name is needed; give at least one letter or digit.")
    return replaced(entry, label=label)


def share(entry: Entry, shared: bool = True) -> Entry:
    """Show an entry to all visitors, with the data that a network takes; or to its owner alone, without them."""
    if shared and entry.kind == "network":
        for one in entries():
            if one.kind == "data" and one.name == entry.network_settings.data and one.owner == entry.owner:
                replaced(one, shared=True)
    return replaced(entry, shared=shared)


def delete(id: str) -> None:
    """Delete an entry, damaged or not, and its content where no other entry has it; a path's files stay.

    Raises
    ------
    SettingError
        If there is none.
    DataError
        If it cannot be deleted.
    """
    path = _path(id)
    with locked():
        try:
            path.unlink()
        except FileNotFoundError as error:
            raise SettingError("There is no such entry in the library: it was deleted meanwhile.") from error
        except OSError as error:
            raise DataError(f"{path} cannot be deleted: {error.strerror}.") from error
        _clear()


def clear() -> None:
    """Remove contents that no entry has; none while a damaged entry may have them."""
    with locked():
        _clear()


def _clear() -> None:
    found = listed()
    if any(isinstance(one, Damaged) for one in found):
        return
    in_use = {one.content for one in found if isinstance(one, Entry)}
    for path in list(_visible(contents_folder())):
        if path.name not in in_use:
            remove(path.name)


def _visible(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob("*") if not path.name.startswith("."))


def _path(id: str) -> Path:
    # An id can come from a page: it must not lead elsewhere.
    if not _ID.fullmatch(id):
        raise SettingError("There is no such entry in the library.")
    return entries_folder() / f"{id}.json"


@lru_cache(maxsize=1024)
def _read(path: Path, inode: int, changed: int) -> Entry | Damaged:
    """Read an entry; `inode` and `changed` tell a new file of the same name."""
    where = f"The entry {path.name} of the library"
    try:
        entry = read_json(open_sealed_text(read_content(path, where), where), where, Entry)
        if entry.id != path.stem or not _safe(entry.content):
            raise DataError(f"{where} holds another entry than its name says.")
    except DataError as error:
        return Damaged(path.stem, f"{error} Delete it, and add its network or data again.")
    return entry


def _safe(content: str) -> bool:
    return not content or bool(re.fullmatch(r"[0-9a-f]{64}(\.[a-z0-9]{1,16}){1,2}", content))
