"""The test sets that were saved on this computer: by uploads, attacks and searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.errors import IdcError
from idc_core.store.documents import may_change
from studio.library.entries import size
from studio.state import visitor
from studio.text import literal, plural
from studio.widgets import headlines

if TYPE_CHECKING:
    from idc_core.suites import SavedSuite

_REFUSED = "library-suite-refused"


def draw() -> int:
    """List them with their deletion; return how many there are."""
    from idc_core.suites import SAVED

    who = visitor.person()
    saved, damaged = SAVED.listed(who), {} if who else SAVED.damaged()
    if not saved and not damaged:
        st.caption("None yet. Coverage, Test sets, Adversarial and Differential keep inputs as one.")
    for name, suite in saved.items():
        shape, last = (
            " x ".join(map(str, suite.form.shape)),
            suite.provenance[-1].label if suite.provenance else "uploaded",
        )
        held = SAVED.path(name).stat().st_size
        parts = (plural(suite.inputs, "test"), shape, literal(last), size(held), f"fingerprint `{name[5:]}`")
        _draw_one(name, suite.label, " · ".join(parts), suite if may_change(suite.owner, who) else None)
    for name, reason in damaged.items():
        _draw_damaged(name, reason)
    if refusal := st.session_state.pop(_REFUSED, ""):
        st.error(refusal)
    return len(saved)


def _draw_one(name: str, label: str, facts: str, own: SavedSuite | None) -> None:
    """Draw what a test set is; an own one can be renamed, shared where there is a login, and deleted."""
    from idc_core.library import plain_name
    from idc_core.suites import change_saved

    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(headlines.label(label))
            if own is not None:
                with st.popover("Rename", type="tertiary", help="Gives the test set another name."):
                    key = f"library-suite-name-{name}"
                    st.text_input(
                        "Name", own.label, key=key, max_chars=120, help="Shown in menus. Default its name now."
                    )
                    st.button(
                        "Rename it",
                        key=f"library-suite-rename-{name}",
                        on_click=_try,
                        args=(lambda: change_saved(name, visitor.person(), label=plain_name(st.session_state[key])),),
                    )
                if own.owner:
                    _draw_sharing(own)
                _draw_delete(name)
        st.caption(facts)


def _draw_sharing(own: SavedSuite) -> None:
    from idc_core.suites import change_saved

    key = f"library-suite-share-{own.name}"
    st.toggle(
        "Share",
        own.shared,
        key=key,
        on_change=_try,
        args=(lambda: change_saved(own.name, visitor.person(), shared=st.session_state[key]),),
        help="Shows the test set to everybody who logs in here. Default off.",
    )


def _draw_damaged(name: str, reason: str) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"{headlines.label(f'{name}.npz')} is damaged")
            _draw_delete(name)
        st.caption(literal(reason))


def _draw_delete(name: str) -> None:
    from idc_core.suites import SAVED

    with st.popover("Delete", type="tertiary", help="Deletes the saved tests from this computer."):
        st.button(
            "Delete it",
            key=f"library-suite-{name}",
            type="primary",
            on_click=_try,
            args=(lambda: SAVED.delete(name, visitor.person()),),
        )


def _try(do: Callable[[], None]) -> None:
    """Do something to a test set; say why where it fails."""
    try:
        do()
    except IdcError as error:
        st.session_state[_REFUSED] = literal(error)
