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
    place=120,
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

view = current_view()
finding = st.empty()

stop_if_unmet("differential", view.setup, finding)
settings = search_controls.choose(view)
if len(settings.models) < 2:
    summary.draw_one_model(view, settings.models[0], finding)
    st.stop()
result = search_controls.open_or_offer(view, settings, finding)
finding.markdown(summary.sentence(result))
if result.disagreements.stopped:
    st.caption("Stopped: these are the disagreements so far.")
tabs.draw(
    "differential",
    {
        "found": partial(disagreements.draw, view, result),
        "steps": partial(summary.draw_steps, view, result, settings),
        "gain": partial(coverage_gain.draw, view, result),
        "retraining": partial(retraining.draw, view, result, settings),
    },
)
