"""One run: what was chosen, what came out; opened, named, pinned, deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from idc_core import store
from idc_core.errors import IdcError, SettingError
from idc_core.runs import Run, figure_text, main_text, score_of
from idc_core.store import Mark
from studio.jobs.runs import ADDRESS
from studio.runs.opening import page_of, parameters_of
from studio.shell.pages import PAGES, go_to_address
from studio.state import address, visitor
from studio.text import literal

RUN = "run"
"""Name in the address: the run that is looked at."""

_DELETING, _REFUSED = "run-deleting", "run-refused"


def draw(run: Run) -> None:
    """Draw a run as a card."""
    with st.container(border=True):
        if refusal := st.session_state.pop(_REFUSED, ""):
            st.error(refusal)
        _draw_buttons(run)
        if not run.is_current:
            st.caption(
                f"The figures of this run are of another version ({literal(run.facts.version)}) and shown as they "
                "were. Opened, it is computed again."
            )
        settings, figures = st.columns([3, 2], gap="large")
        with settings:
            st.header("Settings", anchor=False)
            st.dataframe(_settings(run), hide_index=True, key="run-settings", height=240)
        with figures:
            st.header("Results", anchor=False)
            st.dataframe(_figures(run), hide_index=True, key="run-figures")


def title(run: Run) -> str:
    """Name a run in a line, for menus."""
    parts = (run.name or run.kind, run.network, f"layer {run.said('layer')}", f"m = {run.said('m')}", main_text(run))
    return " · ".join((*(part for part in parts if part), run.facts.made[:16].replace("T", " "), run.id[:6]))


def _settings(run: Run) -> pd.DataFrame:
    settings = {name: value for name, value in run.facts.settings.items() if name != ADDRESS}
    return pd.DataFrame(
        {"setting": [words(name) for name in settings], "value": [written(entry) for entry in settings.values()]}
    )


def _figures(run: Run) -> pd.DataFrame:
    scores = [(score_of(run.facts.kind, name), value) for name, value in run.facts.scores.items()]
    return pd.DataFrame(
        {
            "figure": [score.label for score, _ in scores],
            "value": [figure_text(score, value) for score, value in scores],
        }
    )


def words(name: str) -> str:
    """Write the name of a setting as a person reads it."""
    return name.replace("_", " ")


def written(value: object) -> str:
    """Write the value of a setting."""
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _draw_buttons(run: Run) -> None:
    refused = _cannot_open(run)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.button(
            "Open",
            key="run-open",
            type="primary",
            disabled=bool(refused),
            on_click=go_to_address,
            args=(page_of(run), parameters_of(run)),
            help=refused or f"Opens {PAGES[page_of(run)].title} with these settings.",
        )
        if not _may_mark(run):
            st.caption("Names and pins of shared runs are changed on the server's own computer.")
            return
        st.text_input(
            "Name",
            run.name,
            key=f"run-name-{run.id}",
            max_chars=120,
            width=320,
            help="Your own name for it. Default none.",
        )
        st.button("Save name", key="run-rename", on_click=_try, args=(lambda: _rename(run),))
        st.button(
            "Unpin" if run.pinned else "Pin",
            key="run-pin",
            on_click=_try,
            args=(lambda: _mark(run, pinned=not run.pinned),),
            help="Pinned runs are never removed to make room.",
        )
        if _may_change(run):
            if visitor.person() is not None:
                st.toggle(
                    "Share",
                    run.shared,
                    key=f"run-share-{run.id}",
                    on_change=_try,
                    args=(lambda: _share(run),),
                    help="Shows settings and results of this run to everybody who logs in here; network and data stay "
                    "yours. Default off.",
                )
            st.button("Delete", key="run-delete", on_click=_ask, args=(run.id,))
    if st.session_state.get(_DELETING) == run.id:
        st.markdown("Delete this run? Its settings and results go.")
        with st.container(horizontal=True):
            st.button("Delete it", key="run-really", type="primary", on_click=_try, args=(lambda: _delete(run),))
            st.button("Keep it", key="run-keep", on_click=_ask, args=("",))
    if refused:
        st.caption(literal(refused))


def _cannot_open(run: Run) -> str:
    """Say why a run cannot be opened; empty where it can."""
    if not page_of(run):
        return "No page of the dashboard has these settings: it was made on the command line."
    models, data = visitor.models(), visitor.datasets()
    parameters = parameters_of(run)
    if parameters.get("model") not in models:
        return f"The network {parameters.get('model')} is not here. Add it in the library under the same name."
    tests = parameters.get("data", "")
    return "" if tests in data or visitor.may_see()(tests) else f"The tests {tests} are not here."


def _may_change(run: Run) -> bool:
    """Whether a run is this visitor's to change: of their own networks or data, else on the server's own computer."""
    from idc_core import library
    from idc_core.suites import SAVED

    owners = library.owners() | {name: suite.owner for name, suite in SAVED.listed().items()}
    private = {owners.get(name, "") for names in run.names.values() for name in names} - {""}
    return (private or {""}) == {visitor.owner()}


def _may_mark(run: Run) -> bool:
    """Whether this visitor may name and pin a run: who has logged in does it for themselves alone."""
    return visitor.person() is not None or _may_change(run)


def _mark(run: Run, **changes: Any) -> None:
    """Say something of a run, in this visitor's name."""
    mark = Mark(run.name, run.pinned, run.shared and _may_change(run), visitor.person() or "")
    store.mark(run.id, replace(mark, **changes))


def _rename(run: Run) -> None:
    from idc_core.library import plain_name

    _mark(run, name=plain_name(st.session_state[f"run-name-{run.id}"]))


def _share(run: Run) -> None:
    _check_own(run)
    _mark(run, shared=st.session_state[f"run-share-{run.id}"])


def _check_own(run: Run) -> None:
    """Refuse to share or delete a run that is not this visitor's."""
    if not _may_change(run):
        raise SettingError("This run is not yours: only whoever added its network or data can share or delete it.")


def _delete(run: Run) -> None:
    _check_own(run)
    store.delete(run.id)
    st.session_state.pop(RUN, None)
    address.keep(RUN, "")


def _ask(id: str) -> None:
    st.session_state[_DELETING] = id


def _try(do: Callable[[], None]) -> None:
    """Do something to a run; say why where it fails."""
    st.session_state.pop(_DELETING, None)
    try:
        do()
    except IdcError as error:
        st.session_state[_REFUSED] = literal(error)
