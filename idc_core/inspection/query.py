"""Answer a person's SQL over the views: read only, on its own, and for no longer than a limit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idc_core.errors import SettingError
from idc_core.inspection.limits import LIMITS, Limits
from idc_core.inspection.store import read, store_path

_QUOTED = re.compile(
    r"""'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|--[^\n]*+|/\*.*?(?:\*/|\Z)|\$(\w*+)\$.*?(?:\$\1\$|\Z)""",
    re.DOTALL,
)
"""What is no SQL inside a query: strings, names in quotes, comments."""


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
    """Columns and rows that a question gave; `cut` where there were more rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    cut: bool


def ask(sql: str, path: Path | None = None, *, seconds: float = LIMITS.seconds, limits: Limits = LIMITS) -> Answer:
    """Answer one SELECT over the views `runs`, `hypotheses`, `units` and `scores`.

    Values are Python's where Python has them, and text where not: infinite dates, intervals, bytes, unions.

    Raises
    ------
    SettingError
        If it is not one SELECT, is wrong, asks for what is not allowed, is beyond one of the limits, or has too large
        an answer; the message is the database's own.
    DataError
        If there is no database yet, or it cannot be opened.

    Notes
    -----
    The query is read and answered in a process of its own: the database can be interrupted between blocks of rows only,
    and one value of a billion characters, or a deeply nested query, would fill the process that asks.
    """
    _check(sql, limits)
    stream = read(
        {"question": sql},
        path or store_path(),
        lambda why: SettingError(f"The query failed: {why}"),
        seconds=seconds,
        limits=limits,
    )
    return _answer(stream, limits)


def _check(sql: str, limits: Limits) -> None:
    """Refuse what is too long or too deep to be read."""
    if len(sql) > limits.characters:
        raise SettingError(
            f"The query has {len(sql):,} characters, and may have {limits.characters:,}: select with fewer."
        )
    if any("\ud800" <= letter <= "\udfff" for letter in sql):
        raise SettingError("The query holds half of a character (a lone surrogate): type that part anew.")
    depth = deepest = 0
    for letter in _QUOTED.sub("", sql):
        depth += (letter in "([{") - (letter in ")]}")
        deepest = max(deepest, depth)
    if deepest > limits.depth:
        raise SettingError(
            f"The query has {deepest:,} brackets inside one another, and may have {limits.depth:,}: nest fewer."
        )


def _answer(stream: bytes, limits: Limits) -> Answer:
    import pyarrow as pa

    try:
        table = pa.ipc.open_stream(stream).read_all()
    except pa.ArrowException as error:
        raise SettingError(f"The query failed: its answer cannot be read ({error}).") from error
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return Answer(tuple(table.column_names), rows[: limits.rows], len(rows) > limits.rows)
