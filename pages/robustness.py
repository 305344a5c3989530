"""Robustness: whether training on inputs that the tests were missing helps."""

from functools import partial

import streamlit as st

from studio.robustness import controls, results
from studio.robustness.retraining import rq6_run
from studio.shell import pins, tabs
from studio.shell.frame import current_view
from studio.shell.needs import pictures, true_classes
from studio.shell.pages import PageEntry, stop_if_unmet
from studio.widgets import layout
from studio.widgets.retraining import watch

PAGE = PageEntry(
    "Robustness",
    ":material/fitness_center:",
    "Does training on what was missing help?",
    "The network retrained with inputs that raise IDC, with equally many random inputs, and with none.",
    place=130,
    tabs={"curves": "Accuracy", "differences": "Differences", "added": "Added inputs"},
    needs=(
        pictures(
            "The additions of this page are made by noise, which is defined for pictures, and these tests are none.",
            "testsets",
            "The Test sets page shows which of your own tests add cells; "
            "`idc_core.experiments.retraining.retrain` trains with additions of any kind.",
        ),
        true_classes(
            "Accuracy is not defined for these tests: their classes are not the network's.",
            "coverage",
            "Choose the network's own tests in the sidebar, or see the Coverage page.",
        ),
    ),
)

view = current_view()
finding = st.empty()
stop_if_unmet("robustness", view.setup, finding)

settings, seeds = controls.choose(view)
run = rq6_run(view, settings, seeds)
finished = bool(run.result.networks)
if not finished:
    finding.markdown(results.before_first_result(run))
elif tabs.opened("robustness") == "curves" or not run.result.complete:  # the other tabs say what they show
    finding.markdown(results.sentence(run))
watch(run)


def draw_curves() -> None:
    """Show accuracy after every epoch, and after the last one; before that, what will be done."""
    if finished:
        results.draw_curves(run, "curves")
        results.draw_means(run)
    else:
        results.draw_command(run)
    pins.beside(view, partial(results.draw_side, run), partial(results.compare_setups, run))
    results.explain_curves(run)


def draw_differences() -> None:
    """Show which additions differ significantly."""
    results.draw_differences(run)
    results.explain_differences(run)


def draw_added() -> None:
    """Show what was added, and offer the retrained networks."""
    results.draw_added(run)
    results.explain_added(run)
    if finished:
        layout.take_away({}, results.files(run))


tabs.draw("robustness", {"curves": draw_curves, "differences": draw_differences, "added": draw_added})
