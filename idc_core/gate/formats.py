"""A gate's report in the formats of others: annotations of GitHub Actions, JUnit XML and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from idc_core.gate.verdicts import CheckReport, GateReport, Result, Verdict


def to_annotations(report: GateReport) -> str:
    """Return the annotations, one per line; empty where all limits are kept."""
    return "\n".join(
        annotation(
            report.file,
            f"{check.name}: {verdict.limit} {verdict.result}",
            "\n".join((verdict.sentence, *verdict.details)),
        )
        for check, verdict in report.failed()
    )


def annotation(file: str, title: str, message: str) -> str:
    """Return one annotation of a file, escaped as GitHub's runner reads it."""
    return f"::error file={_property(file)},title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold."""


def to_junit(report: GateReport) -> str:
    """Return the report as the text of an XML file."""
    total = sum(len(check.verdicts) for check in report.checks)
    root = ET.Element("testsuites", _attributes(f"IDC Studio: {report.file}", report, total))
    for check in report.checks:
        suite = ET.SubElement(root, "testsuite", _attributes(check.name, check, len(check.verdicts)))
        if check.facts:
            properties = ET.SubElement(suite, "properties")
            for name, value in check.facts.items():
                ET.SubElement(properties, "property", name=_clean(name), value=_clean(value))
        for verdict in check.verdicts:
            _add_case(suite, check, verdict)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: ET.Element, check: CheckReport, verdict: Verdict) -> None:
    name = " ".join(filter(None, (verdict.limit, verdict.wanted)))
    case = ET.SubElement(suite, "testcase", classname=_clean(check.name), name=_clean(name))
    if verdict.result != "kept":
        kind = "failure" if verdict.result == "broken" else "error"
        element = ET.SubElement(case, kind, message=_clean(verdict.sentence), type=verdict.result)
        element.text = _clean("\n".join((verdict.sentence, *verdict.details)))


def _attributes(name: str, one: GateReport | CheckReport, tests: int) -> dict[str, str]:
    counts = {"tests": tests, "failures": one.count("broken"), "errors": one.count("could not run")}
    return {"name": _clean(name), **{key: str(count) for key, count in counts.items()}, "time": f"{one.seconds:.3f}"}


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


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
