"""Attacks of this session: opened, stopped and resumed; on the same tests side by side; saved as a suite."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.errors import IdcError
from idc_core.perturbation.attacks import ATTACKS
from idc_core.suites.attacked import BLOCK
from studio.adversarial import attacks
from studio.adversarial.attacks import Plan, Run
from studio.jobs import jobs
from studio.jobs.results import View
from studio.text import literal
from studio.widgets import layout

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


def explain(view: View, plan: Plan, *sentences: str) -> None:
    """Say who described the attack, what runs it, and what of it is random."""
    entry = ATTACKS[plan.attack]
    layout.computed(
        view,
        f"{entry.label}: {entry.help} {entry.citation}. Gradient attacks run through foolbox; JSMA is our own "
        "implementation. Random starts and random goals depend only on the seed and the input's number. Finished "
        f"blocks of {BLOCK} inputs are kept on disk: stopping loses at most one, and no attack runs twice.",
        *sentences,
    )
