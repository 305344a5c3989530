"""Numbers and names as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from idc_core.figures.wording import signed

__all__ = [
    "cell_name",
    "cluster_name",
    "count",
    "literal",
    "lower",
    "parse_cell",
    "percent",
    "plural",
    "signed",
    "times",
]

LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"))

_MARKUP = re.compile(r"[\\`*_\[\]<>&$~|]|:(?=[\w+])|^[#+=:-]", re.MULTILINE)
_ITEM = re.compile(r"^(\d+)(?=[.)])", re.MULTILINE)


def literal(value: object) -> str:
    """Write an error, or a text from outside, so that Markdown shows its characters and lines as they are."""
    lines = re.sub(r"\s*[\r\n]\s*", "\n", str(value).strip())
    return _ITEM.sub(r"\1\\", _MARKUP.sub(r"\\\g<0>", lines)).replace("\n", "  \n")


def percent(share: float) -> str:
    """Write a share of one in per cent, with three digits where it is small."""
    if share in (0, 1):
        return f"{100 * int(share)} %"
    value = 100.0 * share
    # By way of a decimal, since a power of ten is no way to write a share.
    return f"{value:.1f} %" if value >= 1 else f"{Decimal(f'{value:.2g}'):f} %"


def count(number: int) -> str:
    """Write a whole number with separators, and in millions and more where it is large."""
    for size, unit in LARGE:
        if number >= 10 * size or (size == 1e6 and number >= size):
            return f"{number / size:.1f} {unit}"
    return f"{number:,}"


def times(factor: int) -> str:
    """Say behind a picture's name how far it is magnified; nothing where it is not."""
    return f", times {factor}" if factor > 1 else ""


def plural(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def cluster_name(cluster: int, clusters: int) -> str:
    """Name one of a neuron's clusters by its place among them."""
    if clusters == 1:
        return "only cluster"
    if cluster == 0:
        return "lowest cluster"
    return "highest cluster" if cluster == clusters - 1 else f"cluster {cluster}"


def cell_name(cell: Sequence[int]) -> str:
    """Write a cell as the cluster indices of its neurons."""
    return "-".join(str(int(index)) for index in cell)


def parse_cell(text: str, sizes: Sequence[int]) -> tuple[int, ...] | None:
    """Read a cell from text such as ``2-1-0``; None where it is none of this grid."""
    parts = [part for part in text.replace("|", "-").replace(",", "-").replace(" ", "-").split("-") if part]
    if len(parts) != len(sizes) or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    cell = tuple(int(part) for part in parts)
    return cell if all(index < size for index, size in zip(cell, sizes, strict=True)) else None


def lower(label: str) -> str:
    """Write a label inside a sentence; abbreviations, names such as DeepGini and numbers stay as they are."""
    first = label.split(maxsplit=1)[0]
    return label if any(letter.isupper() for letter in first[1:]) else label[0].lower() + label[1:]
