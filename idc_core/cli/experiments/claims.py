"""Claims tested over several trainings, as a printed table and as a part of a page of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from idc_core.cli.console import table, write_whole
from idc_core.cli.experiments.base import Record

_VERDICTS = {
    "more": "yes",
    "little more": "yes, by little",
    "less": "the other way",
    "little less": "the other way, by little",
    "none": "no difference",
    "open": "open",
}
"""Verdicts in words; "little" and "no difference" are within the margin."""

_HEADING = ("network", "of", "difference", "95 % interval", "p", "g", "none within", "verdict")


def told_claims(name: str, networks: Mapping[str, Sequence[Sequence[Record]]], command: str, into: Path | None) -> None:
    """Test the claims of an experiment over the trainings of each network, print them, and write them where asked."""
    from idc_core.experiments.claims import CLAIMS, judged

    found = [one.rows() for one in judged(CLAIMS[name], networks)]
    for rows in found:
        print(f"\n{_title(rows)}\n{table([_HEADING, *map(_cells, rows)], '<<>>>>><')}")
    if into is not None:
        text = into.read_text(encoding="utf-8") if into.exists() else ""
        write_whole(into, with_part(text, command, _page(command, found)), "--into")
        print(f"\nwritten to {into}")


def _title(rows: Sequence[Record]) -> str:
    first = rows[0]
    return f"{first['claim']} ({first['networks']} trainings, {first['unit']}, none within {first['margin']})"


def _cells(row: Record) -> tuple[str, ...]:
    low, high = (f"{float(row[end] or 0):+.2f}" for end in ("low", "high"))
    p = float(row["p"] or 0)
    return (
        str(row["model"]),
        str(row["of"]),
        f"{float(row['difference'] or 0):+.2f}",
        f"{low} to {high}",
        "< 0.001" if p < 0.001 else f"{p:.3f}",
        f"{float(row['effect'] or 0):+.1f}",
        f"{float(row['within'] or 0):.2f}",
        _VERDICTS[str(row["verdict"])],
    )


def _page(command: str, found: Sequence[Sequence[Record]]) -> str:
    """Return claims as Markdown: the command, then a table each."""
    parts = ["<!-- not run: it takes minutes to hours -->", "```console", f"$ idc-studio {command}", "```", ""]
    for rows in found:
        parts += [f"**{_title(rows)}**", "", f"| {' | '.join(_HEADING)} |", "|" + "---|" * len(_HEADING)]
        parts += [*(f"| {' | '.join(_cells(row))} |" for row in rows), ""]
    return "\n".join(parts)


def with_part(text: str, command: str, part: str) -> str:
    """Return a page with the part that a command wrote, in place of its earlier one, else at the end."""
    begin, end = f"<!-- made by: {command} -->", f"<!-- end of: {command} -->"
    written = f"{begin}\n{part.strip()}\n{end}"
    if begin in text and end in text:
        before, _, rest = text.partition(begin)
        return before + written + rest.partition(end)[2]
    return f"{text.rstrip()}\n\n{written}\n".lstrip()
