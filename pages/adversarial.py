"""Adversarial: what attacks on the tests reveal, and which cells attacked inputs add."""

from __future__ import annotations

from functools import partial

import streamlit as st

from idc_core.perturbation.attacks import ATTACKS
from idc_core.suites.attacked import BLOCK
from studio.adversarial import attack_charts, attack_controls, attack_results, attack_runs, attacks
from studio.shell import pins
from studio.shell.frame import current_view
from studio.shell.pages import PAGES
from studio.widgets import layout

view = current_view()
finding = st.empty()

if problem := attack_controls.nothing_to_attack(view):
    finding.markdown(f"**{problem}**")
    entry = PAGES[attack_controls.instead(view)]
    st.page_link(entry.file, label=entry.question, icon=entry.icon, help=entry.help)
    st.stop()

plan = attack_controls.choose(view)
if not len(attacks.sample(view, plan)):
    finding.markdown("**None of the chosen tests can be attacked.**")
    st.caption("All are misclassified or of the goal's class. Choose other classes or another goal.")
    st.stop()
progress, above = st.container(), st.container(horizontal=True, vertical_alignment="bottom")
with above:
    explained = attack_results.choose_explained()
with progress:
    run = attack_runs.open_or_resume(view, plan, explained)
finding.markdown(f"{attack_charts.headline(view, run)} {attack_charts.relevance_sentence(run)}")
if run.result.complete:
    attack_controls.remember(view, plan)

with above:
    shown, factor = attack_results.choose_shown(run)
one, place = attack_runs.open_selected(view, run, explained, int([*shown, 0][0]))
attack_results.draw_one(view, one, place, factor)
layout.how_to_read(
    "Change: grey is none, brighter is raised, darker is lowered. Heatmaps: red supports the explained class, blue "
    "with a dot opposes it. If the centre moves far or the correlation is low, the network now uses other pixels."
)
attack_results.draw_gallery(view, run, shown, factor)

st.header("Size of the changes", anchor=False)
attack_charts.draw_sizes(view, run)

st.header("Confusion matrix before and after", anchor=False)
confusion_table = attack_charts.draw_confusions(view, run)

st.header("Cells reached only by attacked inputs", anchor=False)
cell_table = attack_results.draw_cells(view, run)

st.header("All attacks on the same tests", anchor=False)
comparison = attack_charts.draw_comparison(view, attack_runs.open_session(view, run))

pins.beside(view, partial(attack_charts.draw_side, run, view), partial(attack_charts.difference, run))

layout.computed(
    view,
    f"{ATTACKS[plan.attack].label}: {ATTACKS[plan.attack].citation}. Gradient attacks run through foolbox; JSMA is our "
    "own implementation. Random starts and random goals depend only on the seed and the input's number. Finished "
    f"blocks of {BLOCK} inputs are kept on disk: stopping loses at most one, and no attack runs twice.",
    "An added cell is a combination of clusters of the important neurons that no chosen test reaches. Sizes are shares "
    "of the value range; a pixel counts as changed if a value moved by more than 0.00001. Relevance: epsilon rule. "
    "Centre: mean position of the positive relevance. Rank correlation: Spearman.",
)
attack_runs.draw_save(view, run)
layout.take_away(
    {
        "attacked-inputs": attack_results.table_of(view, run),
        "attack-confusion": confusion_table,
        "gained-cells": cell_table,
        "attacks": comparison,
    },
    {
        "Attacked inputs (npz)": (
            "idc-attacked.npz",
            "application/octet-stream",
            lambda: attack_results.archive(view, run),
        ),
        "Contact sheet (PNG)": (
            "idc-attacked.png",
            "image/png",
            lambda: attack_results.sheet(view, run, shown, factor),
        ),
    },
)
