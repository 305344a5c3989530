"""Criteria: scores and rank correlation of all coverage criteria, and which tests each would run first."""

from __future__ import annotations

from typing import Any

import streamlit as st

from idc_core.coverage import CRITERIA
from idc_core.coverage.prioritisation import UNCERTAINTIES
from studio.criteria import criterion_controls, criterion_scores, prioritised_tests, score_charts
from studio.engine.results import View
from studio.shell import pins
from studio.shell.frame import current_view
from studio.widgets import layout

view = current_view()
finding = st.empty()

names = criterion_controls.choose_criteria(view)
others = criterion_controls.choose_others(view)
layout.explain_criteria()
settings = criterion_controls.choose_settings()
measured = criterion_scores.measure_criteria(view, names, settings, others)
for problem in measured.problems:
    st.warning(problem)
if not measured.results:
    st.stop()
orders = {order.key: order for order in measured.orders}
faults = criterion_scores.faults(view, measured)
finding.markdown(score_charts.correlation_sentence(measured) + prioritised_tests.faults_sentence(faults, orders))
score_charts.draw_scores(view, measured, "scores")
score_charts.draw_table(view, measured)
tables = {"criteria-scores": score_charts.score_frame(measured)}

st.header("Do they rank suites alike?", anchor=False)
tables["criteria-correlations"] = score_charts.draw_correlations(view, measured)

st.header("How each grows with the tests", anchor=False)
tables["criteria-growth"] = score_charts.draw_growth(view, measured)

st.header("Which tests would each run first?", anchor=False)
order = prioritised_tests.choose_order(orders)
if faults is not None:
    tables["criteria-mistakes"] = prioritised_tests.draw_faults(view, faults, orders, order, measured.key)
elif view.correct is None:
    st.caption("Orders cannot be compared: accuracy is not defined for these tests.")
else:
    st.caption("Orders cannot be compared: no test is misclassified.")
prioritised_tests.draw_first(view, order)


def measure_default(one: View) -> criterion_scores.MeasuredCriteria:
    """Measure the chosen criteria on a setup, without other suites."""
    return criterion_scores.measure_criteria(one, names, settings, [])


def draw_side(one: View, _: Any, key: str) -> None:
    """Draw the scores of one of two setups."""
    score_charts.draw_scores(one, measure_default(one), f"scores-{key}")


pins.beside(
    view, draw_side, lambda here, there: score_charts.compare_setups(measure_default(here), measure_default(there))
)
layout.computed(
    view,
    f"All criteria look at layer {view.setup.layer}. Training inputs and tests pass through the network once. The "
    "targets that each test covers are kept; scores of parts, subsets and orders are counted from them. NLC has no "
    "targets and is computed for each part and subset. The clusters of CC are those of all tests in their order.",
    "An order by new coverage always runs the test next that adds most to those before it. Surprise criteria also give "
    f"an order by surprise; {layout.names([one.label for one in UNCERTAINTIES.values()])} run the least confident "
    "predictions first."
    + (
        ""
        if faults is None
        else " APFD counts every misclassified test as a fault of its own (Rothermel et al. 2001; Feng et al., ISSTA "
        "2020)."
    ),
    "\n".join(
        [
            *(f"* {name.upper()}: {CRITERIA[name].card.label}. {CRITERIA[name].card.citation}" for name in names),
            *(f"* {one.label}: {one.help} {one.citation}" for one in UNCERTAINTIES.values()),
        ]
    ),
)
layout.take_away(tables)
