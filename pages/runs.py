"""Runs: everything that was finished before, to be found, opened and compared."""

from __future__ import annotations

from functools import partial

import streamlit as st

from idc_core.base.files import COMMAND
from idc_core.errors import IdcError
from studio.runs import listing, over_time, side_by_side
from studio.shell import tabs
from studio.shell.frame import enter
from studio.shell.pages import PageEntry, draw_link
from studio.text import literal

PAGE = PageEntry(
    "Runs",
    ":material/history:",
    "What was found before?",
    "Finished analyses, comparisons, attacks, searches and inspections: find, name, compare and open them.",
    section="Mine",
    place=160,
    setup="none",
    tabs={"all": "All runs", "compare": "Compare", "versions": "Over time"},
    controls={"compared-runs": "compare", "version-of": "versions"},
)

enter()
_finding = st.empty()
_runs = listing.seen()
if not _runs:
    _finding.markdown(
        "**No runs yet.** A run is a finished analysis, suite comparison, attack, search, inspection or measurement of "
        "class errors. It is kept with its settings and figures, and opens again without being computed."
    )
    st.caption("The first one comes by itself: open Coverage, and its analysis is listed here.")
    draw_link("coverage")
    st.caption(f"On the command line, `{COMMAND} analyze` makes one too.")
    st.stop()
_finding.markdown(listing.sentence(_runs))
try:
    tabs.draw(
        "runs",
        {
            "all": partial(listing.draw, _runs),
            "compare": partial(side_by_side.draw, _runs),
            "versions": partial(over_time.draw, _runs),
        },
    )
except IdcError as error:
    st.error(literal(error))
