"""Numbers and names on figures, pages and reports as a person reads them; titles in lines of about the same length."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence

from idc_core.coverage.cells import cell_name, cluster_name

__all__ = [
    "balanced",
    "cell_name",
    "cluster_name",
    "count",
    "counted",
    "estimated",
    "percent",
    "plural",
    "readable_pieces",
    "rounded",
    "signed",
    "typeset",
]

_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"))

_HELD = "\ue000"
"""Stands, while lines are broken, for a blank that no line ends at."""

_TOGETHER = re.compile(r" (?=%)|(?<=\bm) (?==)|(?<=\bat) (?=m =)|(?<==) (?=\d)|(?<=\d) (?=points?\b)")
_NEGATIVE = re.compile(r"(?<![\w)\]-])-(?=\.?\d)")


def typeset(text: str) -> str:
    """Write the negative numbers of a text with a minus sign in place of a hyphen."""
    return _NEGATIVE.sub("\u2212", text)


def signed(value: float, how: str = "+.2f") -> str:
    """Write a number with its sign: `+` or a minus, and neither where it is zero as written."""
    text = format(value, how)
    return text.lstrip("+-") if not text.strip("+-0.,") else typeset(text)


def percent(share: float) -> str:
    """Write a share of one in per cent, with three digits where it is small."""
    if share in (0, 1):
        return f"{100 * int(share)} %"
    value = 100.0 * share
    return f"{value:.1f} %" if value >= 1 else f"{rounded(value)} %"


def rounded(number: float) -> str:
    """Write a number with two digits that count, the second also where it is a zero, and without a power of ten."""
    number = float(f"{number:.2g}")
    digits = max(0, 1 - math.floor(math.log10(abs(number)))) if number else 0
    return typeset(f"{number:.{digits}f}")


def count(number: int) -> str:
    """Write a whole number with separators, and in millions and more where it is large."""
    for size, unit in _LARGE:
        if number >= 10 * size or (size == 1e6 and number >= size):
            return f"{number / size:.1f} {unit}"
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def counted(what: str, part: int, whole: int, noun: str) -> str:
    """Say how many of all things are of a kind: "Misclassified: 13 of 540 tests (2.4 %)"."""
    share = f" ({percent(part / whole)})" if 0 < part < whole else ""
    return f"{what}: {count(part)} of {plural(whole, noun)}{share}"


def estimated(what: str, value: str, low: str, high: str, level: str = "95 %") -> str:
    """Say a number with its interval, and how often that holds."""
    return f"{what}: {value} ({low} to {high}, {level} interval)"


def balanced(text: str, width: int) -> list[str]:
    """Wrap a text into as few lines as `width` allows, none much shorter than the others."""
    text = _TOGETHER.sub(_HELD, text)
    lines = _wrapped(text, width)
    while width > 1 and len(narrower := _wrapped(text, width - 1)) == len(lines) and len(lines) > 1:
        lines, width = narrower, width - 1
    return [line.replace(_HELD, " ") for line in lines]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def readable_pieces(tokens: Sequence[str]) -> list[str]:
    """Return the pieces of words so that they read on with nothing between them: a space stands where a word begins.

    Pieces that go on with a word begin with ``##`` in vocabularies as of BERT; in others what begins a word begins with
    a space.
    """
    if any(token.startswith(" ") for token in tokens):
        return list(tokens)
    return [token[2:] if token.startswith("##") and len(token) > 2 else f" {token}" for token in tokens]
