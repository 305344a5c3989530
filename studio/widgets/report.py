"""The report of a setup, made by a job when it is asked for, then offered as files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, IdcError
from idc_core.runs import PlannedAnalysis
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.report_command import command_line
from studio.jobs.results import View, idc_settings, open_view
from studio.state import visitor
from studio.state.setup import DEFAULT, Setup
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.report.writing import ReportFiles


_ASKED = "report-asked"
"""In the session: the setup whose report was asked for."""


def offer(view: View | None) -> None:
    """Offer the report of a setup, by default of the one that the studio opens on, as web page and as JSON."""
    setup = DEFAULT if view is None else view.setup
    about = (
        "One web page for a reviewer without the studio: finding, grid, uncovered cells with the closest tests, class "
        "errors, criteria, notes, settings and the command that makes it again."
    )
    st.header("Report", anchor=False, help=about)
    with st.container(horizontal=True, key="report"):
        st.button(
            "Make report",
            key="report-make",
            on_click=_ask,
            args=(setup,),
            help="Scores all criteria and draws the charts, usually a few seconds.",
        )
        if st.session_state.get(_ASKED) != setup:
            return
        try:
            files = _made(open_view(setup) if view is None else view)
        except CancelledError:
            st.session_state.pop(_ASKED)
            return
        except IdcError as error:
            st.error(literal(error))
            return
        for label, name, mime, written in (
            ("Report (HTML)", "idc-report.html", "text/html", files.page),
            ("Report (JSON)", "idc-report.json", "application/json", files.json),
        ):
            st.download_button(label, written, name, mime, on_click="ignore", key=f"file-{name}")


def _ask(setup: Setup) -> None:
    st.session_state[_ASKED] = setup


def _made(view: View) -> ReportFiles:
    """Return the files of a view's report; the same day, of the same notes, they are made once."""
    from idc_core.report.remarks import notes_on
    from idc_core.store.notes import kept_notes

    setup, date, command = view.setup, datetime.now(UTC).date().isoformat(), command_line(view)
    notes = tuple(notes_on(kept_notes(visitor.person()), setup.model, setup.data, setup.layer))

    def work(report: Progress) -> ReportFiles:
        from idc_core.report.material import Material
        from idc_core.report.writing import make_files

        plan = PlannedAnalysis(view.card, view.train, view.test, setup.layer, view.analysis.m, idc_settings(setup))
        traces = (view.train_traces, view.test_traces)
        material = Material(plan, view.open_model, *traces, view.analysis, setup.conditions)
        return make_files(material, date=date, command=command, notes=notes, on_progress=report)

    key = (*view.key, setup, date, command, tuple(note.name for note in notes))
    return Waiting(1).get(JobKind("report", kept=4, is_long=True), key, "writing the report", work)
