"""Runs: finished results with what was chosen and what came out; listed, compared, and taken from elsewhere."""

from idc_core.runs.analysis_run import PlannedAnalysis
from idc_core.runs.attack_run import AttackRun
from idc_core.runs.class_errors_run import CLASS_ERRORS, ErrorSettings, class_evidence, planned_class_errors
from idc_core.runs.comparing import CellChange, cell_change, differing_settings, figures
from idc_core.runs.filling_run import planned_filling, unfinished_filling
from idc_core.runs.importing import Imported, import_runs
from idc_core.runs.index import find_run, find_runs
from idc_core.runs.kinds import RUN_KINDS, RunKind, Score, register_run_kind, score_of
from idc_core.runs.planned import Planned, criterion_key, digest, planned_statistics, planned_traces
from idc_core.runs.run import Run, figure_text, main_text
from idc_core.runs.settings import settings_of
from idc_core.runs.versions import VERSION, VersionLine, versions

__all__ = [
    "CLASS_ERRORS",
    "RUN_KINDS",
    "VERSION",
    "AttackRun",
    "CellChange",
    "ErrorSettings",
    "Imported",
    "Planned",
    "PlannedAnalysis",
    "Run",
    "RunKind",
    "Score",
    "VersionLine",
    "cell_change",
    "class_evidence",
    "criterion_key",
    "differing_settings",
    "digest",
    "figure_text",
    "figures",
    "find_run",
    "find_runs",
    "import_runs",
    "main_text",
    "planned_class_errors",
    "planned_filling",
    "planned_statistics",
    "planned_traces",
    "register_run_kind",
    "score_of",
    "settings_of",
    "unfinished_filling",
    "versions",
]
