"""Names of columns as people write them: with blanks around, with marks that nobody sees, and several times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from idc_core.errors import DataError

_MOST = 200
_UNSEEN = "\ufeff\u200b\u2060"
"""The mark of a byte order, and spaces without a width."""

TARGETS = ("label", "labels", "target", "targets", "class", "category", "y")
TEXTS = ("text", "sentence", "message", "content")
PICTURES = ("image", "img", "file", "path", "filename", "image_path")
SPLIT = "split"
_NUMBERING = re.compile(r"id|idx|index|rownames|row_id|#|unnamed: .*|level_0|__index_level_\d+__|")
"""Columns that number the rows, and are no features."""
_PLACE = re.compile(r" \(column \d+\)$")


def tidy_name(name: str) -> str:
    """Return a name without blanks around, with single ones inside, and without marks that nobody sees."""
    return " ".join(name.translate(dict.fromkeys(map(ord, _UNSEEN))).split())


def called(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the names that are among those known, in the order of these."""
    return [name for word in known for name in names if name.strip().lower() == word]


def is_numbering(name: str) -> bool:
    """Whether a column numbers the rows, by its name."""
    return _NUMBERING.fullmatch(repeated_name(name).strip().lower()) is not None


def is_known(name: str) -> bool:
    """Whether a name says what a column is, so that the row which holds it is a heading."""
    plain = name.strip().lower()
    return plain in {*TARGETS, *TEXTS, *PICTURES, SPLIT} - {"y"} or (len(plain) > 1 and is_numbering(plain))


def check_names(names: Sequence[str], what: str, where: str, least: int = 1) -> None:
    """Raise `DataError` where a name is there twice, is shorter or too long, or has signs that cannot be shown."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"{where}: the {what} {twice[:60]!a} is there twice; expected different names.")
    wrong = next((name for name in names if not (least <= len(name.strip()) <= _MOST and name.isprintable())), None)
    if wrong is not None:
        raise DataError(
            f"{where} has the {what} {wrong[:60]!a}; expected {least} to {_MOST} characters that can be shown: rename "
            "it, or take another column."
        )


def told_apart(names: Sequence[str]) -> list[str]:
    """Return names of which those that come again say their places, from 1; columns without a name stay so."""
    counts = Counter(names)
    return [f"{name} (column {place})" if name and counts[name] > 1 else name for place, name in enumerate(names, 1)]


def is_repeated(name: str) -> bool:
    """Whether `told_apart` has made a name."""
    return _PLACE.search(name) is not None


def repeated_name(name: str) -> str:
    """Return the name that a column has in its file."""
    return _PLACE.sub("", name)


def found_name(given: str, names: Sequence[str]) -> str | None:
    """Return the one of these names that a person means: the same, or the only one that differs in blanks alone."""
    if given in names:
        return given
    alike = [name for name in names if tidy_name(name) == tidy_name(given)]
    return alike[0] if len(alike) == 1 else None


def listed(names: Sequence[str], most: int = 30) -> str:
    """Write names for a message, each quoted so that no character of it is taken for the message's own."""
    text = ", ".join(ascii(name[:60]) for name in names[:most])
    return f"{text}, and {len(names) - most:,} more" if len(names) > most else text or "nothing"
