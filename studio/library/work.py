"""Work on entries that the page was asked for: done once, with progress and Stop, its failure kept beside the entry."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, IdcError
from studio.jobs import jobs
from studio.jobs.jobs import JobKind
from studio.state import visitor
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.library import DataSettings, Entry, NetworkSettings

_WORK = JobKind("library", is_long=True, lives="server")

_ASKED = "library-asked"
_FAILED = "library-failed-"

_numbers = itertools.count()


@dataclass(frozen=True)
class Asked:
    """What is to be done with an entry: read again with `data` or `network`, connected by `network` and checked."""

    id: str
    doing: str
    read: bool = False
    data: DataSettings | None = None
    network: NetworkSettings | None = None
    check: bool = False
    number: int = -1


def ask(asked: Asked) -> None:
    """Have something done at the next run; for callbacks."""
    st.session_state[_ASKED] = replace(asked, number=next(_numbers))
    st.session_state.pop(_FAILED + asked.id, None)


def do_asked() -> None:
    """Do what was asked for, and show how far it is."""
    stopped = st.session_state.pop(jobs.STOPPED, False)
    asked: Asked | None = st.session_state.get(_ASKED)
    st.session_state[jobs.HALTED] = stopped and asked is None  # what the details were doing was stopped then
    if asked is None:
        return
    if stopped:
        del st.session_state[_ASKED]
        st.session_state[_FAILED + asked.id] = f"Stopped while {literal(asked.doing)}. Nothing was changed since then."
        return
    owner = visitor.owner()
    try:
        jobs.Waiting(1).get(_WORK, asked.number, asked.doing, lambda report: _work(asked, owner, report))
    except CancelledError:
        st.session_state[_FAILED + asked.id] = f"Stopped while {literal(asked.doing)}."
    except IdcError as error:
        st.session_state[_FAILED + asked.id] = literal(error)
    # A run that is interrupted does not come here: the next one goes on with the same job.
    del st.session_state[_ASKED]


def refuse(id: str, why: str) -> None:
    """Keep beside an entry why, as Markdown, what was asked for is not done; nothing where it is. For callbacks."""
    st.session_state[_FAILED + id] = why


def failure(id: str) -> str:
    """Return why the last work on an entry failed, to be shown as it is; empty where it did not."""
    return str(st.session_state.get(_FAILED + id, ""))


def _work(asked: Asked, owner: str, report: Progress) -> None:
    from idc_core import library

    def found() -> Entry:
        return library.ENTRIES.own(asked.id, owner)

    steps: list[tuple[bool, Callable[[], Entry]]] = [
        (asked.read, lambda: library.understand(_with(found(), asked), report)),
        (asked.check and asked.network is not None, lambda: library.connect(found(), asked.network or _none(), report)),
        (asked.check, lambda: library.checked(found(), report)),
    ]
    for is_asked, step in steps:
        if is_asked:
            step()


def _with(entry: Entry, asked: Asked) -> Entry:
    return replace(
        entry, data_settings=asked.data or entry.data_settings, network_settings=asked.network or entry.network_settings
    )


def _none() -> NetworkSettings:
    from idc_core.library import NetworkSettings

    return NetworkSettings()
