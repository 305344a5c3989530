"""Robustness: whether training on inputs that the tests were missing helps."""

from functools import partial

import streamlit as st

from studio.robustness import results, retraining
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.needs import pictures, true_classes
from studio.shell.pages import PageEntry, stop_if_unmet
from studio.widgets.retraining import watch

PAGE = PageEntry(
    "Robustness",
    ":material/fitness_center:",
    "Does training on what was missing help?",
    "The network retrained with inputs that raise IDC, with equally many random inputs, and with none.",
    section="Challenge",
    place=120,
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

_view = current_view()
_finding = st.empty()
stop_if_unmet("robustness", _view.setup, _finding)

_run = retraining.choose(_view)
if tabs.opened("robustness") == "curves" or not _run.result.complete:  # the other tabs say what they show
    _finding.markdown(results.sentence(_run))
watch(_run)
tabs.draw(
    "robustness",
    {
        "curves": partial(results.draw_accuracy, _run),
        "differences": partial(results.draw_differences, _run),
        "added": partial(results.draw_added, _run),
    },
)
