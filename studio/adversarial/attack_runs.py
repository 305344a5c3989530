"""The attacks of this session on the same tests, side by side; and attacked inputs kept for other pages."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import IdcError
from idc_core.figures import adversarial as figures
from studio.adversarial import attack_controls, attacks
from studio.adversarial.attacks import Plan, Run
from studio.engine import jobs
from studio.engine.results import View
from studio.widgets import layout
from studio.widgets.keep_suite import keep_row
from studio.widgets.text import percent, plural

KEEP = {"fooled": "those that fool it", "new": "those in new cells", "all": "all attacked"}


def draw(view: View, plan: Plan, run: Run) -> pd.DataFrame:
    """Compare the attacks of this session, and offer to run all. Returns the table."""
    runs, problems = _finished(view, plan, run)
    for problem in problems:
        st.warning(problem)
    left = [one for one in attack_controls.all_plans(plan) if one not in [other.plan for other in runs]]
    if left:
        st.button(
            f"Run the other {len(left)} attacks" if len(left) > 1 else "Run the other attack",
            on_click=attack_controls.remember,
            args=(view, *left),
            key="run-all",
            help=f"Attack the same tests by {layout.names([one.label for one in left])}; can be stopped, and goes on "
            "where it was stopped.",
        )
    table = pd.DataFrame([_row(one) for one in runs])
    title = _title(runs)
    layout.chart(
        view,
        "attack-comparison",
        lambda dark: figures.attack_bars(
            [one.plan.label for one in runs],
            [one.plan.attack for one in runs],
            {
                "fooled": ([one.share for one in runs], [percent(one.share) for one in runs]),
                "mean length of the change (L2)": (
                    [one.mean("l2") for one in runs],
                    [f"{one.mean('l2'):.2f}" for one in runs],
                ),
                "new cells": ([len(one.gained) for one in runs], [str(len(one.gained)) for one in runs]),
            },
            title,
            dark=dark,
        ),
        alt=title,
        read="a bar is an attack on the same tests, each panel has its own scale. The length is the mean over the "
        "inputs that were fooled: the shorter, the harder it is to see. New cells are those that no test reaches.",
        depends=tuple(one.key for one in runs),
    )
    number = st.column_config.NumberColumn(format="%.3g")
    columns = dict.fromkeys(("fooled (%)", "L0", "L2", "L\u221e"), number)
    st.dataframe(table, hide_index=True, column_config=columns, alt="All attacks of this session on the same tests")
    return table


def _finished(view: View, plan: Plan, run: Run) -> tuple[list[Run], list[str]]:
    """Return the runs of this session on the same tests, the chosen one first; those that were stopped go."""
    runs, problems, stopped = [run], [], 0
    for one in attack_controls.finished(view, plan):
        if one == plan:
            continue
        try:
            other = attacks.open_run(view, one)
        except IdcError as error:
            problems.append(f"{one.label} is left out. {error}")
            other = None
        if other is not None and other.result.complete:
            runs.append(other)
        else:
            stopped += bool(st.session_state.get(jobs.HALTED))
            attack_controls.forget(view, one)
    if stopped:
        problems.append(
            f"Stopped: {plural(stopped, 'attack')} not finished. What was finished of them is kept; running them again "
            "goes on from there."
        )
    return runs, problems


def _title(runs: list[Run]) -> str:
    """Say which attacks add most cells, and which changes least."""
    if len(runs) == 1:
        return f"So far only {runs[0].plan.label} ran on these tests: {plural(len(runs[0].gained), 'new cell')}"
    most = max(len(one.gained) for one in runs)
    best = [one.plan.label for one in runs if len(one.gained) == most]
    smallest = min(runs, key=lambda one: one.mean("l2") if one.fooled.any() else np.inf)
    text = "None adds a cell"
    if most:
        text = f"{layout.names(best)} {'add' if len(best) > 1 else 'adds'} most cells, {most}"
    return f"{text}; the smallest change is that of {smallest.plan.label}"


def _row(run: Run) -> dict[str, object]:
    return {
        "attack": run.plan.label,
        "inputs": run.result.done,
        "fooled": int(run.fooled.sum()),
        "fooled (%)": 100 * run.share,
        "L0": run.mean("l0"),
        "L2": run.mean("l2"),
        "L\u221e": run.mean("linf"),
        "new cells": len(run.gained),
    }


def keep(view: View, run: Run) -> None:
    """Offer to keep the attacked inputs as a suite, for all pages that compare suites."""
    from idc_core.suites import attacked_suite

    with st.expander("Keep the attacked inputs as a suite"), st.container(horizontal=True, vertical_alignment="bottom"):
        which = st.segmented_control(
            "Which inputs",
            list(KEEP),
            default="fooled",
            required=True,
            format_func=KEEP.get,
            key="keep-which",
            help=f"Which of the attacked inputs the suite holds; default {KEEP['fooled']}.",
        )
        places = _places(run, which or "fooled")
        keep_row(
            f"{run.plan.label} on {view.test.name}, seed {run.plan.seed}",
            len(places),
            "keep-attacked",
            lambda: attacked_suite(run.result, view.test, view.test.ids[run.positions], view.model, places),
        )


def _places(run: Run, which: str) -> attacks.Ints:
    inside = {"fooled": run.fooled, "new": run.gained.row >= 0, "all": np.ones(run.result.done, bool)}[which]
    return np.flatnonzero(inside)
