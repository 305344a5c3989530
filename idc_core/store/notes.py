"""Notes: what a person wrote about a test, a neuron, a cell or a pair of classes, kept until they delete it.

In the folder "notes" of IDC_HOME, or of the platform's cache folder, one small JSON file per note, in plain text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from idc_core.errors import DataError, SettingError
from idc_core.guarded import read_json
from idc_core.store.documents import Documents, may_change

LONGEST = 2_000
"""Characters of a note at most."""

LONGEST_NAME = 40
"""Characters of a name at most."""

_MOST, _MOST_OF_ALL = 1_000, 10_000
"""Notes of one person at most, and of all together."""

_LONGEST_LINE = 300


@dataclass(frozen=True)
class Note:
    """A note, by the name of its file; `written` is the time, UTC, as ISO 8601 writes it.

    `subject` and `setup` say in a line what it is about; `place` is the same as an address of the dashboard writes it,
    by the names of its parts. `owner` is whose it is, empty for everybody's. With `names`, the text is what a person
    calls it.
    """

    name: str
    written: str
    subject: str
    setup: str
    text: str
    place: dict[str, str]
    owner: str = ""
    names: bool = False
    shared: ClassVar[bool] = False


def _read(path: Path) -> Note:
    """Read a note; `DataError` where its file holds what this program does not write."""
    note = read_json(path, f"The note {path}", Note)
    lines = (note.subject, note.setup, note.written, note.owner, *note.place, *note.place.values())
    fits = (
        note.name == path.stem
        and 0 < len(note.text) <= LONGEST
        and _printable(note.text) == note.text
        and all(_line(line) == line for line in lines)
    )
    try:
        aware = datetime.fromisoformat(note.written).tzinfo is not None
    except ValueError:
        aware = False
    if not fits or not aware:
        raise DataError(f"The note {path} was not written by this program, or was changed: delete it.")
    return note


NOTES = Documents(
    "notes",
    "note-[0-9a-f]{16}",
    _read,
    unknown="Expected the name of a note, got {id!r}.",
    what="The note",
    order=lambda note: note.written,
)
"""The notes that are kept, by name."""


def write_note(
    text: str, subject: str, setup: str, place: Mapping[str, str], owner: str = "", *, names: bool = False
) -> Note:
    """Keep a note; characters that cannot be printed become blanks.

    Parameters
    ----------
    text : str
        At most `LONGEST` characters.
    subject, setup : str
        What it is about, and on which network, tests and layer.
    place : mapping
        The same as the dashboard's address writes it.
    owner : str
        Whose it is; by default everybody's.
    names : bool
        Whether it is the name of what it is about; see `write_name`.

    Returns
    -------
    Note

    Raises
    ------
    SettingError
        If it is empty or too long, or its owner, or all together, have as many notes as they may.
    DataError
        If it cannot be written.
    """
    text = _printable(text.replace("\r\n", "\n")).strip()
    if not text:
        raise SettingError("A note needs a text.")
    if len(text) > LONGEST:
        raise SettingError(f"A note has at most {LONGEST:,} characters, this one has {len(text):,}: shorten it.")
    if sum(note.owner == owner for note in NOTES.listed().values()) >= _MOST:
        raise SettingError(f"You keep {_MOST:,} notes, which is the limit for one person: delete some first.")
    if len(NOTES.state()) >= _MOST_OF_ALL:
        raise SettingError(f"{_MOST_OF_ALL:,} notes are kept here, which is the limit for all: delete some first.")
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    name = f"note-{secrets.token_hex(8)}"
    note = Note(name, now, _line(subject), _line(setup), text, dict(place), owner, names)
    NOTES.write(name, json.dumps(asdict(note), ensure_ascii=False).encode())
    return note


def write_name(
    text: str, subject: str, setup: str, place: Mapping[str, str], owner: str = "", asker: str | None = None
) -> None:
    """Keep what a person calls a thing, a short line, in place of what they called it before; an empty one forgets it.

    Parameters and errors as in `write_note`; `asker` as in `delete_note`.
    """
    for note in kept_notes(asker):
        if note.names and note.place == dict(place) and note.owner == owner:
            delete_note(note.name, asker)
    if line := _line(text)[:LONGEST_NAME].rstrip():
        write_note(line, subject, setup, place, owner, names=True)


def names_of(part: str, place: Mapping[str, str], asker: str | None = None) -> dict[str, str]:
    """Return the names that are kept of one kind of thing at a place, by what the address says of each.

    `part` is the kind's name in the address, such as "neuron"; `place` what else their places say, no more and no less.
    Of several names of one thing the latest holds.
    """
    found: dict[str, str] = {}
    for note in kept_notes(asker):
        others = {name: text for name, text in note.place.items() if name != part}
        if note.names and part in note.place and others == dict(place):
            found.setdefault(note.place[part], note.text)
    return found


def kept_notes(asker: str | None = None) -> list[Note]:
    """Return the notes that can be read, the latest first: those that somebody may see, all for None."""
    return list(reversed(NOTES.listed(asker).values()))


def delete_note(name: str, asker: str | None = None) -> None:
    """Delete a note, damaged or not; one that is not there is no mistake, as another session may have deleted it.

    Parameters
    ----------
    name : str
    asker : str, optional
        Whoever wants it to go; None may delete all, somebody only their own.

    Raises
    ------
    SettingError
        If it is no name of a note, or the note is somebody else's.
    DataError
        If it cannot be deleted.
    """
    path, note = NOTES.path(name), NOTES.listed().get(name)
    if asker is not None and path.exists() and (note is None or not may_change(note.owner, asker)):
        raise SettingError("This note is somebody else's: only they can delete it.")
    NOTES.delete(name, missing_ok=True)


def notes_json(notes: Sequence[Note]) -> str:
    """Write notes as JSON, without their owners."""
    rows = [{name: value for name, value in asdict(note).items() if name != "owner"} for note in notes]
    return json.dumps(rows, ensure_ascii=False, indent=1)


def _line(text: str) -> str:
    """Return a text as one short line."""
    return " ".join(_printable(text).split())[:_LONGEST_LINE].rstrip()


def _printable(text: str) -> str:
    """Return a text with blanks for what cannot be printed, but for ends of lines."""
    return "".join(character if character == "\n" or character.isprintable() else " " for character in text)
