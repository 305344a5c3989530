"""Numbers and names as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from idc_core.figures.wording import cell_name, cluster_name, count, percent, plural, rounded, signed

__all__ = [
    "cell_name",
    "cluster_name",
    "count",
    "literal",
    "lower",
    "parse_cell",
    "percent",
    "plural",
    "quoted",
    "rounded",
    "said_of_cell",
    "signed",
    "times",
]

_MARKUP = re.compile(r"[\\`*_\[\]<>&$~|]|:(?=[\w+])|^[#+=:-]", re.MULTILINE)
_ITEM = re.compile(r"^(\d+)(?=[.)])", re.MULTILINE)

_LONGEST_QUOTE = 60
"""Characters of a text that is quoted."""


def literal(value: object) -> str:
    """Write an error, or a text from outside, so that Markdown shows its characters and lines as they are."""
    lines = re.sub(r"\s*[\r\n]\s*", "\n", str(value).strip())
    return _ITEM.sub(r"\1\\", _MARKUP.sub(r"\\\g<0>", lines)).replace("\n", "  \n")


def times(factor: int) -> str:
    """Say behind a picture's name how far it is magnified; nothing where it is not."""
    return f", times {factor}" if factor > 1 else ""


def parse_cell(text: str, sizes: Sequence[int]) -> tuple[int, ...] | None:
    """Read a cell from text such as ``2-1-0``; None where it is none of this grid."""
    parts = [part for part in text.replace("|", "-").replace(",", "-").replace(" ", "-").split("-") if part]
    if len(parts) != len(sizes) or not all(part.isascii() and part.isdigit() and len(part) <= 3 for part in parts):
        return None
    cell = tuple(int(part) for part in parts)
    return cell if all(index < size for index, size in zip(cell, sizes, strict=True)) else None


def quoted(text: str) -> str:
    """Quote a text of an address; of a long one its beginning."""
    return f"\u201c{text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + '…'}\u201d"


def said_of_cell(text: str, sizes: Sequence[int]) -> str:
    """Say that a text is no cell of a grid, and what is expected."""
    return (
        f"{quoted(text)} is no cell of this grid. Expected {plural(len(sizes), 'number')} with hyphens between "
        f"them, from {cell_name([0] * len(sizes))} to {cell_name([size - 1 for size in sizes])}."
    )


def lower(label: str) -> str:
    """Write a label inside a sentence; abbreviations, names such as DeepGini and numbers stay as they are."""
    first = label.split(maxsplit=1)[0]
    return label if any(letter.isupper() for letter in first[1:]) else label[0].lower() + label[1:]
