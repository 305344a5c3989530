"""A gate's report as annotations of GitHub Actions: one line on stdout per limit that is not kept."""

from __future__ import annotations

from idc_core.gate.verdicts import GateReport


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
