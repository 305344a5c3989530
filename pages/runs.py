"""Runs: everything that was finished before, to be found, opened and compared."""

from __future__ import annotations

import streamlit as st

from idc_core.base.files import COMMAND
from idc_core.errors import IdcError
from studio.runs import listing, one_run, over_time, side_by_side
from studio.shell import tabs
from studio.shell.frame import enter
from studio.shell.pages import PageEntry, draw_link
from studio.state import address
from studio.state.choices import choose_one
from studio.text import count, literal
from studio.widgets import layout

PAGE = PageEntry(
    "Runs",
    ":material/history:",
    "What was found before?",
    "Finished analyses, comparisons, attacks, searches and inspections: find, name, compare and open them.",
    place=40,
    setup="none",
    tabs={"all": "All runs", "compare": "Compare", "versions": "Over time"},
    controls={"compared-runs": "compare", "version-of": "versions"},
    presented=False,
)

enter()
finding = st.empty()
runs = listing.seen()
if not runs:
    finding.markdown(
        "**No runs yet.** A run is a finished analysis, suite comparison, attack, search, inspection or measurement of "
        "class errors. It is kept with its settings and figures, and opens again without being computed."
    )
    st.caption("The first one comes by itself: open Coverage, and its analysis is listed here.")
    draw_link("coverage")
    st.caption(f"On the command line, `{COMMAND} analyze` makes one too.")
    st.stop()
finding.markdown(listing.sentence(runs))


def draw_all() -> None:
    """List the runs, and show one of them."""
    kept = listing.filtered(runs)
    if not kept:
        st.caption("No run passes these filters.")
        return
    selected = listing.draw_table(kept)
    if len(selected) > 1:
        together = [run.id for run in selected if run.facts.kind == selected[0].facts.kind][: side_by_side.MOST]
        st.button(
            f"Compare the {count(len(together))} selected runs",
            key="runs-compare",
            disabled=len(together) < 2,
            on_click=_compare,
            args=(together,),
            help="Runs of one kind are compared.",
        )
    titles = {run.id: listing.title(run) for run in kept}
    text = f"The run that is shown below. Default {titles[kept[0].id]}."
    id = choose_one(st.selectbox, "Run", titles, kept[0].id, listing.RUN, help=text)
    one_run.draw(next(run for run in kept if run.id == id))
    layout.take_away({"runs": listing.table(kept)})


def _compare(ids: list[str]) -> None:
    st.session_state.pop(listing.COMPARED, None)
    address.keep(listing.COMPARED, ",".join(ids))
    tabs.open_at("runs", "compare")


def draw_compared() -> None:
    """Show runs of one kind side by side."""
    chosen = side_by_side.choose(runs)
    if len(chosen) < 2:
        st.caption("Two runs of one kind are needed: choose them above, or make a second one with other settings.")
        return
    side_by_side.draw(chosen)


def draw_versions() -> None:
    """Follow a figure over the versions of a network."""
    over_time.draw(runs)


try:
    tabs.draw("runs", {"all": draw_all, "compare": draw_compared, "versions": draw_versions})
except IdcError as error:
    st.error(literal(error))
