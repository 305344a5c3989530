"""The list of runs: those that the visitor may see, how they are filtered, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from idc_core.runs import RUN_KINDS, Run, find_runs, main_text
from studio.runs import one_run
from studio.runs.side_by_side import COMPARED, MOST
from studio.shell import tabs
from studio.state import address, visitor
from studio.state.choices import choose_one
from studio.text import count, literal, plural
from studio.widgets import layout

_EVERY = "all"
_TABLE = "runs-table"


def seen() -> list[Run]:
    """Return the runs that this visitor may see, the newest first."""
    return find_runs(owner=visitor.person() or "", sees=visitor.may_see())


def sentence(runs: Sequence[Run]) -> str:
    """Say what there is, as the finding of the page."""
    newest = runs[0]
    networks = len({run.said("network") for run in runs})
    pinned = sum(run.pinned for run in runs)
    kept = f" {plural(pinned, 'pinned run')}." if pinned else ""
    return (
        f"{plural(len(runs), 'run')} of {plural(networks, 'network')}. The newest: {newest.kind.lower()} of "
        f"{literal(newest.network)}, {literal(main_text(newest))}.{kept}"
    )


def draw(runs: Sequence[Run]) -> None:
    """List the runs, and show one of them."""
    kept = _filtered(runs)
    if not kept:
        st.caption("No run passes these filters.")
        return
    selected = _draw_table(kept)
    if len(selected) > 1:
        together = [run.id for run in selected if run.facts.kind == selected[0].facts.kind][:MOST]
        st.button(
            f"Compare the {count(len(together))} selected runs",
            key="runs-compare",
            disabled=len(together) < 2,
            on_click=_compare,
            args=(together,),
            help="Runs of one kind are compared.",
        )
    titles = {run.id: one_run.title(run) for run in kept}
    text = f"The run that is shown below. Default {literal(titles[kept[0].id])}."
    id = choose_one(st.selectbox, "Run", titles, kept[0].id, one_run.RUN, help=text)
    one_run.draw(next(run for run in kept if run.id == id))
    layout.take_away({"runs": _table(kept)})


def _compare(ids: list[str]) -> None:
    st.session_state.pop(COMPARED, None)
    address.keep(COMPARED, ",".join(ids))
    tabs.open_at("runs", "compare")


def _filtered(runs: Sequence[Run]) -> list[Run]:
    """Draw the filters; return the runs that pass."""
    kinds = {run.facts.kind: run.kind for run in runs}
    networks = {run.said("network"): run.network for run in runs}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = choose_one(
            st.selectbox,
            "Kind",
            {_EVERY: "all kinds", **{name: kinds[name] for name in RUN_KINDS if name in kinds}, **kinds},
            _EVERY,
            "run-kind",
            width=200,
            help="Which runs are listed. Default all kinds.",
        )
        network = choose_one(
            st.selectbox,
            "Network",
            {_EVERY: "all networks", **networks},
            _EVERY,
            "run-network",
            width=280,
            help="Which network's runs are listed. Default all networks.",
        )
        text = st.text_input(
            "Search",
            key="run-text",
            bind="query-params",
            width=280,
            placeholder="fc2 original",
            help="Words that the name or the settings of a run hold, all of them. Default none.",
        )
    return [
        run
        for run in runs
        if kind in (_EVERY, run.facts.kind) and network in (_EVERY, run.said("network")) and run.holds(text or "")
    ]


def _draw_table(runs: Sequence[Run]) -> list[Run]:
    """Draw the table of runs; a selected row is the run that is looked at. Return the selected ones."""
    frame = _table(runs)
    chosen = st.dataframe(
        frame,
        key=_TABLE,
        hide_index=True,
        height="content" if len(runs) <= 8 else 320,
        on_select=lambda: _take(runs),
        selection_mode="multi-row",
        column_config={
            "seconds": st.column_config.NumberColumn(
                format="%.1f", help="Time that was waited for it, reading and earlier steps included."
            ),
            "pinned": st.column_config.CheckboxColumn(help="Never removed to make room."),
            "version": st.column_config.TextColumn(
                help="Whether its numbers are of the present version; others are computed again when they are opened."
            ),
        },
    )
    return [runs[row] for row in chosen["selection"]["rows"] if row < len(runs)]


def _table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the runs as a table, also for download."""
    return pd.DataFrame(
        {
            "made (UTC)": [run.facts.made[:16].replace("T", " ") for run in runs],
            "kind": [run.kind for run in runs],
            "name": [run.name for run in runs],
            "network": [run.network for run in runs],
            "tests": [run.said("tests") for run in runs],
            "layer": [run.said("layer") for run in runs],
            "m": [run.said("m") for run in runs],
            "result": [main_text(run) for run in runs],
            "seconds": [run.facts.seconds for run in runs],
            "pinned": [run.pinned for run in runs],
            "version": ["this" if run.is_current else "another" for run in runs],
        }
    )


def _take(runs: Sequence[Run]) -> None:
    rows = st.session_state[_TABLE]["selection"]["rows"]
    if rows and rows[-1] < len(runs):
        _look_at(runs[rows[-1]].id)


def _look_at(id: str) -> None:
    """Look at a run; for callbacks."""
    st.session_state[one_run.RUN] = id
    address.keep(one_run.RUN, id)
