"""Words on figures and pages: negative numbers with a minus, titles in lines of about the same length."""

from __future__ import annotations

import re
import textwrap

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


def balanced(text: str, width: int) -> list[str]:
    """Wrap a text into as few lines as `width` allows, none much shorter than the others."""
    text = _TOGETHER.sub(_HELD, text)
    lines = _wrapped(text, width)
    while width > 1 and len(narrower := _wrapped(text, width - 1)) == len(lines) and len(lines) > 1:
        lines, width = narrower, width - 1
    return [line.replace(_HELD, " ") for line in lines]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)
