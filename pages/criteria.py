"""Criteria: scores and rank correlation of all coverage criteria, and which tests each would run first."""

from __future__ import annotations

from functools import partial

import streamlit as st

from studio.criteria import criterion_controls, criterion_scores, prioritised_tests, score_charts, worth_rows
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry

PAGE = PageEntry(
    "Criteria",
    ":material/compare_arrows:",
    "Do other coverage criteria agree with IDC?",
    "Other coverage criteria compared with IDC, their agreement, and test prioritisation by each.",
    section="Compare",
    place=140,
    tabs={
        "scores": "Scores",
        "agreement": "Agreement",
        "growth": "Growth",
        "prioritisation": "Prioritisation",
        "worth": "Worth",
    },
    controls={
        "over": "agreement",
        "coefficient": "agreement",
        "order": "prioritisation",
        "suites": "scores",
        "yardstick": "worth",
    },
)

_view = current_view()
_tab = tabs.opened("criteria")
_finding = st.empty()

# A control in the settings counts where its tab is open.
_place, _names, _settings = criterion_controls.choose(_view, *[score_charts.COEFFICIENT] * (_tab == "agreement"))
_measured = criterion_scores.measure_criteria(_view, _names, _settings)
for problem in _measured.problems:
    st.warning(problem)
if not _measured.results:
    st.stop()
if _tab == "scores":  # the titles of the other tabs' charts say what they found
    _finding.markdown(score_charts.correlation_sentence(_view, _measured))
tabs.draw(
    "criteria",
    {
        "scores": partial(score_charts.draw_scores, _view, _measured, _names),
        "agreement": partial(score_charts.draw_agreement, _view, _measured, _place),
        "growth": partial(score_charts.draw_growth, _view, _measured),
        "prioritisation": partial(prioritised_tests.draw, _view, _measured),
        "worth": partial(worth_rows.draw, _view),
    },
)
