"""What a person says of a kept result: a name, and that it is never removed to make room."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from idc_core.errors import DataError, SettingError
from idc_core.files import cache_folder, keeping, write_whole
from idc_core.guarded import damaged, open_sealed_text, read_content, read_json, seal_text

_ID = re.compile(r"[0-9a-f]{32}")
_OWNER = re.compile(r"[0-9a-f]{0,64}")


@dataclass(frozen=True)
class Mark:
    """A person's own name for a result, empty where there is none, whether it is pinned, and shared with others."""

    name: str = ""
    pinned: bool = False
    shared: bool = False


def mark(id: str, said: Mark, owner: str = "") -> None:
    """Say something of the result of this id; an empty mark takes back what was said.

    Parameters
    ----------
    id : str
    said : Mark
    owner : str
        Whoever says it, hexadecimal digits; by default everybody.

    Raises
    ------
    SettingError
        If it is no id.
    DataError
        If it cannot be written.
    """
    path = _path(id, owner)
    with keeping(path.parent, "The mark"):
        if said == Mark():
            path.unlink(missing_ok=True)
        else:
            write_whole(path, seal_text(json.dumps(asdict(said))))


def marks(owner: str = "") -> dict[str, Mark]:
    """Return what an owner and everybody said, and the names of what others share, by the ids of results.

    What a disk damaged is as if it were not said, and logged.
    """
    ours: dict[str, Mark] = {}
    others: dict[str, Mark] = {}
    for (id, whose), said in _all().items():
        if whose in ("", owner):
            ours[id] = said  # an owner's own comes behind everybody's
        elif said.shared:
            others[id] = replace(said, pinned=False)
    shared = {id: replace(ours.get(id, said), shared=True) for id, said in others.items()}
    return {**ours, **shared}


def pinned() -> set[str]:
    """Return the ids of results that are never removed to make room."""
    return {id for (id, _), said in _all().items() if said.pinned}


def forget(id: str) -> None:
    """Take back what anybody said of a result."""
    with keeping(_folder(), "The mark"):
        for path in _folder().glob(f"{id}*.json"):
            path.unlink(missing_ok=True)


def _all() -> dict[tuple[str, str], Mark]:
    """Return every mark by id and owner, everybody's before those of owners."""
    found = {}
    for path in sorted(_folder().glob("*.json"), key=lambda one: one.stem):
        id, _, owner = path.stem.partition("-")
        try:
            said = read_json(open_sealed_text(read_content(path, str(path)), str(path)), str(path), Mark)
        except DataError as error:
            damaged(path, error)
        else:
            found[id, owner] = said
    return found


def _folder() -> Path:
    return cache_folder() / "marks"


def _path(id: str, owner: str) -> Path:
    if not _ID.fullmatch(id) or not _OWNER.fullmatch(owner):
        raise SettingError("There is no such result.")
    return _folder() / f"{id}{owner and '-'}{owner}.json"
