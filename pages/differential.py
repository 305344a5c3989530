"""Differential: pictures on which networks for one task disagree, so that at least one of them is wrong."""

from functools import partial

import streamlit as st

from studio.differential import coverage_gain, disagreements, retraining, search_controls, summary
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.needs import pictures
from studio.shell.pages import PageEntry, stop_if_unmet

PAGE = PageEntry(
    "Differential",
    ":material/call_split:",
    "Where do similar models disagree?",
    "Search for inputs on which networks for one task disagree, so that at least one is wrong.",
    section="Compare",
    place=130,
    tabs={"found": "Disagreements", "steps": "Search progress", "gain": "What they add", "retraining": "Retraining"},
    controls={"measured": "gain", "retrain": "retraining"},
    needs=(
        pictures(
            "The search changes pictures, and these tests are none.",
            "testsets",
            "Choose a network for pictures. The Test sets page shows which of your own tests add cells.",
        ),
    ),
    selects=("find",),
    opens=("searches",),
)

_view = current_view()
_finding = st.empty()

stop_if_unmet("differential", _view.setup, _finding)
_settings = search_controls.choose(_view)
if len(_settings.models) < 2:
    summary.draw_one_model(_view, _settings.models[0], _finding)
    st.stop()
_result = search_controls.open_or_offer(_view, _settings, _finding)
_finding.markdown(summary.sentence(_result))
if _result.disagreements.stopped:
    st.caption("Stopped: these are the disagreements so far.")
tabs.draw(
    "differential",
    {
        "found": partial(disagreements.draw, _view, _result),
        "steps": partial(summary.draw_steps, _view, _result, _settings),
        "gain": partial(coverage_gain.draw, _view, _result),
        "retraining": partial(retraining.draw, _view, _result, _settings),
    },
)
