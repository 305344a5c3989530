"""A gate's report as Markdown, for the summary of a CI run or a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from idc_core.gate.verdicts import GateReport, Result

_SIGNS: dict[Result, str] = {"kept": "✅ kept", "broken": "❌ broken", "could not run": "⚠️ could not run"}


def to_markdown(report: GateReport) -> str:
    """Return the report as the text of a Markdown file."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: GateReport) -> Iterator[str]:
    yield from (f"## IDC Studio: {report.headline}", "")
    yield from ("| check | limit | value | wanted | baseline | result |", "|---|---|---|---|---|---|")
    for check in report.checks:
        for verdict in check.verdicts:
            cells = (check.name, verdict.limit, verdict.value, verdict.wanted, verdict.before)
            yield f"| {' | '.join(map(_plain, cells))} | {_SIGNS[verdict.result]} |"
    for check, verdict in report.failed():
        yield from ("", f"**{_plain(check.name)}**: {_plain(verdict.sentence)}")
        if verdict.details:
            yield from ("", *(f"    {line}" for line in verdict.details))
    yield ""
    for check in report.checks:
        if check.facts:
            facts = ", ".join(f"{name} {_plain(value)}" for name, value in check.facts.items())
            yield f"- {_plain(check.name)}: {facts}; {check.seconds:.1f} s"


def _plain(text: str) -> str:
    """Return a text without what Markdown or HTML would read as markup."""
    return re.sub(r"([\\`*_\[\]<>|~#&$])", r"\\\1", " ".join(text.split()))
