"""Tables that people open in a spreadsheet: names may be somebody else's, and none may run there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"[=+\-@\t\r](?!\d*\.?\d+([eE][+-]?\d+)?$)")
"""What a spreadsheet takes for a formula; a number with its sign is none."""


def inert(value: object) -> object:
    """Return a cell as a spreadsheet shows it and does not run it: an apostrophe stands before what is a formula."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def csv(table: pd.DataFrame) -> str:
    """Write a table so that its numbers can be read again exactly, and no text is a formula; the index is left out."""
    shown = table.map(inert).rename(columns=inert)
    text: str = shown.to_csv(index=False)
    return text
