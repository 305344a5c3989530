"""Files of a Hugging Face folder, for networks: what is wrong with them is a `ModelError`."""

from __future__ import annotations

from pathlib import Path

from idc_core.errors import DataError, ModelError
from idc_core.guarded import member as inside
from idc_core.guarded import read_json

MOST_SAID = 60
"""Characters of a name from outside that a message shows."""

MOST_NAME = 200
"""Characters of the name of a class."""


def member(folder: Path, name: str) -> Path | None:
    """Return the path of a file of a folder, or None where there is none; ModelError where it leads out of it."""
    try:
        return inside(folder, name)
    except DataError as error:
        raise ModelError(str(error)) from error


def read_member(folder: Path, name: str) -> dict[str, object] | None:
    """Return the JSON object of a file of a folder, or None where there is none; ModelError where it is damaged."""
    path = member(folder, name)
    try:
        return None if path is None else read_json(path, str(path), dict[str, object])
    except DataError as error:
        raise ModelError(str(error)) from error


def one_line(name: str, most: int = MOST_NAME) -> str:
    """Return a name from outside on one line: no control characters, none that turn the direction of writing."""
    shown = "".join(character if character.isprintable() else " " for character in name)
    return " ".join(shown.split())[:most] or "(no name)"
