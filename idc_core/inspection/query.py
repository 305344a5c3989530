"""Answer a person's SQL over the views: read only, on its own, and for no longer than a limit."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idc_core.errors import DataError, SettingError
from idc_core.inspection import query_process
from idc_core.inspection.query_process import UNANSWERED, UNOPENED, Question
from idc_core.inspection.store import bring_up_to_date, store_path

SECONDS = 10.0
"""A question may take so long."""

MOST_ROWS = 10_000
"""Rows of an answer; more are cut off."""


@dataclass(frozen=True)
class Prepared:
    """A question that is ready to be asked."""

    name: str
    label: str
    help: str
    sql: str


PREPARED: dict[str, Prepared] = {
    one.name: one
    for one in (
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
"""Questions by name."""


@dataclass(frozen=True)
class Answer:
    """Columns and rows that a question gave; `cut` where there were more than `MOST_ROWS`."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    cut: bool


def ask(sql: str, path: Path | None = None, *, seconds: float = SECONDS) -> Answer:
    """Answer one SELECT over the views `runs`, `hypotheses`, `units` and `scores`, in a process of its own.

    Raises SettingError, with the database's own message, if it is not one SELECT, is wrong, asks for what is not
    allowed, takes longer than `seconds` or too much memory, or has too large an answer; DataError if there is no
    database yet, or it cannot be opened. The database can be interrupted between blocks of rows only: one value of a
    billion characters would hold up, and fill, the process that asks.
    """
    import duckdb

    path = path or store_path()
    if not path.is_file():
        raise DataError("There is no inspection yet: run one and keep it, then query.")
    bring_up_to_date(path)
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise SettingError(f"The database does not answer this: {error}") from error
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        raise SettingError("Only one SELECT is allowed; nothing in the database can be changed from here.")
    return _read(_answered({"path": str(path), "sql": statements[0].query, "rows": MOST_ROWS + 1}, seconds))


def _answered(question: Question, seconds: float) -> bytes:
    """Have a question answered by another process: an Arrow stream."""
    command = [sys.executable, "-I", query_process.__file__]
    try:
        done = subprocess.run(command, input=json.dumps(question).encode(), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise SettingError(f"The query took longer than {seconds:g} s and was stopped.") from error
    said = done.stderr.decode(errors="replace")
    if done.returncode == UNOPENED:
        raise DataError(f"The database of inspections {question['path']} cannot be opened ({said}).")
    if done.returncode == UNANSWERED:
        raise SettingError(f"The database does not answer this: {said}")
    if done.returncode:
        raise SettingError("The database ran out of memory on this query; select fewer rows or columns.")
    return done.stdout


def _read(stream: bytes) -> Answer:
    import pyarrow as pa

    table = pa.ipc.open_stream(stream).read_all()
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return Answer(tuple(table.column_names), rows[:MOST_ROWS], len(rows) > MOST_ROWS)
