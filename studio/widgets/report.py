"""The report of a setup, made by a job when it is asked for, then offered as files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.base.progress import Progress
from idc_core.coverage.idc_settings import CONTROLS, OPTIONS
from idc_core.errors import CancelledError, IdcError
from idc_core.runs import PlannedAnalysis
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View, idc_settings, open_view
from studio.jobs.runs import find_hypotheses
from studio.state import visitor
from studio.state.selection import change_setup
from studio.state.setup import DEFAULT, SAVED, Setup, parse
from studio.text import literal
from studio.widgets import exports

if TYPE_CHECKING:
    from idc_core.report.writing import ReportFiles
    from idc_core.store.reports import MadeReport

_ASKED = "report-asked"
"""In the session: the setup whose report was asked for, and the day; empty for today's."""


def offer(setup: Setup, view: View | None) -> None:
    """Offer the report of a setup, whose view is opened only when it is asked for, as web page and as JSON."""
    about = (
        "One web page for a reviewer without the studio: finding, grid, uncovered cells with the closest tests, class "
        "errors, criteria, notes, settings and the command that makes it again."
    )
    st.header("Report", anchor=False, help=about)
    with st.container(horizontal=True, key="report"):
        st.button(
            "Make report",
            key="report-make",
            on_click=ask,
            args=(setup,),
            help="Scores all criteria and draws the charts, usually a few seconds.",
        )
        asked, date = st.session_state.get(_ASKED, (None, ""))
        if asked != setup:
            return
        try:
            files = _made(open_view(setup) if view is None else view, date or datetime.now(UTC).date().isoformat())
        except CancelledError:
            st.session_state.pop(_ASKED)
            return
        except IdcError as error:
            st.error(literal(error))
            return
        for label, name, mime, written in (
            ("Report (HTML)", "report.html", "text/html", files.page),
            ("Report (JSON)", "report.json", "application/json", files.json),
        ):
            st.download_button(label, written, exports.named(name, setup), mime, on_click="ignore", key=f"file-{name}")


def ask(setup: Setup, date: str = "") -> None:
    """Have the report of a setup made where it is offered, by default as of today; for callbacks."""
    st.session_state[_ASKED] = setup, date


def made_before() -> dict[str, MadeReport]:
    """Return the reports that this visitor had made, by id, the newest first: those whose network is still there."""
    from idc_core.store.reports import REPORTS

    found = REPORTS.listed(visitor.person())
    models = visitor.models()
    return {id: one for id, one in reversed(found.items()) if one.setup.get("model", DEFAULT.model) in models}


def reopen(id: str) -> None:
    """Look at the setup of a report that was made, where its files are offered again; for callbacks."""
    made = made_before().get(id)
    if made is None:
        st.toast("This report is not there any more.")
        return
    change_setup(**{name: made.setup.get(name, "") for name in vars(DEFAULT)})
    ask(parse(made.setup), made.date)


def _made(view: View, date: str) -> ReportFiles:
    """Return the files of a view's report; of the same day and the same notes they are made once."""
    from idc_core.report.remarks import notes_on
    from idc_core.store.notes import kept_notes

    setup, command = view.setup, _command_line(view)
    notes = tuple(notes_on(kept_notes(visitor.person()), setup.model, setup.data, setup.layer))

    hypotheses = find_hypotheses(view)

    def work(report: Progress) -> ReportFiles:
        from idc_core.report.material import Material
        from idc_core.report.writing import make_files

        plan = PlannedAnalysis(view.card, view.train, view.test, setup.layer, view.analysis.m, idc_settings(setup))
        traces = (view.train_traces, view.test_traces)
        material = Material(plan, view.open_model, *traces, view.analysis, setup.conditions)
        return make_files(material, date=date, command=command, notes=notes, hypotheses=hypotheses, on_progress=report)

    told = None if hypotheses is None else tuple(hypotheses.items())
    key = (*view.key, setup, date, command, tuple(note.name for note in notes), told)
    files = Waiting(1).get(JobKind("report", kept=4, is_long=True), key, "writing the report", work)
    _note(view, date)
    return files


def _note(view: View, date: str) -> None:
    """Note that a report was made, so that the search finds it."""
    from idc_core.store.reports import MadeReport, note_report

    said = {name: text for name, text in view.setup.texts.items() if text}
    try:
        note_report(MadeReport(said, view.line, date, visitor.owner()))
    except IdcError as error:
        st.caption(f"{literal(error)} The search will not find this report.")


def _command_line(view: View) -> str:
    """Return the command that makes a setup's report; empty where none can, as only this program knows its network."""
    from idc_core.datasets import DATASETS
    from idc_core.report.making import command_of

    setup, files = view.setup, _setup_files(view.setup)
    named = _named(setup, files)
    if not named:
        return ""
    words = ["report", *named, "--layer", setup.layer, "--m", str(view.analysis.m)]
    options = {choice.name: choice for choice in OPTIONS}
    for name, text in setup.unusual.items():
        choice = options[CONTROLS[name].option]
        words += [choice.flag] if isinstance(choice.default, bool) else [choice.flag, text]
    if DATASETS[view.train.name].learns_from:
        words += ["--limit-train", str(len(view.train))]
    several = {"--class": setup.classes, "--predicted": setup.predicted, "--without": setup.without}
    for option, names in several.items():
        for name in names:
            words += [option, name]
    predictions = {"": "", "right": "correct", "wrong": "misclassified"}[setup.answers]
    for option, word in (("--predictions", predictions), ("--confidence", setup.confidence), ("--cell", setup.within)):
        words += [option, word] if word else []
    return command_of(words, files)


def _setup_files(setup: Setup) -> list[Path]:
    """Return the setup files that register a setup's network or tests."""
    from idc_core.opening import setup_files

    names = {setup.model, setup.data}
    return [file.path for file in setup_files.opened() if names & {*file.models, *file.datasets}]


def _named(setup: Setup, files: list[Path]) -> list[str]:
    """Return the words that name a setup's network and tests; none where words cannot."""
    from idc_core import library
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS
    from idc_core.opening import server_files

    entry = MODELS[setup.model]
    opened, _ = server_files.open_once()
    if setup.model in opened and setup.data == entry.dataset:
        path = f"{getattr(entry.build, 'architecture', '')}={getattr(entry.build, 'path', '')}".removeprefix("=")
        return ["--model", path, *server_files.named().words]
    entered = library.owners()
    editions = ((setup.model, entry.edition), (setup.data, DATASETS[setup.data].edition))
    # The project's own are no edition; a setup file enters its own again.
    known = all(not edition or name in entered or files for name, edition in editions)
    return ["--model", setup.model, "--data", setup.data] if known and not setup.data.startswith(SAVED) else []
