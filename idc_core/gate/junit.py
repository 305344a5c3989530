"""A gate's report as JUnit XML, which most CI servers read: one suite per check, one case per limit."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from idc_core.gate.verdicts import CheckReport, GateReport, Verdict

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
