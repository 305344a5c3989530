"""What a person decided on the empty cells of a setup, and on inputs made for them: found again at the next visit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from idc_core.errors import IdcError
from idc_core.store.decisions import Decisions, decide, decided, grid_id
from studio.jobs.results import View
from studio.state import visitor
from studio.text import literal

ACCEPTED = "accepted"

_HERE, _FAILED = "decisions", "decision-failed"
"""In the session: the decisions of who may keep none here, by grid; and why the last one was not kept."""


def read(view: View) -> Decisions:
    """Return what was decided on a setup's cells, whatever its filter; labels that are no class are left out."""
    if _only_here():
        held: Decisions = st.session_state.get(_HERE, {}).get(_grid(view), Decisions())
        return held
    held, classes = decided(_grid(view), visitor.owner()), range(len(view.test.class_names))
    if not view.is_classifier:
        return held
    known = {name: label for name, label in held.inputs.items() if label is None or label in classes}
    return Decisions(held.cells, known)


def change(view: View, how: Callable[[Decisions], Decisions]) -> None:
    """Change what was decided on a setup's cells, by now perhaps in another window, too; for callbacks."""
    decisions = how(read(view))
    if _only_here():
        st.session_state.setdefault(_HERE, {})[_grid(view)] = decisions
        return
    try:
        decide(_grid(view), decisions, visitor.owner())
    except IdcError as error:
        st.session_state[_FAILED] = literal(error)


def tell() -> None:
    """Say why a decision was not kept, or that none is kept beyond this session."""
    if failed := st.session_state.pop(_FAILED, ""):
        st.error(failed)
    if _only_here():
        st.caption("Decisions are kept until this window is closed.")


def verdict(decisions: Decisions, cell: str, digests: Iterable[str]) -> str:
    """Return what was decided on a cell whose inputs have these digests; empty for nothing."""
    if any(decisions.inputs.get(digest) is not None for digest in digests):
        return ACCEPTED
    return decisions.cells.get(cell, "")


def _grid(view: View) -> str:
    return grid_id(*view.key, view.setup.layer, view.analysis.m, tuple(sorted(view.setup.options.items())))


def _only_here() -> bool:
    """Whether this visitor may keep nothing on the server."""
    return bool(visitor.uploads_refused()) or visitor.person() == visitor.NOBODY
