"""Robustness: whether training on inputs that the tests were missing helps."""

from functools import partial

import pandas as pd
import streamlit as st

from studio.engine.wording import kind
from studio.robustness import controls, results
from studio.robustness.retraining import rq6_run
from studio.shell import pins
from studio.shell.frame import current_view
from studio.widgets import layout
from studio.widgets.retraining import watch

view = current_view()
finding = st.empty()

if view.test.inputs.ndim != 4:
    finding.markdown(
        f"**Noise and attacks are defined for pictures, and these tests are {kind(view.test)}.** In Python, "
        "`idc_core.experiments.retraining.retrain` takes additions and tests of any kind."
    )
    st.stop()
if view.is_classifier and not view.is_comparable:
    finding.markdown("**Accuracy is not defined for these tests: their classes are not the network's.**")
    st.stop()

settings, seeds = controls.choose(view)
run = rq6_run(view, settings, seeds)
watch(run)
finished = bool(run.result.networks)
if finished:
    finding.markdown(results.sentence(run))
    results.draw_curves(run, "curves")
    st.header("Which differences are significant?", anchor=False)
    results.draw_differences(run)
    results.draw_tables(run)
    results.draw_added(run)
else:
    finding.markdown(results.before_first_result(run))
    results.draw_command(run)

pins.beside(view, partial(results.draw_side, run), partial(results.compare_setups, run))
results.explain(run)
if finished:
    table = pd.DataFrame(run.result.rows())
    tables = {"retraining-curves": results.epoch_table(run), "retraining-differences": table}
    layout.take_away(tables, results.files(run))
