"""Adversarial: what attacks on the tests reveal, and which cells attacked inputs add."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import IdcError
from idc_core.figures import adversarial as figures
from idc_core.perturbation.attacks import ATTACKS
from studio.adversarial import attack_controls, attack_results, attack_runs, attacks
from studio.adversarial.attacks import Plan, Run
from studio.engine import jobs
from studio.engine.results import View
from studio.shell import pins
from studio.shell.frame import current_view
from studio.shell.pages import PAGES
from studio.shell.selection import Selection
from studio.widgets import layout
from studio.widgets.text import count, percent, plural, signed

view = current_view()
finding = st.empty()


SIZES = {"l0": "pixels changed (L0)", "l2": "length of the change (L2)", "linf": "largest change (L\u221e)"}


def sentence(run: Run) -> str:
    """Put the finding into words."""
    result = run.result
    told = f"{plural(result.done, 'test')}" if run.plan.every else f"{count(result.done)} correctly classified tests"
    aim = "" if run.plan.goal is None else f" into class {view.train.class_names[run.plan.goal]}"
    text = f"{run.plan.label} fools the network{aim} on {count(int(run.fooled.sum()))} of {told} ({percent(run.share)})"
    if run.fooled.any():
        text += f", with changes of {run.mean('linf'):.3g} (L\u221e) and {run.mean('l2'):.2f} (L2) on average"
    cells, tests = len(run.gained), plural(len(view.chosen), "test")
    if cells:
        return f"**{text}. The attacked inputs reach {plural(cells, 'cell')} that none of {tests} reaches.**"
    return f"**{text}. The attacked inputs add no cell: their cells are all reached by the {tests} already.**"


def moved_sentence(run: Run) -> str:
    """Say how far the relevance moved."""
    moved, fooled = run.shift, run.fooled
    if not fooled.any() or not np.isfinite(moved.distance[fooled]).any():
        return ""
    means = [float(np.nanmean(values[fooled])) for values in (moved.distance, moved.cosine, moved.rank)]
    return (
        f"Where the network was fooled, the centre of the positive relevance moved by {means[0]:.1f} pixels on "
        f"average; the heatmaps before and after have a cosine of {signed(means[1], '.2f')} and a rank correlation of "
        f"{signed(means[2], '.2f')} (1: unchanged, 0: unrelated)."
    )


def open_main(plan: Plan, explained: str) -> Run:
    """Attack, or show what is finished of an attack that was stopped."""
    paused = is_paused(plan)
    try:
        run = attacks.open_run(view, plan, explained, paused=paused)
    except IdcError as error:
        st.error(str(error))
        st.stop()
    if st.session_state.get(jobs.HALTED) and (run is None or not run.result.complete):
        st.session_state[jobs.PAUSED] = (view.bench, plan)
        paused = True
    if paused:
        done, total = (0 if run is None else run.result.done), len(attacks.sample(view, plan))
        rest = "what is finished is shown below." if done else "nothing is finished yet."
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(f"{plan.label} was stopped after {done} of {total} inputs; {rest}", width="stretch")
            st.button(
                "Go on",
                on_click=jobs.go_on,
                key="go-on",
                help="Attack the inputs that are left; those that are finished are not attacked again.",
            )
    if run is None:
        st.stop()
    return run


def look_at() -> tuple[Run, int]:
    """Return the input to look at: the selected one, attacked on its own where it is not among the others."""
    usual = run, int([*shown, 0][0])
    if view.position is None:
        return usual
    found = np.flatnonzero(run.positions == view.position)
    if len(found):
        return run, int(found[0])
    number = view.test.ids[view.position]
    own = None
    if plan.goal != view.test.targets[view.position]:
        own = attacks.open_run(view, plan, explained, only=np.array([view.position]), paused=is_paused(plan))
    if own is None:
        st.caption(f"Test {number}, which is selected, is not among the attacked ones.")
        return usual
    st.caption(f"Test {number}, which is selected, was attacked beside the others; it is not counted.")
    return own, 0


def is_paused(plan: Plan) -> bool:
    """Whether an attack was stopped, and is not to go on yet."""
    return bool(st.session_state.get(jobs.PAUSED) == (view.bench, plan))


def draw_sizes(one: View, run: Run, key: str) -> None:
    """Draw the sizes of the changes."""
    title = f"{run.plan.label} fools {percent(run.share)} of {plural(run.result.done, 'input')}"
    if run.fooled.any():
        title += f", changing {run.mean('l0'):.0f} pixels by at most {run.mean('linf'):.3g} on average"
    layout.chart(
        one,
        key,
        lambda dark: figures.size_panels(
            {label: getattr(run.result, name) for name, label in SIZES.items()}, run.fooled, title, dark=dark
        ),
        alt=title,
        read="a panel is a measure of how far an input was changed: how many pixels moved, the Euclidean length of "
        "the change, and the largest change of one value, in parts of its range. Bars count inputs; hatched ones are "
        "still answered correctly.",
        depends=run.key,
    )


def draw_confusions(run: Run) -> pd.DataFrame:
    """Draw what every class is answered with, before and after. Returns the confusions after, most frequent first."""
    names = view.train.class_names
    before, after = run.result.confusion(len(names))
    wrong = after - np.diag(np.diag(after))
    order = [divmod(int(place), len(names)) for place in np.argsort(-wrong, axis=None, kind="stable")]
    pairs = [(row, said) for row, said in order if wrong[row, said]]
    table = pd.DataFrame(
        [
            {"class": names[row], "answer": names[said], "inputs": int(wrong[row, said]), "of": int(after[row].sum())}
            for row, said in pairs
        ],
        columns=["class", "answer", "inputs", "of"],
    )
    title = "No class is answered as another one after the attack"
    if pairs:
        most = table.iloc[0]
        title = (
            f"After the attack, class {most['class']} is most often answered as {most['answer']}: {most['inputs']} of "
            f"{plural(int(most['of']), 'input')}"
        )
    layout.chart(
        view,
        "attack-confusion",
        lambda dark: figures.confusions(before, after, names, title, dark=dark),
        alt=title + ". " + "; ".join(f"{row} as {said}: {n}" for row, said, n, _ in table.head(12).to_numpy()),
        read="a row is a right class, a column an answer, a number the inputs; framed squares are right answers. "
        "Before the attack all lie there, unless misclassified tests were attacked too.",
        depends=run.key,
    )
    return table


def draw_side(shown: View, chosen: Selection, key: str) -> None:
    """Attack one of two benches in the same way."""
    one = side_run(shown)
    if one is None:
        st.caption(attack_controls.nothing_to_attack(shown) or "Nothing is finished here.")
    else:
        draw_sizes(shown, one, f"attack-sizes-{key}")


def side_run(shown: View) -> Run | None:
    """Return the run on one of two benches; None where it cannot be attacked."""
    if shown is view:
        return run
    if attack_controls.nothing_to_attack(shown) or not len(attacks.sample(shown, plan)):
        return None
    try:
        return attacks.open_run(shown, plan)
    except IdcError as error:
        st.error(str(error))
        return None


def compare(here: View, there: View) -> str:
    """Say how the two benches withstand the same attack."""
    mine, theirs = side_run(here), side_run(there)
    if mine is None or theirs is None:
        return "One of the two benches cannot be attacked."
    return (
        f"{plan.label} fools the network on {percent(mine.share)} here and on {percent(theirs.share)} of the inputs on "
        f"the pinned bench, and reaches {plural(len(mine.gained), 'new cell')} here, {len(theirs.gained)} there."
    )


if problem := attack_controls.nothing_to_attack(view):
    finding.markdown(f"**{problem}**")
    entry = PAGES[attack_controls.instead(view)]
    st.page_link(entry.file, label=entry.question, icon=entry.icon, help=entry.help)
    st.stop()

plan = attack_controls.choose(view)
if not len(attacks.sample(view, plan)):
    finding.markdown("**None of the chosen tests can be attacked so.**")
    st.caption("The network gets none of them right, or all are of the goal's class: choose other classes or a goal.")
    st.stop()
progress, above = st.container(), st.container(horizontal=True, vertical_alignment="bottom")
with above:
    explained = attack_results.choose_explained()
with progress:
    run = open_main(plan, explained)
finding.markdown(f"{sentence(run)} {moved_sentence(run)}")
if run.result.complete:
    attack_controls.remember(view, plan)

with above:
    shown, factor = attack_results.choose_shown(run)
one, place = look_at()
attack_results.draw_one(view, one, place, factor)
layout.how_to_read(
    "in the change, grey is none, brighter raised, darker lowered. In heatmaps red speaks for the explained answer, "
    "blue with a dot against it. A centre that moves far, or a low correlation, says that the network now decides by "
    "other pixels."
)
attack_results.draw_gallery(view, run, shown, factor)

st.header("How far the inputs were changed", anchor=False)
draw_sizes(view, run, "attack-sizes")

st.header("Which classes are taken for which", anchor=False)
confusion_table = draw_confusions(run)

st.header("Cells that only attacked inputs reach", anchor=False)
cell_table = attack_results.draw_cells(view, run)

st.header("All attacks on the same tests", anchor=False)
comparison = attack_runs.draw(view, plan, run)

pins.beside(view, draw_side, compare)

layout.computed(
    view,
    f"{ATTACKS[plan.attack].label}: {ATTACKS[plan.attack].citation}. Gradient attacks run through foolbox, JSMA is our "
    "own. A random start depends on the seed and the input's number alone, and so does the wrong class that JSMA aims "
    "at where no goal is chosen. Blocks of 32 inputs are kept as soon as they are finished, so that stopping loses at "
    "most one, and the same attack is never run twice.",
    "A new cell is a combination of clusters of the important neurons that none of the chosen tests reaches. Sizes are "
    "in parts of a value's range; a pixel counts as changed where a value moved by more than 0.00001. Relevance is by "
    "the epsilon rule; the centre is the mean place of the positive relevance, the rank correlation Spearman's.",
)
attack_runs.keep(view, run)
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
