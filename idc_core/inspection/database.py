"""Finished inspections in one DuckDB file, so that scores can be asked for in SQL and taken away.

The file `inspection.duckdb` lies in IDC_HOME, or the platform's cache folder. It is opened for as long as an inspection
is written or a question answered, and closed again, so that other programs can open it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.base.files import cache_folder, keeping
from idc_core.errors import SettingError
from idc_core.inspection.result import COLUMNS, Inspection, discoveries
from idc_core.sql.database import Database

VIEWS = ("runs", "hypotheses", "units", "scores")
"""What can be asked: a line for every run, hypothesis of a run, unit of a run, score of a run."""

_TABLES = (
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

_RATE = 0.05
"""False-discovery rate of the column `discovery`."""


def store_path(owner: str = "") -> Path:
    """Return where the database is; on a server with a login everybody has one of their own."""
    return cache_folder() / f"inspection{owner and '-'}{owner}.duckdb"


def database(path: Path | None = None) -> Database:
    """Return the database of inspections, everybody's by default."""
    added = (
        f"ALTER TABLE kept.{table} ADD COLUMN IF NOT EXISTS {name} {kind}" for (table, name), kind in _ADDED.items()
    )
    views = (f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM kept.{view}" for view in VIEWS)
    return Database(path or store_path(), "inspection", (*_TABLES, *added, *views), tuple(_ADDED))


def keep(inspection: Inspection, name: str = "", path: Path | None = None) -> str:
    """Write an inspection into the database under a run name, and return the run's key in all views.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    scores = database(path)
    run, about = uuid.uuid4().hex[:12], inspection.about
    table: dict[str, NDArray[np.generic]] = {name: inspection.table[name] for name in COLUMNS}
    table["unit_group"] = table.pop("group")
    table["discovery"] = discoveries(inspection, _RATE)
    parts: dict[str, Mapping[str, Sized]] = {
        "scores": table,
        "units": _units(inspection),
        "hypotheses": _hypotheses(inspection),
    }
    row = (
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
    )
    with keeping(scores.path.parent, "The inspection"):
        scores.write(
            [
                (f"INSERT INTO kept.runs VALUES ({', '.join('?' * len(row))})", row),
                *((f"INSERT INTO kept.{part} BY NAME SELECT * FROM given", None) for part in parts),
            ],
            b"".join(_stream(run, columns) for columns in parts.values()),
        )
    return run


def _stream(run: str, columns: Mapping[str, Sized]) -> bytes:
    """Return the columns, with the run's key in front, as an Arrow stream."""
    import pyarrow as pa

    keys = np.full(len(next(iter(columns.values()))), run, object)
    table = pa.table({name: pa.array(value) for name, value in {"run": keys, **columns}.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _units(inspection: Inspection) -> dict[str, list[object]]:
    prints = inspection.about["models"]
    rows = [
        (model, prints[model], layer, unit, float(mean), float(deviation))
        for (model, layer), values in inspection.units.items()
        for unit, (mean, deviation) in enumerate(values)
    ]
    names = ("model", "fingerprint", "layer", "unit", "mean", "deviation")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _hypotheses(inspection: Inspection) -> dict[str, list[str]]:
    names, families, kinds = (list(column) for column in zip(*inspection.hypotheses, strict=True))
    return {"hypothesis": names, "family": families, "kind": kinds}


def forget(run: str, path: Path | None = None) -> None:
    """Delete a run and everything of it; nothing happens if there is none."""
    if database(path).exists():
        database(path).write([(f"DELETE FROM kept.{view} WHERE run = ?", (run,)) for view in VIEWS])


def export(view: str, target: Path, path: Path | None = None, *, run: str | None = None) -> None:
    """Write a view into a Parquet or CSV file, by the file's ending; all runs unless one is named.

    Raises
    ------
    SettingError
        If there is no such view or format, or the file cannot be written.
    DataError
        If there is no database yet, or it cannot be read.
    """
    if view not in VIEWS or target.suffix.lower() not in (".parquet", ".csv"):
        raise SettingError(
            f"Expected one of the views {', '.join(VIEWS)} and a file that ends in .parquet or .csv, not {view!r} and "
            f"{target.name!r}."
        )
    database(path).export(f"The view {view}", f"SELECT * FROM {view} WHERE run = coalesce($1, run)", [run], target)


@dataclass(frozen=True)
class Prepared:
    """A query that is ready to be asked."""

    name: str
    label: str
    help: str
    sql: str


PREPARED: dict[str, Prepared] = {
    query.name: query
    for query in (
        Prepared(
            "best-units",
            "Best unit per hypothesis",
            "The unit that correlates most with each hypothesis, in the latest run.",
            "SELECT hypothesis, model, layer, unit, round(score, 3) AS score, round(low, 3) AS low,\n"
            "       round(high, 3) AS high, discovery\nFROM scores\n"
            "WHERE measure = 'pearson' AND run = (SELECT run FROM runs ORDER BY made_at DESC LIMIT 1)\n"
            "QUALIFY row_number() OVER (PARTITION BY hypothesis ORDER BY abs(score) DESC NULLS LAST) = 1\n"
            "ORDER BY abs(score) DESC NULLS LAST",
        ),
        Prepared(
            "best-hypotheses",
            "Best hypothesis per unit",
            "The hypothesis that each unit correlates with most, in the latest run.",
            "SELECT model, layer, unit, hypothesis, round(score, 3) AS score, discovery\nFROM scores\n"
            "WHERE measure = 'pearson' AND run = (SELECT run FROM runs ORDER BY made_at DESC LIMIT 1)\n"
            "QUALIFY row_number() OVER (PARTITION BY model, layer, unit ORDER BY abs(score) DESC NULLS LAST) = 1\n"
            "ORDER BY model, layer, unit",
        ),
        Prepared(
            "known-together",
            "Probes on whole layers",
            "Scores of probes on groups of units, with baselines, in the latest run.",
            "SELECT hypothesis, model, layer, unit_group, measure, round(score, 3) AS score\nFROM scores\n"
            "WHERE unit = -1 AND run = (SELECT run FROM runs ORDER BY made_at DESC LIMIT 1)\n"
            "ORDER BY hypothesis, score DESC",
        ),
        Prepared(
            "families",
            "Significant associations per family",
            "Number of significant associations by family and measure, in all runs.",
            "SELECT h.family, s.measure, count(*) FILTER (s.discovery) AS found, count(*) AS tested\n"
            "FROM scores s JOIN hypotheses h USING (run, hypothesis)\n"
            "WHERE s.p_value IS NOT NULL AND NOT isnan(s.p_value)\n"
            "GROUP BY ALL ORDER BY found DESC",
        ),
        Prepared(
            "unexplained",
            "Unexplained units",
            "Units of the latest run that vary, but correlate with no hypothesis by more than 0.2.",
            "SELECT u.model, u.layer, u.unit, round(u.deviation, 3) AS deviation,\n"
            "       round(max(abs(s.score)), 3) AS strongest\n"
            "FROM units u JOIN scores s USING (run, model, layer, unit)\n"
            "WHERE s.measure = 'pearson' AND u.deviation > 0 AND NOT isnan(s.score)\n"
            "  AND u.run = (SELECT run FROM runs ORDER BY made_at DESC LIMIT 1)\n"
            "GROUP BY ALL HAVING max(abs(s.score)) <= 0.2 ORDER BY deviation DESC",
        ),
        Prepared(
            "runs",
            "All runs",
            "Every run with its data, date, records and scores.",
            "SELECT r.made_at, r.run, r.name, r.dataset, r.split, r.records, max(s.records) AS records_read,\n"
            "       r.scores, r.error\nFROM runs r JOIN scores s USING (run) GROUP BY ALL ORDER BY made_at DESC",
        ),
    )
}
"""Queries by name."""
