"""Differential: pictures on which networks for one task disagree, so that at least one of them is wrong."""

from functools import partial

import pandas as pd
import streamlit as st

from idc_core.errors import IdcError
from studio.differential import coverage_gain, retraining, search, search_controls, summary
from studio.differential import disagreements as shown
from studio.engine.wording import kind
from studio.shell import pins
from studio.shell.frame import current_view
from studio.text import literal
from studio.widgets import layout

view = current_view()
finding = st.empty()

if view.test.inputs.ndim != 4:
    tests = kind(view.test)
    finding.markdown(f"**The search changes pictures, and these tests are {tests}.** Choose a network for pictures.")
    st.stop()
settings = search_controls.choose(view)
if len(settings.models) < 2:
    summary.draw_one_model(view, settings.models[0], finding)
    st.stop()
try:
    result = search.run(view, settings)
except IdcError as error:
    st.error(literal(error))
    st.stop()
if result is None:
    finding.markdown("Stopped before any disagreement was found.")
    st.stop()
finding.markdown(summary.sentence(result))
if result.disagreements.stopped:
    st.caption("Stopped: these are the disagreements so far.")

tables: dict[str, pd.DataFrame] = {}
if len(result.disagreements):
    row = shown.chosen_row(view, result)
    shown.draw_one(view, result, row)
    st.header("All disagreements", anchor=False)
    tables["disagreements"] = shown.table(view, result)
    shown.draw_table(view, result, tables["disagreements"])
    shown.draw_more(view, result, row)
    st.subheader("Keep as a test set", anchor=False)
    shown.draw_keep(view, result)
    st.header("Steps until disagreement", anchor=False)
    summary.draw_steps(view, result, "steps")
    st.header("Coverage they add to the tests", anchor=False)
    tables |= coverage_gain.draw_gain(view, result)
    st.header("Does training with them help?", anchor=False)
    tables |= retraining.draw_retraining(view, result, settings)
else:
    summary.draw_steps(view, result, "steps")

pins.beside(view, partial(summary.draw_side, view, settings), partial(summary.compare_setups, view, settings))
summary.explain(view, result)
layout.take_away(tables, shown.files(view, result))
