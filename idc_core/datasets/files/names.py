"""Names of columns as people write them: with blanks around, with marks that nobody sees, and several times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_UNSEEN = "\ufeff\u200b\u2060"
"""The mark of a byte order, and spaces without a width."""

TARGETS = ("label", "labels", "target", "targets", "class", "category", "y")
TEXTS = ("text", "sentence", "message", "content")
PICTURES = ("image", "img", "file", "path", "filename", "image_path")
SPLIT = "split"
_NUMBERING = ("", "id", "index", "rownames", "__index_level_0__")
_UNNAMED = "unnamed: "
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
    plain = name.strip().lower()
    return plain in _NUMBERING or plain.startswith(_UNNAMED)


def is_known(name: str) -> bool:
    """Whether a name says what a column is, so that the row which holds it is a heading."""
    return name.strip().lower() in {*TARGETS, *TEXTS, *PICTURES, SPLIT, *_NUMBERING} - {"", "y"}


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
