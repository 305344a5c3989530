"""Criteria: scores and rank correlation of all coverage criteria, and which tests each would run first."""

from __future__ import annotations

from typing import Any

import streamlit as st

from idc_core.coverage.prioritisation import UNCERTAINTIES
from idc_core.errors import CancelledError
from studio.criteria import criterion_controls, criterion_scores, prioritised_tests, score_charts
from studio.jobs.results import View
from studio.shell import pins, tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.widgets import layout

PAGE = PageEntry(
    "Criteria",
    ":material/compare_arrows:",
    "Do other coverage criteria agree with IDC?",
    "Other coverage criteria compared with IDC, their agreement, and test prioritisation by each.",
    place=140,
    tabs={"scores": "Scores", "agreement": "Agreement", "growth": "Growth", "prioritisation": "Prioritisation"},
    controls={"over": "agreement", "coefficient": "agreement", "order": "prioritisation", "suites": "scores"},
)

view = current_view()
tab = tabs.opened("criteria")
finding = st.empty()

# A control in the settings counts where its tab is open.
folded = criterion_controls.settings(*[score_charts.COEFFICIENT] * (tab == "agreement"))
with folded:
    of_the_tab = st.container()
    names = criterion_controls.choose_criteria(view)
    settings = criterion_controls.choose_parameters()
criterion_controls.say_left_out(view, names)
measured = criterion_scores.measure_criteria(view, names, settings)
for problem in measured.problems:
    st.warning(problem)
if not measured.results:
    st.stop()
if tab == "scores":  # the titles of the other tabs' charts say what they found
    finding.markdown(score_charts.correlation_sentence(measured))


def with_others() -> criterion_scores.MeasuredCriteria:
    """Choose other suites, and add them."""
    scores = criterion_scores.with_suites(view, measured, criterion_controls.choose_others(view))
    for problem in scores.problems:
        st.warning(problem)
    return scores


def draw_scores() -> None:
    """Show the scores of every suite."""
    scores = with_others()
    score_charts.draw_scores(view, scores, "scores")
    score_charts.draw_table(view, scores)
    pins.beside(
        view, draw_side, lambda here, there: score_charts.compare_setups(measure_default(here), measure_default(there))
    )
    layout.explain_criteria()
    layout.computed(
        view,
        f"All criteria look at layer {view.setup.layer}. Training inputs and tests pass through the network once. The "
        "targets that each test covers are kept; scores of parts are counted from them. NLC has no targets and is "
        "computed for each part. The clusters of CC are those of all tests in their order.",
    )


def draw_agreement() -> None:
    """Show how alike criteria rank suites or subsets."""
    over = score_charts.choose_over()
    with of_the_tab:
        method = score_charts.choose_coefficient()
    try:
        growth = None if over == score_charts.SUITES else criterion_scores.grow(view, measured)
    except CancelledError:
        st.caption("Stopped before the random subsets were scored.")
        return
    score_charts.draw_correlations(view, with_others() if growth is None else measured, growth, over, method)
    layout.computed(view, "Scores of parts and subsets are counted from the targets that each test covers.")


def draw_growth() -> None:
    """Show how each criterion grows with the tests."""
    try:
        score_charts.draw_growth(view, measured, criterion_scores.grow(view, measured))
    except CancelledError:
        st.caption("Stopped before the random subsets were scored.")
    layout.computed(view, "Subsets are counted from the targets that each test covers. NLC is computed for each.")


def draw_prioritisation() -> None:
    """Show which tests each criterion would run first, and how early that detects the misclassified ones."""
    try:
        orders = criterion_scores.order_tests(view, measured)
    except CancelledError:
        st.caption("Stopped before the tests were ordered.")
        return
    faults = criterion_scores.faults(view, orders)
    order = prioritised_tests.choose_order(orders)
    if faults is None:
        st.markdown(prioritised_tests.why_no_faults(view))
    else:
        prioritised_tests.draw_faults(view, faults, orders, order, measured.key)
    prioritised_tests.draw_first(view, order)
    layout.computed(
        view,
        "An order by new coverage always runs the test next that adds most to those before it. Surprise criteria also "
        f"give an order by surprise; {layout.names([way.label for way in UNCERTAINTIES.values()])} run the least "
        "confident predictions first. MC-dropout is for networks with dropout and up to "
        f"{criterion_scores.MOST_DROPPED:,} tests; it compares 20 passes from seed 0."
        + (
            " APFD counts every misclassified test as a fault of its own (Rothermel et al. 2001; Feng et al., ISSTA "
            "2020)."
            if view.correct is not None
            else ""
        ),
        "\n".join(f"* {way.label}: {way.help} {way.citation}" for way in UNCERTAINTIES.values()),
    )


def measure_default(one: View) -> criterion_scores.MeasuredCriteria:
    """Measure the chosen criteria on a setup, without other suites."""
    return criterion_scores.measure_criteria(one, names, settings)


def draw_side(one: View, _: Any, key: str) -> None:
    """Draw the scores of one of two setups."""
    score_charts.draw_scores(one, measure_default(one), f"scores-{key}")


tabs.draw(
    "criteria",
    {"scores": draw_scores, "agreement": draw_agreement, "growth": draw_growth, "prioritisation": draw_prioritisation},
)
