"""Which scores of a network are explained, as a person changes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.lrp.explained import EXPLAINED, said_of
from studio.library.preparing import control_key
from studio.library.work import Asked, ask

if TYPE_CHECKING:
    from idc_core.library import Entry

_ONE = "token-"
"""Beginning of the names of single tokens."""

_SCORES = "the scores that it returns"


def choose_explained(entry: Entry) -> None:
    """Draw the choice, closed; a change is tried on the network's data, where these are chosen, and checked."""
    now = entry.network_settings.explain
    options = {
        "": _SCORES,
        **{name: explained.said for name, explained in EXPLAINED.items()},
        _ONE: "the scores of one token",
    }
    chosen, number = (_ONE, int(now.removeprefix(_ONE))) if now.startswith(_ONE) else (now, 0)
    with (
        st.expander(f"Explained: {said_of(now) if now else _SCORES}"),
        st.form(f"library-explained-{entry.id}", border=False),
    ):
        with st.container(horizontal=True):
            st.selectbox(
                "What is explained",
                list(options),
                index=list(options).index(chosen),
                format_func=options.__getitem__,
                key=control_key(entry, "explained"),
                width=420,
                help="Of a network with several rows of scores per input: segmentation, detection, one row per token. "
                f"Default {_SCORES}.",
            )
            st.number_input(
                "Number of the token",
                0,
                999_999,
                number,
                key=control_key(entry, "token"),
                width=180,
                help="Counted from 0; where one token is explained. Default 0.",
            )
        st.form_submit_button("Explain these scores", on_click=_take, args=(entry,))


def _take(entry: Entry) -> None:
    from idc_core import library

    chosen = st.session_state[control_key(entry, "explained")]
    explain = f"{_ONE}{st.session_state[control_key(entry, 'token')]}" if chosen == _ONE else chosen
    settings = replace(entry.network_settings, explain=explain)
    if settings.data:
        ask(Asked(entry.id, f"checking {entry.label}", network=settings, check=True))
    else:
        library.replaced(entry, network_settings=settings)
