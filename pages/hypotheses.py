"""Hypotheses: which units respond to properties of the inputs that can be named."""

from __future__ import annotations

from functools import partial

import streamlit as st

from idc_core.errors import IdcError
from studio.hypotheses import (
    controls,
    epochs,
    hypothesis_pair,
    important_neurons,
    inspections,
    one_unit,
    score_map,
    sql_questions,
)
from studio.hypotheses.inspections import Measured
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.text import count, literal

PAGE = PageEntry(
    "Hypotheses",
    ":material/psychology:",
    "Do units mean something I can name?",
    "Which units correlate with classes, shapes, words or grammar rules, how strongly, and where.",
    place=160,
    tabs={"map": "Map", "unit": "One unit", "important": "Important neurons", "epochs": "Epochs", "sql": "SQL"},
    controls={
        "verify": "unit",
        "swaps": "unit",
        "verified-units": "unit",
        "over-epochs": "epochs",
        "rows-shown": "map",
        "units-shown": "map",
    },
    selects=("hypothesis", "unit"),
    opens=("inspections",),
)

view = current_view()
finding = st.empty()
settings, shown = controls.choose(view)
preliminary = st.empty()


def tell(part: Measured) -> None:
    """Show the scores so far while more records are read."""
    finding.markdown(score_map.sentence(part, shown))
    if tabs.opened("hypotheses") != "map":
        return
    with preliminary.container():
        score_map.draw_map(part, shown, None, f"scores-{part.records}")
        st.caption(f"After {count(part.records)} records. Widest 95\u00a0% interval: ± {shown.grid(part).widest:.2f}.")


try:
    found = inspections.measure(view, settings, tell)
except IdcError as error:
    st.error(literal(error))
    st.stop()
preliminary.empty()
if found is None:
    st.info("Stopped before any score was ready. Start again to continue; fewer hypotheses are faster.")
    st.stop()
finding.markdown(score_map.sentence(found, shown))
grid, layer, label = shown.grid(found), shown.layer, shown.label
pair = hypothesis_pair.choose(found, grid, layer)
hypothesis = next(one for one in inspections.chosen_hypotheses(view, settings) if one.name == grid.names[pair[0]])
tabs.draw(
    "hypotheses",
    {
        "map": partial(score_map.draw, found, shown, settings, grid, pair, hypothesis),
        "unit": partial(one_unit.draw, found, grid, layer, pair, hypothesis, label),
        "important": partial(important_neurons.draw, found, grid, layer, pair, hypothesis, label),
        "epochs": partial(epochs.draw, found, grid, shown.measure, layer, label, pair),
        "sql": partial(sql_questions.draw, found),
    },
)
