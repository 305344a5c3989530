"""Hypotheses: which units respond to properties of the inputs that can be named."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from idc_core.errors import CancelledError, IdcError
from idc_core.inspection.measures import PAIR_MEASURES
from studio.hypotheses import (
    controls,
    epochs,
    hypothesis_pair,
    important_neurons,
    inspections,
    score_map,
    sql_questions,
    verification,
)
from studio.hypotheses.inspections import Measured
from studio.shell import pins
from studio.shell.frame import current_view
from studio.text import count, literal
from studio.widgets import layout

view = current_view()
finding = st.empty()
settings = controls.choose_settings(view)
shown = controls.choose_shown(view, settings)
preliminary = st.empty()


def tell(part: Measured) -> None:
    """Show the scores so far while more records are read."""
    finding.markdown(score_map.sentence(part, shown))
    with preliminary.container():
        score_map.draw_map(part, shown, None, f"scores-{part.records}")
        st.caption(f"After {count(part.records)} records. Widest 95\u00a0% interval: ± {shown.grid(part).widest:.2f}.")


try:
    measured = inspections.measure(view, settings, tell)
except IdcError as error:
    st.error(literal(error))
    st.stop()
preliminary.empty()
if measured is None:
    st.info("Stopped before any score was ready. Start again to continue; fewer hypotheses are faster.")
    st.stop()
grid, layer, label = shown.grid(measured), shown.layer, shown.label
finding.markdown(score_map.sentence(measured, shown))
pair = hypothesis_pair.choose(measured, grid, layer)
score_map.draw_map(measured, shown, pair, first=controls.choose_part(grid, shown.columns, pair[1]))
score_map.draw_records_read(measured, shown)

st.header("One hypothesis, one unit", anchor=False)
hypothesis_pair.draw_choice(measured, grid, layer, pair)
hypothesis_pair.draw_ranks(measured, grid, layer, pair, label)
one = next(one for one in inspections.chosen_hypotheses(view, settings) if one.name == grid.names[pair[0]])
try:
    hypothesis_pair.draw_records(measured, layer, pair[1], one)
except CancelledError:
    st.caption("Stopped before single records were ready.")
hypothesis_pair.draw_links(measured, layer, pair[1])
swaps = verification.draw_verification(measured, grid, layer, one)

score_map.draw_probes(measured)
important_neurons.draw_importance(measured, grid, layer, label)
by_epoch = epochs.draw_epochs(measured, grid, shown.measure, layer, label, pair)
sql_questions.draw_questions(measured)
pins.beside(view, partial(score_map.draw_side, settings, shown), partial(score_map.compare, settings, shown))

layout.computed(
    view,
    f"Every unit of a layer is compared with {len(grid.names)} hypotheses by {label}: "
    f"{PAIR_MEASURES[shown.measure].help} Layers with units at every symbol or pixel are compared place by place, "
    "without padding. For a coarser layer, a hypothesis about pixels is pooled over the pixels of each place.",
    "Confidence intervals (95 %) come from the jackknife over groups of records, because the symbols of one record "
    f"depend on one another. With {count(grid.tested)} tests some would seem significant by chance. Significant are "
    f"those that pass Benjamini and Yekutieli's procedure at {100 * shown.rate:g} %, which holds for any dependence of "
    "the tests. Hypotheses that hold, or fail, in fewer than 20 records are not tested. Mutual information is tested "
    "per bin, with Bonferroni's correction. A probe is tested by the correlation of its predictions with the truth on "
    "held-out records.",
    "Source of hypotheses and measures: T. Sellam et al., DeepBase: Deep Inspection of Neural Networks, SIGMOD 2019.",
)
# Without what has no meaning here, as groups of units where none were asked for.
scores = measured.found.frame().replace("", np.nan).dropna(axis=1, how="all")
layout.take_away({"hypotheses-scores": scores, **swaps, **by_epoch})
