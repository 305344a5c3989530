"""Adversarial: what attacks on the tests reveal, and which cells attacked inputs add."""

from __future__ import annotations

from functools import partial

import streamlit as st

from studio.adversarial import attack_charts, attack_controls, attack_results, attack_runs, attacks
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.needs import classes, pictures, true_classes
from studio.shell.pages import PageEntry, stop_if_unmet

PAGE = PageEntry(
    "Adversarial",
    ":material/bolt:",
    "What do attacks reveal that the tests do not?",
    "Attacks on correctly classified tests: success, size of the change, change of relevance, and added cells.",
    section="Challenge",
    place=110,
    tabs={
        "inputs": "Inputs",
        "sizes": "Size of change",
        "confusions": "Confusions",
        "cells": "New cells",
        "all": "All attacks",
    },
    controls={"show": "inputs", "magnify": "inputs"},
    needs=(
        pictures(
            "Attacks change pictures, and these tests are none.",
            "relevance",
            "There is nothing between two words, and features and channels have ranges of their own, so that one "
            "epsilon does not fit all. The Relevance page shows which parts of an input contribute most.",
        ),
        classes(
            "Attacks aim at a wrong class, and this network predicts a number.",
            "testsets",
            "The Test sets page shows which cells noise and transforms add.",
        ),
        true_classes(
            "The tests have other classes than the network: an attack has no true class to start from.",
            "coverage",
            "Choose the network's own tests in the sidebar, or see the Coverage page.",
        ),
    ),
    opens=("attack-runs",),
)

_view = current_view()
_finding = st.empty()

stop_if_unmet("adversarial", _view.setup, _finding)

_plan, _explained = attack_controls.choose(_view)
if not len(attacks.sample(_view, _plan)):
    _finding.markdown("**None of the chosen tests can be attacked.**")
    st.caption("All are misclassified or of the goal's class. Choose other classes or another goal.")
    st.stop()
_run = attack_runs.open_or_resume(_view, _plan, _explained, _finding)
_finding.markdown(attack_charts.headline(_view, _run))
if _run.result.complete:
    attack_runs.remember(_view, _plan)
tabs.draw(
    "adversarial",
    {
        "inputs": partial(attack_results.draw_inputs, _view, _run, _explained),
        "sizes": partial(attack_charts.draw_sizes, _view, _run),
        "confusions": partial(attack_charts.draw_confusions, _view, _run),
        "cells": partial(attack_charts.draw_cells, _view, _run),
        "all": partial(attack_charts.draw_all, _view, _run),
    },
)
