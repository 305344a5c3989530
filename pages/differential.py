"""Differential: pictures on which networks for one task disagree, so that at least one of them is wrong."""

from functools import partial

import streamlit as st

from idc_core.errors import IdcError
from studio.differential import coverage_gain, retraining, search, search_controls, summary
from studio.differential import disagreements as shown
from studio.shell import pins, tabs
from studio.shell.frame import current_view
from studio.shell.needs import pictures
from studio.shell.pages import PageEntry, stop_if_unmet
from studio.text import literal
from studio.widgets import layout

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
wanted = search_controls.is_wanted(view, settings)
try:
    found = search.run(view, settings, start=wanted)
except IdcError as error:
    st.error(literal(error))
    st.stop()
if found is None:
    if wanted:
        finding.markdown("Stopped before any disagreement was found.")
    else:
        finding.markdown("**This search waits for a click:** many or large pictures take seconds to minutes.")
        search_controls.draw_start(view, settings)
    st.stop()
result = found
finding.markdown(summary.sentence(result))
if result.disagreements.stopped:
    st.caption("Stopped: these are the disagreements so far.")


def draw_found() -> None:
    """Show one disagreement, and all of them."""
    if not len(result.disagreements):
        st.caption("There is no disagreement to show.")
        return
    row = shown.chosen_row(view, result)
    shown.draw_one(view, result, row)
    table = shown.table(view, result)
    shown.draw_table(view, result, table)
    shown.draw_more(view, result, row)
    shown.draw_keep(view, result)
    summary.explain(view, result)
    layout.take_away({"disagreements": table}, shown.files(view, result))


def draw_steps() -> None:
    """Show how many steps the search took."""
    summary.draw_steps(view, result, "steps")
    pins.beside(view, partial(summary.draw_side, view, settings), partial(summary.compare_setups, view, settings))
    summary.explain(view, result)


def draw_gain() -> None:
    """Show the coverage that disagreements add to the tests."""
    if len(result.disagreements):
        coverage_gain.draw_gain(view, result)
    else:
        st.caption("There is no disagreement to add.")


def draw_retraining() -> None:
    """Show whether training with disagreements helps."""
    if len(result.disagreements):
        retraining.draw_retraining(view, result, settings)
    else:
        st.caption("There is no disagreement to train with.")


tabs.draw("differential", {"found": draw_found, "steps": draw_steps, "gain": draw_gain, "retraining": draw_retraining})
