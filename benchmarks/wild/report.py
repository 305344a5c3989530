"""docs/WILD.md from the results."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.wild.subjects import SOURCES

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"
_DOCUMENT = ROOT / "docs" / "WILD.md"
_WIDTH = 124

EQUAL, CONSERVED = 1e-3, 1e-2
"""Up to which error scores count as equal, and relevance as conserved."""

_Row = dict[str, Any]


def read_rows(source: str) -> dict[str, _Row]:
    """Return the results of a source by name."""
    path = RESULTS / f"{source}.jsonl"
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else []
    return {row["name"]: row for row in rows}


def write_document() -> None:
    """Write the document anew."""
    found = {source: list(read_rows(source).values()) for source in SOURCES}
    there = {source: rows for source, rows in found.items() if rows}
    parts = [_HEAD, _summary(there), *(_table(source, rows) for source, rows in there.items()), _refusals(there)]
    _DOCUMENT.write_text("\n\n".join(parts) + "\n")


_HEAD = """# In the wild

Networks that were not made for this project, as they are found, under its own commands. `make wild` installs the
packages of `benchmarks/wild/requirements.txt` into an environment of its own, runs `check-network` and `analyze` on
each network in a process of its own, and writes this page from what was seen. It takes hours and is no part of the
tests."""

_READ = """*Error*: largest difference between scores and what the network's own runtime returns, of the largest
number there, or of 1 where these are probabilities; up to {equal:g} counts as equal. Quantised files are computed as
floats and differ from their runtime by its rounding, which recurrent layers amplify step by step. Of `rawi_v3.int8`,
whose scores differ by 6 %, a calculation in NumPy without rounding gives ours within 1e-6, and one that rounds inputs
and states as onnxruntime does gives its own within 0.5 %. Nearly all of it is the rounding of the first inputs: one
embedding holds -6.8, so that their steps are 0.03 where they vary by 0.14; states of the first layer, which lie within
-1..1, are apart by 0.03 at the first step and by 0.21 at the sixteenth. `Leaky neurons` keep their state from call to
call, so that their own package gives other scores each time too. *Relevance*: its sum at the input less the
score that it started from, biases redistributed, of the largest score; up to {conserved:g} counts as conserved. It is
by the epsilon rule, or by the gamma rule where that loses its digits, and in double precision where the sum is further
off, as the sentence under the table says. *IDC*: at a layer in the middle, and at the layer that is analysed by
default. Inputs suit a network by shape and range and are not its own data: the coverages say that the way is open, and
nothing of the networks."""


def grid(row: _Row) -> bool:
    """Whether a network reached its coverage grid at both layers."""
    return "middle" in row and "late" in row


def _summary(found: dict[str, list[_Row]]) -> str:
    every = [row for rows in found.values() for row in rows]
    reached = sum(map(grid, every))
    lines = [
        f"**{reached} of {len(every)} networks reach the coverage grid, {_percent(reached, len(every))}; the goal is "
        "90 %.**",
        "",
        "| source | networks | open | equal to their runtime | relevance conserved | to the grid |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for source, rows in found.items():
        opened = [row for row in rows if row["opens"]]
        equal = sum(row.get("error", 1) <= EQUAL for row in rows)
        kept = sum(row.get("relevance", 1) <= CONSERVED for row in rows)
        part = sum(map(grid, rows))
        cells = [len(rows), len(opened), equal, kept, f"{part} ({_percent(part, len(rows))})"]
        lines.append(f"| {SOURCES[source]} | {' | '.join(map(str, cells))} |")
    raw = sum("raw" in row for row in every)
    return "\n".join([*lines, "", f"Raw exceptions: {raw}. {_READ.format(equal=EQUAL, conserved=CONSERVED)}"])


def _table(source: str, rows: list[_Row]) -> str:
    lines = [
        f"## {SOURCES[source]}",
        "",
        "| network | package | error | relevance | IDC, middle | IDC, late |",
        "|---|---|---:|---:|---:|---:|",
    ]
    numbers = _numbered(rows)
    for row in rows:
        if not row["opens"]:
            cells = [f"refused ({numbers[_why(row)]})", "", "", ""]
        else:
            cells = [
                _number(row.get("error")),
                _conserved(row, numbers),
                *(_idc(row, place, numbers) for place in _PLACES),
            ]
        package = f"{row['package']} {row['version']}".strip()
        lines.append(f"| {row['name']} | {package} | {' | '.join(cells)} |")
    return "\n".join(lines + _sentences(numbers))


_PLACES = ("middle", "late")


def _numbered(rows: list[_Row]) -> dict[str, int]:
    """Return a number for each sentence in which networks of a source are refused, in their order."""
    numbers: dict[str, int] = {}
    for row in rows:
        for why in (_why(row), _said_relevance(row)):
            if why:
                numbers.setdefault(why, len(numbers) + 1)
    return numbers


def _sentences(numbers: dict[str, int]) -> list[str]:
    return ["", *(f"{number}. {_wrapped(why)}" for why, number in numbers.items())] if numbers else []


def _why(row: _Row) -> str:
    return _plain(row.get("refused") or row.get("failed") or "")


def _plain(sentence: str) -> str:
    """Return a sentence without signs of Markdown."""
    return re.sub(r"([*_|<>`\[\]])", r"\\\1", sentence)[:600]


def _wrapped(text: str) -> str:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) + 1 > _WIDTH - 4:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "\n   ".join([*lines, line])


def _conserved(row: _Row, numbers: dict[str, int]) -> str:
    why, number = _said_relevance(row), _number(row.get("relevance"))
    return f"{number} ({numbers[why]})".strip() if why else number


def _said_relevance(row: _Row) -> str:
    return _plain(row.get("relevance_refused") or row.get("relevance_lost") or "")


def _idc(row: _Row, place: str, numbers: dict[str, int]) -> str:
    if place in row:
        return f"{100 * row[place]['idc']:.1f} %"
    return f"({numbers[_why(row)]})" if _why(row) else ""


def _number(value: float | None) -> str:
    return "" if value is None else "0" if value == 0 else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def _refusals(found: dict[str, list[_Row]]) -> str:
    """Say what does not reach the grid, by the kind that the sentence is of."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for rows in found.values():
        for row in rows:
            if not grid(row):
                kinds[_kind(_why(row))].append(row["name"])
    lines = ["## What is refused, and why", ""]
    lines += [_item(f"{kind}: {', '.join(names)}") for kind, names in sorted(kinds.items())] or ["Nothing."]
    return "\n".join(lines)


def _item(text: str) -> str:
    return "* " + _wrapped(text).replace("\n   ", "\n  ")


_KINDS = {
    "not a neural network": "Not a neural network",
    "is an operator that is not supported": "An operator that is not supported",
    "holds graphs of its own": "Branches and loops that depend on the input",
    "domain": "Operators of a runtime's own domain",
    "batch": "Predictions depend on the batch",
    "have several inputs": "Several inputs that do not follow from one",
    "one cluster only": "Neurons that give the same for all inputs that were tried",
    "seconds": "It takes too long",
}
"""Words of a sentence, and what kind of refusal it is; of several the first."""


def _kind(why: str) -> str:
    return next((kind for words, kind in _KINDS.items() if words in why), "Other")
