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
    "Do neurons mean something I can name?",
    "Which neurons correlate with classes, shapes, words or grammar rules, how strongly, and where.",
    place=90,
    tabs={"map": "Map", "unit": "One neuron", "important": "Important neurons", "epochs": "Epochs", "sql": "SQL"},
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

_view = current_view()
_finding = st.empty()
_settings, _shown = controls.choose(_view)
_preliminary = st.empty()


def _tell(part: Measured) -> None:
    """Show the scores so far while more records are read."""
    _finding.markdown(score_map.sentence(part, _shown))
    if tabs.opened("hypotheses") != "map":
        return
    with _preliminary.container():
        score_map.draw_map(part, _shown, None, f"scores-{part.records}")
        st.caption(f"After {count(part.records)} tests. Widest 95\u00a0% interval: ± {_shown.grid(part).widest:.2f}.")


try:
    _found = inspections.measure(_view, _settings, _tell)
except IdcError as error:
    st.error(literal(error))
    st.stop()
_preliminary.empty()
if _found is None:
    st.info("Stopped before any score was ready. Start again to continue; fewer hypotheses are faster.")
    st.stop()
_finding.markdown(score_map.sentence(_found, _shown))
_grid, _layer, _label = _shown.grid(_found), _shown.layer, _shown.label
_pair = hypothesis_pair.choose(_found, _grid, _layer)
_hypothesis = next(one for one in inspections.chosen_hypotheses(_view, _settings) if one.name == _grid.names[_pair[0]])
tabs.draw(
    "hypotheses",
    {
        "map": partial(score_map.draw, _found, _shown, _settings, _grid, _pair, _hypothesis),
        "unit": partial(one_unit.draw, _found, _grid, _layer, _pair, _hypothesis, _label),
        "important": partial(important_neurons.draw, _found, _grid, _layer, _pair, _hypothesis, _label),
        "epochs": partial(epochs.draw, _found, _grid, _shown.measure, _layer, _label, _pair),
        "sql": partial(sql_questions.draw, _found),
    },
)
