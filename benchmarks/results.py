"""What a run of the benchmarks says: targets missed first, what got worse since the last kept run, then every table."""

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measure import Row, table

LAST = Path(__file__).with_name("last.json")
"""Ratios of the run that RESULTS.md holds."""

WORSE = 0.2
"""Share by which a ratio may be worse than before without being told: medians of two runs differ by as much."""

Sections = Mapping[str, list[Row]]
"""Rows by heading."""


def ratios(sections: Sections) -> dict[str, float]:
    """Return the ratio of every row that is compared with something, by what it is; smaller is better."""
    return {
        f"{heading}: {row.what} / {row.against}": row.seconds / row.against_seconds
        for heading, rows in sections.items()
        for row in rows
        if row.against and not row.failed
    }


def worse(now: Mapping[str, float], before: Mapping[str, float], share: float = WORSE) -> list[str]:
    """Return a sentence per ratio that is worse than before by more than a share, the worst first."""
    every = {name: now[name] / before[name] for name in now if name in before}
    grown = {name: times for name, times in every.items() if times > 1 + share}
    return [
        f"{name}: {now[name]:.3g}, before {before[name]:.3g} ({100 * (grown[name] - 1):.0f} % worse)"
        for name in sorted(grown, key=grown.__getitem__, reverse=True)
    ]


def last() -> dict[str, float]:
    """Return the ratios of the last kept run; none where there was no run."""
    if not LAST.exists():
        return {}
    found: dict[str, float] = json.loads(LAST.read_text(encoding="utf-8"))
    return found


def keep(sections: Sections) -> None:
    """Keep the ratios for the next run to be compared with."""
    LAST.write_text(json.dumps(ratios(sections), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def document(machine: str, sections: Sections, notes: Mapping[str, str]) -> str:
    """Write RESULTS.md; `notes` stand below the tables, by heading."""
    missed = [(heading, row) for heading, rows in sections.items() for row in rows if not row.met]
    every = [row for rows in sections.values() for row in rows]
    count = sum(row.at_most is not None or row.times_faster is not None for row in every)
    failed = sum(bool(row.failed) for row in every)
    said = f"{len(missed) - failed} of {count} targets are missed."
    if failed:
        said += f" {failed} {'part' if failed == 1 else 'parts'} could not be measured."
    parts = ["# Speed", machine, "## Targets missed", said]
    if missed:
        parts.append(table([row for _, row in missed]))
    slower = worse(ratios(sections), last())
    parts += ["## Worse than in the last kept run", "\n".join(f"* {one}" for one in slower) or "Nothing."]
    for heading, rows in sections.items():
        parts += [f"## {heading}", *([table(rows)] if rows else []), *([notes[heading]] if heading in notes else [])]
    return "\n\n".join(parts) + "\n"
