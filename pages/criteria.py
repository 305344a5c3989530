"""Criteria: scores and rank correlation of all coverage criteria, and which tests each would run first."""

from __future__ import annotations

from functools import partial

import streamlit as st

from studio.criteria import criterion_controls, criterion_scores, prioritised_tests, score_charts
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry

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
place, names, settings = criterion_controls.choose(view, *[score_charts.COEFFICIENT] * (tab == "agreement"))
measured = criterion_scores.measure_criteria(view, names, settings)
for problem in measured.problems:
    st.warning(problem)
if not measured.results:
    st.stop()
if tab == "scores":  # the titles of the other tabs' charts say what they found
    finding.markdown(score_charts.correlation_sentence(measured))
tabs.draw(
    "criteria",
    {
        "scores": partial(score_charts.draw_scores, view, measured, names),
        "agreement": partial(score_charts.draw_agreement, view, measured, place),
        "growth": partial(score_charts.draw_growth, view, measured),
        "prioritisation": partial(prioritised_tests.draw, view, measured),
    },
)
