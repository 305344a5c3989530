"""The baseline: what was measured once, in a JSON file that people commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from idc_core.base import files
from idc_core.base.parameters import shown
from idc_core.errors import DataError, SettingError
from idc_core.gate.verdicts import GateReport, Value
from idc_core.guarded import read_json

_FORMAT = 1
"""Raised whenever a field is renamed, removed or changes its meaning."""

_REMEDY = "write it again with --write-baseline, and commit it"


@dataclass(frozen=True)
class _KeptCheck:
    """What was measured of one check: `values` by the labels of limits, under `settings`; `facts` tell on what."""

    settings: dict[str, object]
    facts: dict[str, str]
    values: dict[str, Value]


@dataclass(frozen=True)
class Baseline:
    """A baseline file, by the names of its checks."""

    format: int
    checks: dict[str, _KeptCheck]


def read_baseline(path: Path) -> Baseline:
    """Read a baseline; DataError where there is none, it is damaged, or of another format."""
    if not path.exists():
        raise DataError(f"The baseline {path} is not there: write it with --write-baseline, and commit it.")
    baseline = read_json(path, f"The baseline {path}", Baseline)
    if baseline.format != _FORMAT:
        raise DataError(f"The baseline {path} has the format {baseline.format}; expected {_FORMAT}: {_REMEDY}.")
    return baseline


def write_baseline(path: Path, report: GateReport) -> None:
    """Write what was measured; equal results give an equal file.

    Raises SettingError where not everything could run, or the file cannot be written.
    """
    if report.count("could not run"):
        raise SettingError(f"The baseline {path} is not written, since not everything could run.")
    kept = {
        check.name: _KeptCheck(dict(check.settings), dict(check.facts), dict(check.values)) for check in report.checks
    }
    text = json.dumps(asdict(Baseline(_FORMAT, kept)), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    try:
        files.write_whole(path, f"{text}\n".encode())
    except OSError as error:
        raise SettingError(f"The baseline {path} cannot be written ({error.strerror}): name another file.") from error


def value_before(found: Baseline, check: str, label: str, settings: Mapping[str, object]) -> Value:
    """Return what a baseline holds for a limit; DataError where it holds nothing, or was measured otherwise."""
    if check not in found.checks:
        raise DataError(f"The baseline has no check {shown(check)}: {_REMEDY}.")
    kept = found.checks[check]
    changed = [name for name in settings if kept.settings.get(name) != settings[name]]
    if changed:
        name = changed[0]
        before = kept.settings.get(name)
        raise DataError(f"The baseline was measured with {name} = {before!r}, now {settings[name]!r}: {_REMEDY}.")
    if label not in kept.values:
        raise DataError(f"The baseline has no value for {label}: {_REMEDY}.")
    return kept.values[label]
