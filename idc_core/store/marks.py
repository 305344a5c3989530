"""What a person says of a kept result: a name, and that it is never removed to make room."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from idc_core.errors import DataError
from idc_core.guarded import damaged, seal_text
from idc_core.store.documents import Documents, read_sealed


@dataclass(frozen=True)
class Mark:
    """A person's own name for a result, empty where there is none, whether it is pinned, and shared with others.

    `owner` is whoever says it, hexadecimal digits, by default everybody; the name of the file tells it.
    """

    name: str = ""
    pinned: bool = False
    shared: bool = False
    owner: str = field(default="", compare=False)


def _read(path: Path) -> Mark:
    return replace(read_sealed(path, str(path), Mark), owner=path.stem.partition("-")[2])


_MARKS = Documents(
    "marks", "[0-9a-f]{32}(-[0-9a-f]{1,64})?", _read, unknown="There is no such result.", what="The mark"
)


def mark(id: str, said: Mark) -> None:
    """Say something of the result of this id; an empty mark takes back what its owner said.

    Raises
    ------
    SettingError
        If it is no id.
    DataError
        If it cannot be written.
    """
    name = f"{id}{said.owner and '-'}{said.owner}"
    if said == Mark():
        _MARKS.delete(name, missing_ok=True)
    else:
        content = {"name": said.name, "pinned": said.pinned, "shared": said.shared}
        _MARKS.write(name, seal_text(json.dumps(content)))


def marks(owner: str = "") -> dict[str, Mark]:
    """Return what an owner and everybody said, and the names of what others share, by the ids of results.

    What a disk damaged is as if it were not said, and logged.
    """
    ours: dict[str, Mark] = {}
    others: dict[str, Mark] = {}
    for name, entry in _MARKS.listed(owner).items():  # everybody's come before those of owners
        id = name.partition("-")[0]
        if entry.owner in ("", owner):
            ours[id] = entry
        else:
            others[id] = replace(entry, pinned=False)
    for name, reason in _MARKS.damaged().items():
        damaged(_MARKS.path(name), DataError(reason))
    shared = {id: replace(ours.get(id, entry), shared=True) for id, entry in others.items()}
    return {**ours, **shared}


def pinned() -> set[str]:
    """Return the ids of results that are never removed to make room."""
    return {name.partition("-")[0] for name, entry in _MARKS.listed().items() if entry.pinned}


def forget(id: str) -> None:
    """Take back what anybody said of a result."""
    for path, *_ in _MARKS.state():
        if path.stem.partition("-")[0] == id:
            _MARKS.delete(path.stem, missing_ok=True)
