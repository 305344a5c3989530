"""Queries in SQL over kept inspections, and their export."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from idc_core.base.spreadsheets import csv
from idc_core.errors import IdcError
from studio.state import visitor
from studio.text import literal, plural
from studio.widgets import exports

if TYPE_CHECKING:
    from studio.hypotheses.inspections import Measured

_SQL, _QUESTION, _ANSWERED = "sql", "prepared", "sql-answer"
_KEPT_AS = "hypotheses-kept"
"""Set to the key of the run that was kept last in this session."""


def draw(measured: Measured) -> None:
    """Keep this run, and query those that were kept."""
    st.markdown(
        "Kept runs are in one DuckDB file with four views: `runs` (one row per run), `hypotheses` (name, family and "
        "kind), `units` (mean and standard deviation), and `scores` (all scores; `discovery`: significant at FDR "
        "5\u00a0%)."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        usual = measured.view.line
        name = st.text_input(
            "Name of the run",
            placeholder=usual,
            key="run-name",
            width=420,
            help="Name in the view runs. Default a summary of the setup.",
        )
        st.button(
            "Keep this run",
            key="keep-run",
            on_click=_keep,
            args=(measured, name or usual),
            type="primary",
            help="Writes all scores of this inspection into the file.",
        )
    if st.session_state.get(_KEPT_AS):
        st.caption(st.session_state[_KEPT_AS])
    if not _path().is_file():
        st.info("No run is kept yet. Keep this one, then query.")
        return
    _draw_question()
    _draw_export()


def _keep(measured: Measured, name: str) -> None:
    from idc_core.inspection.database import keep

    try:
        run = keep(measured.found, name, _path())
    except IdcError as error:
        st.session_state[_KEPT_AS] = literal(error)
        return
    st.session_state[_KEPT_AS] = f"Kept as run {run}, with {plural(len(measured.found), 'score')}."


def _draw_question() -> None:
    from idc_core.inspection.database import PREPARED, database
    from idc_core.sql.process import LIMITS

    with st.form("sql-form", border=False):
        sql = st.text_area(
            "Query",
            st.session_state.get("sql-kept", PREPARED["best-units"].sql),
            height=150,
            key=_box(),
            help="One SELECT over the views runs, hypotheses, units and scores. Read-only; stopped after "
            f"{LIMITS.seconds:g} seconds. Default the first prepared query.",
        )
        st.form_submit_button("Run query", help="Runs the query in the box.")
    with st.container(horizontal=True):
        for question in PREPARED.values():
            st.button(
                question.label, key=f"ask-{question.name}", on_click=_prepare, args=(question.sql,), help=question.help
            )
    st.session_state["sql-kept"] = sql
    # A question is asked once, and again where another run was kept: it may take its whole time.
    key = (sql, _path().stat().st_mtime_ns)
    if st.session_state.get(_ANSWERED, (None,))[0] != key:
        try:
            st.session_state[_ANSWERED] = (key, database(_path()).ask(sql))
        except IdcError as error:
            st.session_state[_ANSWERED] = (key, literal(error))
    answer = st.session_state[_ANSWERED][1]
    if isinstance(answer, str):
        st.error(answer)
        return
    table = pd.DataFrame(answer.rows, columns=list(answer.columns))
    st.dataframe(table, hide_index=True, height=280, alt="Result of the query")
    cut = f"; the first {LIMITS.rows:,} are shown" if answer.cut else ""
    st.caption(f"{plural(len(answer.rows), 'row')}{cut}.")
    st.download_button(
        "Result (CSV)",
        csv(table).encode(),
        file_name=exports.named("answer.csv"),
        mime="text/csv",
        on_click="ignore",
        key="csv-answer",
    )


def _path() -> Path:
    """Return where this visitor's database of inspections is."""
    from idc_core.inspection.database import store_path

    return store_path(visitor.person() or "")


def _box() -> str:
    """Return the key of the text box; a prepared question comes into a new one."""
    return f"{_SQL}-{st.session_state.get(_QUESTION, 0)}"


def _prepare(sql: str) -> None:
    st.session_state["sql-kept"] = sql
    st.session_state[_QUESTION] = st.session_state.get(_QUESTION, 0) + 1


def _draw_export() -> None:
    from idc_core.inspection.database import VIEWS

    path = _path()  # it is not the script's thread that will ask for the file
    st.markdown("**Export views**, all runs")
    with st.container(horizontal=True, key="export-views"):
        for view in VIEWS:
            for kind, mime in (("parquet", "application/vnd.apache.parquet"), ("csv", "text/csv")):
                st.download_button(
                    f"{view}.{kind}",
                    partial(_exported, view, kind, path),
                    file_name=exports.named(f"{view}.{kind}"),
                    mime=mime,
                    on_click="ignore",
                    key=f"export-{view}-{kind}",
                )


def _exported(view: str, kind: str, path: Path) -> bytes:
    from idc_core.inspection.database import export

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"{view}.{kind}"
        export(view, target, path)
        return target.read_bytes()
