"""Names of columns as people write them: with blanks around, with marks that nobody sees, and several times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_UNSEEN = "\ufeff\u200b\u2060"
"""The mark of a byte order, and spaces without a width."""
_PLACE = re.compile(r" \(column \d+\)$")


def tidy_name(name: str) -> str:
    """Return a name without blanks around, with single ones inside, and without marks that nobody sees."""
    return " ".join(name.translate(dict.fromkeys(map(ord, _UNSEEN))).split())


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
