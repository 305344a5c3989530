"""Attacks of this session: opened, stopped and resumed; on the same tests side by side; saved as a suite."""

from __future__ import annotations

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.errors import IdcError
from studio.adversarial import attack_controls, attacks
from studio.adversarial.attacks import Plan, Run
from studio.jobs import jobs
from studio.jobs.results import View
from studio.jobs.wording import tests_name
from studio.text import literal, plural
from studio.widgets.keep_suite import keep_row
from studio.widgets.layout import names

_SAVED = {"fooled": "fooled", "new": "in added cells", "all": "all attacked"}


_ASKED = "attack-asked"
"""In the session: the setup and the plan of the long attack that was started."""


def open_or_resume(view: View, plan: Plan, explained: str, finding: DeltaGenerator) -> Run:
    """Attack, or show what is finished of an attack that was stopped, or that waits for a click."""
    paused = not may_run(view, plan)
    try:
        run = attacks.open_run(view, plan, explained, paused=paused)
    except IdcError as error:
        st.error(literal(error))
        st.stop()
    if st.session_state.get(jobs.HALTED) and (run is None or not run.result.complete):
        st.session_state[jobs.PAUSED] = (view.setup, plan)
        paused = True
    if run is None and paused and not _is_paused(view, plan):
        finding.markdown(f"**{plan.label} waits for a click:** on these tests it takes from seconds to minutes.")
        st.button(
            "Start attack",
            key="attack-start",
            type="primary",
            on_click=_start,
            args=(view, plan),
            help="Can be stopped and resumed.",
        )
        st.stop()
    if paused and (run is None or not run.result.complete):
        done, total = (0 if run is None else run.result.done), len(attacks.sample(view, plan))
        rest = "finished inputs are shown below." if done else "no input is finished yet."
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(f"{plan.label} was stopped after {done} of {total} inputs; {rest}", width="stretch")
            st.button(
                "Resume",
                on_click=_start,
                args=(view, plan),
                key="go-on",
                help="Attacks the remaining inputs; finished ones are not attacked again.",
            )
    if run is None:
        st.stop()
    return run


def open_selected(view: View, run: Run, explained: str, usual: int) -> tuple[Run, int]:
    """Return the input to look at: the selected test, attacked on its own where it is not among the others."""
    if view.position is None:
        return run, usual
    places = np.flatnonzero(run.positions == view.position)
    if len(places):
        return run, int(places[0])
    number, plan, alone = view.test.ids[view.position], run.plan, None
    if plan.goal != view.test.targets[view.position]:
        only = np.array([view.position])
        alone = attacks.open_run(view, plan, explained, only=only, paused=not may_run(view, plan))
    if alone is None:
        st.caption(f"The selected test {number} is not among the attacked ones.")
        return run, usual
    st.caption(f"The selected test {number} was attacked separately; it is not counted.")
    return alone, 0


def may_run(view: View, plan: Plan) -> bool:
    """Whether an attack may begin: it is quick or was asked for, and was not stopped."""
    started = st.session_state.get(_ASKED) == (view.setup, plan)
    return (started or attacks.is_quick(view, plan)) and not _is_paused(view, plan)


def _start(view: View, plan: Plan) -> None:
    """Begin a long attack, or go on with one that was stopped."""
    st.session_state[_ASKED] = view.setup, plan
    jobs.go_on()


def _is_paused(view: View, plan: Plan) -> bool:
    """Whether an attack was stopped, and is not to be resumed yet."""
    return bool(st.session_state.get(jobs.PAUSED) == (view.setup, plan))


def open_session(view: View, run: Run) -> list[Run]:
    """Return the runs of this session on the same tests, the present one first, and offer to run the other attacks."""
    runs, stopped = [run], 0
    for plan in attack_controls.finished(view, run.plan):
        if plan == run.plan:
            continue
        other = None
        try:
            other = attacks.open_run(view, plan)
        except IdcError as error:
            st.warning(f"{plan.label} is left out. {literal(error)}")
        if other is not None and other.result.complete:
            runs.append(other)
        else:
            stopped += bool(st.session_state.get(jobs.HALTED))
            attack_controls.forget(view, plan)
    if stopped:
        st.warning(
            f"Stopped: {plural(stopped, 'attack')} not finished. Finished inputs are kept; run the attacks again to "
            "resume."
        )
    done = [other.plan for other in runs]
    left = [plan for plan in attack_controls.all_plans(run.plan) if plan not in done]
    if left:
        st.button(
            f"Run the other {len(left)} attacks" if len(left) > 1 else "Run the other attack",
            on_click=attack_controls.remember,
            args=(view, *left),
            key="run-all",
            help=f"Attacks the same tests by {names([plan.label for plan in left])}. Can be stopped and resumed.",
        )
    return runs


def draw_save(view: View, run: Run) -> None:
    """Offer to save the attacked inputs as a suite, for all pages that compare suites."""
    from idc_core.suites import attacked_suite

    with st.expander("Save the attacked inputs as a suite"), st.container(horizontal=True, vertical_alignment="bottom"):
        which = st.segmented_control(
            "Inputs",
            list(_SAVED),
            default="fooled",
            required=True,
            format_func=lambda name: _SAVED[name],
            key="keep-which",
            help=f"The attacked inputs in the suite; default {_SAVED['fooled']}.",
        )
        inside = {"fooled": run.fooled, "new": run.gained.row >= 0, "all": np.ones(run.result.done, bool)}
        places = np.flatnonzero(inside[which or "fooled"])
        keep_row(
            f"{run.plan.label} on {tests_name(view.test)}, seed {run.plan.seed}",
            len(places),
            "keep-attacked",
            lambda: attacked_suite(run.result, view.test, view.test.ids[run.positions], view.model, places),
        )
