"""Finished inspections in one DuckDB file, so that scores can be asked for in SQL and taken away.

The file `inspection.duckdb` lies in IDC_HOME, or the platform's cache folder. It is opened for as long as an inspection
is written or a question answered, and closed again.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from idc_core.errors import DataError, SettingError
from idc_core.files import cache_folder, make_cache, partial_file
from idc_core.inspection.query_process import connect
from idc_core.inspection.result import COLUMNS, Inspection, discoveries

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

VIEWS = ("runs", "hypotheses", "units", "scores")
"""What can be asked: a line for every run, hypothesis of a run, unit of a run, score of a run."""

_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS kept;
CREATE TABLE IF NOT EXISTS kept.runs (
    run VARCHAR, made_at TIMESTAMP, name VARCHAR, dataset VARCHAR, split VARCHAR, records BIGINT, scores BIGINT,
    seed BIGINT, error DOUBLE, confidence DOUBLE, discovery_rate DOUBLE, about VARCHAR);
CREATE TABLE IF NOT EXISTS kept.hypotheses (run VARCHAR, hypothesis VARCHAR, family VARCHAR, kind VARCHAR);
CREATE TABLE IF NOT EXISTS kept.units (
    run VARCHAR, model VARCHAR, fingerprint VARCHAR, layer VARCHAR, unit BIGINT, mean DOUBLE, deviation DOUBLE);
CREATE TABLE IF NOT EXISTS kept.scores (
    run VARCHAR, model VARCHAR, layer VARCHAR, unit_group VARCHAR, unit BIGINT, hypothesis VARCHAR, measure VARCHAR,
    score DOUBLE, low DOUBLE, high DOUBLE, margin DOUBLE, p_value DOUBLE, records BIGINT, remark VARCHAR,
    discovery BOOLEAN);
"""

_ADDED = {("scores", "remark"): "VARCHAR DEFAULT ''"}
"""Columns that files of earlier versions lack: table, name, type."""

_WRITING = threading.Lock()

RATE = 0.05
"""False-discovery rate of the column `discovery`."""


def store_path() -> Path:
    """Return where the database is."""
    return cache_folder() / "inspection.duckdb"


@contextmanager
def opened(path: Path, **settings: Any) -> Iterator[DuckDBPyConnection]:
    """Open the database and close it again; wait while another process writes into it."""
    import duckdb

    try:
        connection = connect(str(path), **settings)
    except duckdb.Error as error:
        raise DataError(f"The database of inspections {path} cannot be opened ({error}).") from error
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _writing(path: Path) -> Iterator[DuckDBPyConnection]:
    """Change the database as a whole, or not at all; one thread at a time, and no other process."""
    import duckdb

    with _WRITING, opened(path) as connection:
        try:
            connection.execute("BEGIN")
            _make_schema(connection)
            yield connection
            connection.execute("COMMIT")
        except duckdb.Error as error:
            raise DataError(f"The database of inspections {path} cannot be written ({error}).") from error


def keep(inspection: Inspection, name: str = "", path: Path | None = None) -> str:
    """Write an inspection into the database under a run name, and return the run's key in all views.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    import pyarrow as pa

    path = path or store_path()
    make_cache(path.parent, "The inspection")
    run, about = uuid.uuid4().hex[:12], inspection.about
    table: dict[str, Any] = {name: inspection.table[name] for name in COLUMNS}
    table["unit_group"] = table.pop("group")
    table["discovery"] = discoveries(inspection, RATE)
    parts = {"scores": table, "units": _units(inspection), "hypotheses": _hypotheses(inspection)}
    with _writing(path) as connection:
        connection.execute(
            "INSERT INTO kept.runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                run,
                datetime.now(UTC).replace(tzinfo=None),
                name,
                about["dataset"],
                about["split"],
                about["records"],
                len(inspection),
                about["seed"],
                about["error"],
                about["confidence"],
                RATE,
                json.dumps(about),
            ],
        )
        for part, columns in parts.items():
            columns = {"run": np.full(len(next(iter(columns.values()))), run, object), **columns}
            connection.register("given", pa.table({name: pa.array(value) for name, value in columns.items()}))
            connection.execute(f"INSERT INTO kept.{part} BY NAME SELECT * FROM given")
            connection.unregister("given")
    return run


def _make_schema(connection: DuckDBPyConnection) -> None:
    connection.execute(_SCHEMA)
    for (table, column), kind in _ADDED.items():
        connection.execute(f"ALTER TABLE kept.{table} ADD COLUMN IF NOT EXISTS {column} {kind}")
    for view in VIEWS:
        connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM kept.{view}")


def bring_up_to_date(path: Path) -> None:
    """Add to a file of an earlier version what it lacks; what it holds stays."""
    with opened(path, read_only=True) as connection:
        there = connection.execute("SELECT table_name, column_name FROM duckdb_columns()").fetchall()
    if not _ADDED.keys() <= set(there):
        with _writing(path):
            pass  # opening it for writing does it


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
    if not path.is_file():
        return
    with _writing(path) as connection:
        for view in VIEWS:
            connection.execute(f"DELETE FROM kept.{view} WHERE run = ?", [run])


def export(view: str, target: Path, path: Path | None = None, *, run: str | None = None) -> None:
    """Write a view into a Parquet or CSV file, by the file's ending; all runs unless one is named."""
    import duckdb

    kind = target.suffix.removeprefix(".").lower()
    if view not in VIEWS or kind not in ("parquet", "csv"):
        raise SettingError(
            f"Expected one of the views {', '.join(VIEWS)} and a file that ends in .parquet or .csv, not {view!r} and "
            f"{target.name!r}."
        )
    path = path or store_path()
    if not path.is_file():
        raise DataError("There is no inspection yet: run one and keep it first.")
    bring_up_to_date(path)
    with opened(path, read_only=True) as connection, partial_file(target.parent) as partial:
        chosen = connection.sql(f"SELECT * FROM {view} WHERE run = coalesce($run, run)", params={"run": run})
        try:
            if kind == "parquet":
                chosen.write_parquet(str(partial))
            else:
                chosen.write_csv(str(partial), header=True)
            partial.replace(target)
        except (duckdb.Error, OSError) as error:
            raise SettingError(f"{target} cannot be written ({error}); name another file.") from error
