"""The setup files of this server, and what its command line named: read at its start; setup files when they change.

What is wrong is shown on every page.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.errors import CancelledError
from studio.jobs.jobs import JobKind, Waiting
from studio.state import address
from studio.state.setup import untouched
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.base.progress import Progress

_VISITED = "own-setup-visited"


def follow() -> None:
    """Read what has changed, show what is wrong, and open a session's first visit on the person's network."""
    named = bool(os.environ.get("IDC_FILES"))
    if not named and not os.environ.get("IDC_SETUP"):
        return
    from idc_core.opening import setup_files

    models = _files() if named else []
    setup_files.watch()
    if due := setup_files.changed():

        def work(report: Progress) -> None:
            setup_files.refresh(report)

        try:
            Waiting(1).get(JobKind("setup files", lives="here"), due, "reading your setup", work)
        except CancelledError:
            st.info("Reading your setup was stopped. It is read again at the next click.")
    for problem in setup_files.problems():
        st.error(literal(problem))
        st.caption("What was read before stays. Save the file to have it read again.")
    if not st.session_state.get(_VISITED) and untouched():
        models += [name for file in setup_files.opened() for name in file.models]
        st.session_state[_VISITED] = True
        if models:
            address.keep("model", models[0])
            st.rerun()  # the navigation was drawn without it
    st.session_state[_VISITED] = True


def _files() -> list[str]:
    """Open the files that the command line named, once; show what is wrong and return the networks."""
    from idc_core.opening import server_files

    if server_files.pending():

        def work(report: Progress) -> None:
            server_files.open_once()

        try:
            Waiting(1).get(JobKind("own files", lives="here"), os.environ["IDC_FILES"], "reading your files", work)
        except CancelledError:
            st.info("Reading your files was stopped. They are read again at the next click.")
            return []
    models, problem = server_files.open_once()
    if problem:
        st.error(literal(problem))
        st.caption("Start the dashboard again once this is mended.")
    return list(models)
