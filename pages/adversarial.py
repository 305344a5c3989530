"""Adversarial: what attacks on the tests reveal, and which cells attacked inputs add."""

from __future__ import annotations

from functools import partial

import streamlit as st

from studio.adversarial import attack_charts, attack_controls, attack_results, attack_runs, attacks, explanations
from studio.shell import pins, tabs
from studio.shell.frame import current_view
from studio.shell.needs import classes, pictures, true_classes
from studio.shell.pages import PageEntry, stop_if_unmet
from studio.widgets import layout
from studio.widgets.stepping import draw_steps

PAGE = PageEntry(
    "Adversarial",
    ":material/bolt:",
    "What do attacks reveal that the tests do not?",
    "Attacks on correctly classified tests: success, size of the change, change of relevance, and added cells.",
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

view = current_view()
finding = st.empty()

stop_if_unmet("adversarial", view.setup, finding)

plan, explained = attack_controls.choose(view)
if not len(attacks.sample(view, plan)):
    finding.markdown("**None of the chosen tests can be attacked.**")
    st.caption("All are misclassified or of the goal's class. Choose other classes or another goal.")
    st.stop()
run = attack_runs.open_or_resume(view, plan, explained, finding)
finding.markdown(attack_charts.headline(view, run))
if run.result.complete:
    attack_controls.remember(view, plan)


def draw_inputs() -> None:
    """Show one attacked input beside its source, and more to choose from."""
    st.markdown(attack_charts.relevance_sentence(run))
    row = st.container(horizontal=True, vertical_alignment="bottom")
    shown, factor = attack_results.choose_shown(run, row)
    attacked, place = attack_runs.open_selected(view, run, explained, int([*shown, 0][0]))
    with row:
        draw_steps(view.test.ids[run.positions[shown]], int(view.test.ids[attacked.positions[place]]))
    attack_results.draw_one(view, attacked, place, factor)
    attack_results.draw_gallery(view, run, shown, factor)
    attack_runs.draw_save(view, run)
    explanations.explain_inputs(view, plan)
    layout.take_away(
        {"attacked-inputs": attack_results.table_of(view, run)}, attack_results.files(view, run, shown, factor)
    )


def draw_sizes() -> None:
    """Show how large the changes are, and the smallest and largest ones that succeed."""
    attack_charts.draw_sizes(view, run)
    attack_results.draw_extremes(view, run)
    pins.beside(view, partial(attack_charts.draw_side, run, view), partial(attack_charts.difference, run))
    explanations.explain_sizes(view, plan)


def draw_confusions() -> None:
    """Show which classes are confused before and after, and the inputs of one confusion."""
    table = attack_charts.draw_confusions(view, run)
    attack_results.draw_confused(view, run, table)
    explanations.explain_attack(view, plan)


def draw_cells() -> None:
    """Show the cells that only attacked inputs reach, and these inputs."""
    attack_results.draw_cells(view, run)
    explanations.explain_cells(view, plan)


def draw_all() -> None:
    """Show all attacks on the same tests side by side."""
    attack_charts.draw_comparison(view, attack_runs.open_session(view, run))
    explanations.explain_attack(view, plan)


tabs.draw(
    "adversarial",
    {"inputs": draw_inputs, "sizes": draw_sizes, "confusions": draw_confusions, "cells": draw_cells, "all": draw_all},
)
