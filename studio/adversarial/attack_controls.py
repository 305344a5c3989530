"""The controls of an attack: which one, how strong, towards what, and on which tests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import streamlit as st

from studio.adversarial import attacks
from studio.adversarial.attacks import Plan
from studio.jobs.results import View
from studio.state.choices import choose_one
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.base.parameters import Number, Parameter, Value
    from idc_core.perturbation.attacks import Attack

_ANY, _OWN = "any", "own"
_SIZES = (32, 64, 100, 250, 500)
"""Numbers of tests that are offered."""

_USUAL = 64

_WIDTH = 190
"""Of a field or slider, in pixels."""

_MOST_STEPS = 100
"""Whole numbers up to which a slider steps by one; beyond, by factors."""


def _menu() -> dict[str, str]:
    """Return the attacks that can be chosen: label by name."""
    from idc_core.perturbation.attacks import ATTACKS

    return {name: entry.label for name, entry in ATTACKS.items()}


def choose(view: View) -> tuple[Plan, str]:
    """Draw the controls; return the attack that is chosen, and whose score heatmaps explain: a key of `EXPLAINED`."""
    from idc_core.perturbation.attacks import ATTACKS

    with st.container(horizontal=True, vertical_alignment="bottom"):
        attack_names = _menu()
        name = choose_one(
            st.selectbox,
            "Attack",
            attack_names,
            next(iter(attack_names)),
            "attack",
            width=_WIDTH,
            help=_attack_help(list(ATTACKS.values())),
        )
        entry = ATTACKS[name]
        settings = {parameter.name: _slider(entry, parameter) for parameter in entry.parameters}
        if entry.presets:
            _presets(entry, settings)
        number = choose_one(
            st.segmented_control,
            "Tests attacked",
            {size: str(size) for size in _SIZES},
            _USUAL,
            "attacked",
            required=True,
            help=f"Number of tests at most, drawn at random; {_SIZES[0]} to {_SIZES[-1]}, default {_USUAL}.",
        )
        with layout.settings("goal", "seed", "every", "explained"):
            goal = _choose_goal(view.train.class_names) if entry.takes_goal else None
            seed = st.number_input(
                "Seed",
                0,
                9999,
                0,
                key="seed",
                bind="query-params",
                help="Determines the tests that are drawn, and random starts and goals. From 0 to 9999; default 0.",
            )
            every = st.toggle(
                "Include misclassified tests",
                key="every",
                bind="query-params",
                help="Attack misclassified tests as well; they count as fooled. Default off.",
            )
            explained = choose_one(
                st.segmented_control,
                "Heatmaps explain",
                attacks.EXPLAINED,
                "answer",
                "explained",
                required=True,
                help="The class whose score is explained before and after: the predicted class of each, or the true "
                f"class. Default {attacks.EXPLAINED['answer']}.",
            )
    measured = [f"{name}: {preset.measured}" for name, preset in entry.presets.items() if preset.measured]
    if measured:
        st.caption(f"Measured, {'; '.join(measured)}.")
    return Plan(name, tuple(settings.items()), goal, int(seed), number, bool(every)), explained


def _choose_goal(classes: tuple[str, ...]) -> int | None:
    """Choose the class to be predicted; None for any wrong one."""
    goals = {_ANY: "any wrong class", **{name: name for name in classes}}
    goal = choose_one(
        st.selectbox,
        "Goal",
        goals,
        _ANY,
        "goal",
        help="The class to be predicted: any wrong class, or one class; tests of that class are then left out. "
        f"Default {goals[_ANY]}.",
    )
    return None if goal == _ANY else classes.index(goal)


def _attack_help(entries: list[Attack]) -> str:
    lines = [f"{layout.label(entry.label)}: {entry.help}" for entry in entries]
    return "  \n".join([*lines, f"Default {entries[0].label}."])


def _key(entry: Attack, parameter: Parameter) -> str:
    return f"{entry.name}-{parameter.name}"


def _slider(entry: Attack, parameter: Parameter) -> Value:
    """Draw one parameter: words, even steps, or factors where its range spans powers of ten."""
    key, default, low, high = _key(entry, parameter), parameter.default, parameter.low, parameter.high
    if isinstance(default, int | float) and (parameter.logarithmic or (parameter.is_whole and high > _MOST_STEPS)):
        return st.select_slider(
            parameter.label,
            _factors(entry, parameter),
            default,
            format_func=lambda value: f"{value:g}",
            key=key,
            bind="query-params",
            width=_WIDTH,
            help=f"{parameter.help} From {low:g} to {high:g}; default {default:g}.",
        )
    ends: tuple[Number, ...] = ()
    how = {}
    if isinstance(default, float):
        step = 10.0 ** math.floor(math.log10(high - low) - 2)
        ends, how = (low, high, min(step, float(low)) if low > 0 else step), {"format": "%g"}
    value: Value = layout.ask(st.slider, parameter, key, ends, width=_WIDTH, **how)
    return value


def _factors(entry: Attack, parameter: Parameter) -> list[int | float]:
    """Return 1, 2 and 5 times the powers of ten in the range, its ends, the default and the presets' values."""
    whole, low, high = isinstance(parameter.default, int), parameter.low, parameter.high
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    values = {step for step in steps if low < step < high and (not whole or step >= 1)}
    values |= {float(value) for value in (low, high, parameter.default)}
    values |= {
        float(preset.settings[parameter.name]) for preset in entry.presets.values() if parameter.name in preset.settings
    }
    return sorted(int(value) if whole else value for value in values)


def _presets(entry: Attack, values: dict[str, Value]) -> None:
    """Offer the attack's named values, and say which are shown now."""
    usual = {one.name: one.default for one in entry.parameters}
    complete = {name: {**usual, **one.settings} for name, one in entry.presets.items()}
    key = f"{entry.name}-preset"
    st.session_state[key] = next((name for name, one in complete.items() if one == values), _OWN)

    def take() -> None:
        for name, value in complete.get(st.session_state[key], {}).items():
            st.session_state[f"{entry.name}-{name}"] = value

    st.segmented_control(
        "Preset",
        [*complete, _OWN],
        required=True,
        key=key,
        on_change=take,
        help=". ".join(f"{one.label[0].upper()}{one.label[1:]}" for one in entry.presets.values())
        + f". Own: any other values. Default {next(iter(complete))}.",
    )
