"""Which reports the dashboard made, and of what, so that they are found again: the folder "reports" of IDC_HOME."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from idc_core.errors import DataError
from idc_core.guarded import seal_text
from idc_core.store.documents import Documents, read_sealed

_MOST = 100
"""Reports of one person that are found again; of more, the oldest ones are left out."""


@dataclass(frozen=True)
class MadeReport:
    """A report: its setup as the dashboard's address says it and in a line, its day (UTC, ISO 8601), and its owner."""

    setup: dict[str, str]
    line: str
    date: str
    owner: str = ""
    shared: ClassVar[bool] = False


def _read(path: Path) -> MadeReport:
    report = read_sealed(path, f"The report {path}", MadeReport)
    if not all(text.isprintable() for text in (report.line, report.date, *report.setup.values())):
        raise DataError(f"The report {path} was not written by this program, or was changed: delete the file.")
    return report


REPORTS = Documents(
    "reports",
    "report-[0-9a-f]{16}",
    _read,
    unknown="There is no report {id!r}: it was deleted, or is somebody else's.",
    what="The report",
    order=lambda report: report.date,
)
"""The reports that were made, by id, the oldest first."""


def note_report(report: MadeReport) -> None:
    """Note that a report was made; the same one of the same day is noted once. DataError where it cannot be written."""
    content = json.dumps(asdict(report), ensure_ascii=False, sort_keys=True)
    id = f"report-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    if id in REPORTS.listed():
        return
    REPORTS.write(id, seal_text(content))
    own = [name for name, one in REPORTS.listed().items() if one.owner == report.owner]
    for name in own[:-_MOST]:
        REPORTS.delete(name, missing_ok=True)
