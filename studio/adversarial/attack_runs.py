"""Attacks of this session: opened, stopped and resumed; on the same tests side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.errors import IdcError
from idc_core.perturbation.attacks import ATTACKS
from idc_core.suites.attacked import BLOCK
from studio.adversarial import attacks
from studio.adversarial.attacks import Plan, Run
from studio.jobs import jobs
from studio.jobs.results import View
from studio.text import literal, plural
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.base.parameters import Value

_ASKED = "attack-asked"
"""In the session: the setup and the plan of the long attack that was started."""

_RAN = "attacks-run"
"""In the session: the attacks that ran, by their tests."""
_MOST_RUNS = 16
"""Attacks that are compared: as many as all there are, and some with other settings."""


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
        name = layout.label(plan.label)
        finding.markdown(f"{name} waits for a click: on these tests it takes from seconds to minutes.")
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


def remember(view: View, *plans: Plan) -> None:
    """Add attacks to those of this session."""
    for plan in plans:
        runs = st.session_state.setdefault(_RAN, {}).setdefault(_tests(view, plan), {})
        runs[plan] = None
        while len(runs) > _MOST_RUNS:
            runs.pop(next(iter(runs)))


def open_session(view: View, run: Run) -> list[Run]:
    """Return the runs of this session on the same tests, the present one first, and offer to run the other attacks."""
    runs, stopped = [run], 0
    for plan in _finished(view, run.plan):
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
            _forget(view, plan)
    if stopped:
        st.warning(
            f"Stopped: {plural(stopped, 'attack')} not finished. Finished inputs are kept; run the attacks again to "
            "resume."
        )
    done = [other.plan for other in runs]
    left = [plan for plan in _all_plans(run.plan) if plan not in done]
    if left:
        others = layout.names([plan.label for plan in left])
        st.button(
            f"Run the other {len(left)} attacks" if len(left) > 1 else "Run the other attack",
            on_click=remember,
            args=(view, *left),
            key="run-all",
            help=f"Attacks the same tests by {others}. Can be stopped and resumed.",
        )
    return runs


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


def _usual_settings(attack: str) -> dict[str, Value]:
    """Return what an attack does by default: the paper's values, or those that succeed where they differ."""
    from idc_core.perturbation.attacks import ATTACKS

    entry = ATTACKS[attack]
    sensible = entry.presets["sensible"].settings if "sensible" in entry.presets else {}
    return {**{parameter.name: parameter.default for parameter in entry.parameters}, **sensible}


def _finished(view: View, plan: Plan) -> list[Plan]:
    """Return the last attacks of this session on the same tests, in the order in which they were run."""
    return list(st.session_state.get(_RAN, {}).get(_tests(view, plan), {}))


def _forget(view: View, *plans: Plan) -> None:
    """Take attacks out of those of this session."""
    for plan in plans:
        st.session_state.get(_RAN, {}).get(_tests(view, plan), {}).pop(plan, None)


def _tests(view: View, plan: Plan) -> tuple[object, ...]:
    """Name the tests of a plan; with a goal they are other ones."""
    return view.card.fingerprint, view.test.fingerprint, view.chosen_key, plan.goal, plan.seed, plan.numbers, plan.every


def _all_plans(plan: Plan) -> list[Plan]:
    """Return every attack that can have the plan's goal, with its usual settings, on the same tests."""
    from idc_core.perturbation.attacks import ATTACKS

    fitting = [name for name, entry in ATTACKS.items() if plan.goal is None or entry.takes_goal]
    return [plan.on(name, _usual_settings(name)) for name in fitting]
