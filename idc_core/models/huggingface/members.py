"""Files of a Hugging Face folder, for networks: what is wrong with them is a `ModelError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from idc_core.errors import DataError, ModelError
from idc_core.guarded import member, read_json

MOST_SAID = 60
"""Characters of a name from outside that a message shows."""

MOST_NAME = 200
"""Characters of the name of a class."""


@contextmanager
def of_a_network() -> Iterator[None]:
    """Raise what is wrong with a file that is read in this block, or in the decorated function, as a `ModelError`."""
    try:
        yield
    except DataError as error:
        raise ModelError(str(error)) from error


def read_member(folder: Path, name: str) -> dict[str, object] | None:
    """Return the JSON object of a file of a folder, or None where there is none."""
    path = member(folder, name)
    return None if path is None else read_json(path, str(path), dict[str, object])


def one_line(name: str, most: int = MOST_NAME) -> str:
    """Return a name from outside on one line: no control characters, none that turn the direction of writing."""
    shown = "".join(character if character.isprintable() else " " for character in name)
    return " ".join(shown.split())[:most] or "(no name)"
