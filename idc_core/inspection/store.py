"""Finished inspections in one DuckDB file, so that scores can be asked for in SQL and taken away.

The file `inspection.duckdb` lies in IDC_HOME, or the platform's cache folder. It is opened for as long as an inspection
is written or a question answered, and closed again.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from idc_core.errors import DataError, IdcError, SettingError
from idc_core.files import cache_folder, keeping, partial_file
from idc_core.inspection.database import OutdatedError, is_there, run
from idc_core.inspection.database_process import Job, Statement
from idc_core.inspection.limits import LIMITS, Limits
from idc_core.inspection.result import COLUMNS, Inspection, discoveries

VIEWS = ("runs", "hypotheses", "units", "scores")
"""What can be asked: a line for every run, hypothesis of a run, unit of a run, score of a run."""

_SCHEMA = (
    "CREATE SCHEMA IF NOT EXISTS kept",
    """CREATE TABLE IF NOT EXISTS kept.runs (
    run VARCHAR, made_at TIMESTAMP, name VARCHAR, dataset VARCHAR, split VARCHAR, records BIGINT, scores BIGINT,
    seed BIGINT, error DOUBLE, confidence DOUBLE, discovery_rate DOUBLE, about VARCHAR)""",
    "CREATE TABLE IF NOT EXISTS kept.hypotheses (run VARCHAR, hypothesis VARCHAR, family VARCHAR, kind VARCHAR)",
    """CREATE TABLE IF NOT EXISTS kept.units (
    run VARCHAR, model VARCHAR, fingerprint VARCHAR, layer VARCHAR, unit BIGINT, mean DOUBLE, deviation DOUBLE)""",
    """CREATE TABLE IF NOT EXISTS kept.scores (
    run VARCHAR, model VARCHAR, layer VARCHAR, unit_group VARCHAR, unit BIGINT, hypothesis VARCHAR, measure VARCHAR,
    score DOUBLE, low DOUBLE, high DOUBLE, margin DOUBLE, p_value DOUBLE, records BIGINT, remark VARCHAR,
    discovery BOOLEAN)""",
)

_ADDED = {("scores", "remark"): "VARCHAR DEFAULT ''"}
"""Columns that files of earlier versions lack: table, name, type."""

_WRITING = threading.Lock()

_RATE = 0.05
"""False-discovery rate of the column `discovery`."""


def store_path(owner: str = "") -> Path:
    """Return where the database is; on a server with a login everybody has one of their own."""
    return cache_folder() / f"inspection{owner and '-'}{owner}.duckdb"


def read(
    job: Job,
    path: Path,
    failed: Callable[[str], IdcError],
    *,
    seconds: float = LIMITS.writing_seconds,
    limits: Limits = LIMITS,
) -> bytes:
    """Have a job that only reads done; a file of an earlier version is brought up to date before.

    Raises
    ------
    DataError
        If there is no database yet, or it cannot be opened.
    """
    if not is_there(path):
        raise DataError(f"There is no inspection yet in {path}: run one and keep it first.")
    wanted: Job = {**job, "path": str(path.resolve()), "needed": list(_ADDED)}
    try:
        return run(wanted, failed, seconds=seconds, limits=limits)
    except OutdatedError:
        _write(path, [])
        return run(wanted, failed, seconds=seconds, limits=limits)


def _write(path: Path, statements: list[Statement], tables: bytes = b"") -> None:
    """Change the database as a whole, or not at all; one thread at a time, and no other process."""
    is_there(path)
    job: Job = {"path": str(path.resolve()), "statements": [*_schema(), *statements]}
    with _WRITING:
        run(
            job,
            lambda why: DataError(f"The database of inspections {path} cannot be written ({why})."),
            seconds=LIMITS.writing_seconds,
            limits=LIMITS,
            tables=tables,
        )


def _statement(sql: str, *values: Any, table: bool = False) -> Statement:
    return {"sql": sql, "values": list(values), "table": table}


def keep(inspection: Inspection, name: str = "", path: Path | None = None) -> str:
    """Write an inspection into the database under a run name, and return the run's key in all views.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    path = path or store_path()
    run, about = uuid.uuid4().hex[:12], inspection.about
    table: dict[str, Any] = {name: inspection.table[name] for name in COLUMNS}
    table["unit_group"] = table.pop("group")
    table["discovery"] = discoveries(inspection, _RATE)
    parts = {"scores": table, "units": _units(inspection), "hypotheses": _hypotheses(inspection)}
    with keeping(path.parent, "The inspection"):
        _write(
            path,
            [
                _statement(
                    "INSERT INTO kept.runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    run,
                    datetime.now(UTC).replace(tzinfo=None).isoformat(sep=" "),
                    name,
                    about["dataset"],
                    about["split"],
                    about["records"],
                    len(inspection),
                    about["seed"],
                    about["error"],
                    about["confidence"],
                    _RATE,
                    json.dumps(about),
                ),
                *(_statement(f"INSERT INTO kept.{part} BY NAME SELECT * FROM given", table=True) for part in parts),
            ],
            b"".join(_stream(run, columns) for columns in parts.values()),
        )
    return run


def _stream(run: str, columns: dict[str, Any]) -> bytes:
    """Return the columns, with the run's key in front, as an Arrow stream."""
    import pyarrow as pa

    keys = np.full(len(next(iter(columns.values()))), run, object)
    table = pa.table({name: pa.array(value) for name, value in {"run": keys, **columns}.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _schema() -> Iterator[Statement]:
    """Give the statements that make what a database lacks."""
    yield from map(_statement, _SCHEMA)
    for (table, column), kind in _ADDED.items():
        yield _statement(f"ALTER TABLE kept.{table} ADD COLUMN IF NOT EXISTS {column} {kind}")
    for view in VIEWS:
        yield _statement(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM kept.{view}")


def _units(inspection: Inspection) -> dict[str, Any]:
    prints = inspection.about["models"]
    rows = [
        (model, prints[model], layer, unit, float(mean), float(deviation))
        for (model, layer), values in inspection.units.items()
        for unit, (mean, deviation) in enumerate(values)
    ]
    names = ("model", "fingerprint", "layer", "unit", "mean", "deviation")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _hypotheses(inspection: Inspection) -> dict[str, Any]:
    names, families, kinds = (list(column) for column in zip(*inspection.hypotheses, strict=True))
    return {"hypothesis": names, "family": families, "kind": kinds}


def forget(run: str, path: Path | None = None) -> None:
    """Delete a run and everything of it; nothing happens if there is none."""
    path = path or store_path()
    if is_there(path):
        _write(path, [_statement(f"DELETE FROM kept.{view} WHERE run = ?", run) for view in VIEWS])


def export(view: str, target: Path, path: Path | None = None, *, run: str | None = None) -> None:
    """Write a view into a Parquet or CSV file, by the file's ending; all runs unless one is named.

    Raises
    ------
    SettingError
        If there is no such view or format, or the file cannot be written.
    DataError
        If there is no database yet, or it cannot be read.
    """
    forms = {".parquet": "PARQUET", ".csv": "CSV, HEADER"}
    form = forms.get(target.suffix.lower())
    if view not in VIEWS or form is None:
        raise SettingError(
            f"Expected one of the views {', '.join(VIEWS)} and a file that ends in .parquet or .csv, not {view!r} and "
            f"{target.name!r}."
        )
    try:
        with partial_file(target.parent) as partial:
            partial.touch()
            read(
                {
                    "question": f"SELECT * FROM {view} WHERE run = coalesce($1, run)",
                    "values": [run],
                    "target": str(partial.resolve()),
                    "form": form,
                },
                path or store_path(),
                lambda why: DataError(f"The view {view} cannot be exported ({why})."),
            )
            partial.replace(target)
    except OSError as error:
        raise SettingError(f"{target} cannot be written ({error}); name another file.") from error
