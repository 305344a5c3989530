"""Controls of the suites: which are compared, and how each is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from studio.jobs import suite_addresses, suite_catalog
from studio.jobs.results import View
from studio.jobs.suite_addresses import ANSWERS, MOST_SEED, SuiteAddress
from studio.jobs.suite_catalog import SuiteOption
from studio.state import address
from studio.text import literal, lower

if TYPE_CHECKING:
    from idc_core.base.parameters import Parameter

MOST = 5
"""Suites beside the original tests."""

_NOTHING = "none"
"""What the address says where no suite is chosen."""

_CHOSEN = "suites-chosen"


def _chosen(known: dict[str, SuiteOption]) -> list[str]:
    """Return the suites beside the original tests: those that the address names, else the usual ones."""
    named = suite_catalog.chosen_names()
    if named == [_NOTHING]:
        return []
    return [name for name in named if name in known][:MOST] or suite_catalog.usual(known)


def choose(view: View) -> list[str]:
    """Choose the suites, of how many tests they are made, and how."""
    known = suite_catalog.suite_options(view)
    names = _chosen(known)
    st.session_state[_CHOSEN] = names
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.multiselect(
            "Compare the original tests with",
            list(known),
            format_func=lambda name: known[name].label if name in known else name,
            key=_CHOSEN,
            max_selections=MOST,
            on_change=lambda: suite_catalog.keep_names(st.session_state[_CHOSEN] or [_NOTHING]),
            placeholder="None",
            help=f"Up to {MOST} suites. Suites made of the tests include the original tests; parts of the tests and "
            f"other data sets are compared alone. Default {_usual(known)}.",
        )
        if any(option.made for option in known.values()):
            _choose_count(view)
    missing = [name for name in suite_catalog.chosen_names() if name not in known and name != _NOTHING]
    if missing:
        st.caption(f"Not available for this setup, left out: {', '.join(map(literal, missing))}.")
    if not view.has_pictures:
        made = "Texts have typos, synonyms and other changes of words. " if view.test.texts else ""
        st.caption(f"{made}Noise, transforms and attacks apply to images only.")
    elif not view.is_classifier:
        st.caption("Attacks are not available: they aim at a wrong class, and these tests have no classes.")
    elif view.correct is None:
        st.caption("Attacks are not available: these tests have other classes than the network.")
    with st.container(horizontal=True, key="suite-settings"):
        for place, name in enumerate(names):
            if len(suite_addresses.split(name)) == 1:
                _change(view, names, place, known[name])
    return names


def _usual(known: dict[str, SuiteOption]) -> str:
    return " and ".join(known[name].label for name in suite_catalog.usual(known)) or "none"


def _choose_count(view: View) -> None:
    """Choose how many tests are perturbed."""
    key, most = "perturbed-count", len(view.chosen)
    usual = suite_catalog.usual_count(view)
    st.session_state[key] = suite_catalog.perturbed_count(view)
    st.number_input(
        "Perturbed tests",
        1,
        most,
        step=1,
        key=key,
        width=180,
        on_change=lambda: address.keep(
            suite_catalog.PERTURBED, "" if st.session_state[key] == usual else str(st.session_state[key])
        ),
        help="Number of tests that get a perturbed copy, the same for all suites; drawn at random (seed 0) if not all. "
        f"From 1 to {most:g}; default {usual:g}.",
    )


def _change(view: View, names: list[str], place: int, option: SuiteOption) -> None:
    """Draw the controls of one suite; every change writes it anew into the address."""
    from idc_core.suites import SUITES

    recipe = suite_addresses.parse(names[place])
    kind = SUITES.get(recipe.base)

    def put(changed: SuiteAddress) -> None:
        suite_catalog.keep_names([*names[:place], changed.text, *names[place + 1 :]])

    with st.popover(f"Settings: {lower(option.label)}"):
        made = kind is not None and kind.apply is not None
        if kind is not None and made:
            st.caption(kind.help)
            for parameter in kind.parameters:
                _number(view, recipe, parameter, kind.family == "noise", f"{place}-{recipe.base}", put)
            if kind.random:
                _seed(recipe, f"{place}-seed", put)
        _only(view, recipe, place, put)
        if made and len(names) < MOST:
            st.button(
                "Add with other settings",
                key=f"{place}-another",
                width="stretch",
                on_click=lambda: suite_catalog.keep_names([*names, _variant(recipe).text]),
                help="Adds the same kind a second time, to compare two strengths or two seeds.",
            )


def _variant(recipe: SuiteAddress) -> SuiteAddress:
    """Return the same kind with other settings: another seed, or another strength where that changes nothing."""
    from idc_core.suites import SUITES

    kind = SUITES[recipe.base]
    if kind.random:
        return replace(recipe, seed=recipe.seed + 1)
    for parameter in kind.parameters:
        if not isinstance(parameter.default, str):
            value = recipe.settings.get(parameter.name, parameter.default)
            other = 2 * value if 2 * value <= parameter.high and value else (value or parameter.high) / 2
            return recipe.changed(parameter.name, type(parameter.default)(other), parameter.default)
    return recipe


def _number(
    view: View,
    recipe: SuiteAddress,
    parameter: Parameter,
    noise: bool,
    prefix: str,
    put: Callable[[SuiteAddress], None],
) -> None:
    """Draw one parameter; the share of the pixels as their number."""
    name, label, text = parameter.name, parameter.label, parameter.help
    default, low, high = parameter.default, parameter.low, parameter.high
    if isinstance(default, str):
        return  # the address writes numbers only
    if noise and name == "share":
        most = suite_catalog.pixels(view)
        name, label, text = "pixels", "Pixels", "Number of pixels per image that get noise."
        default, low, high = max(1, int(most * default)), 1, most
    whole, key = isinstance(default, int), f"{prefix}-{name}"
    cast: type[int] | type[float] = int if whole else float
    st.session_state[key] = cast(min(high, max(low, recipe.settings.get(name, default))))
    st.number_input(
        label,
        cast(low),
        cast(high),
        step=1 if whole else max(abs(float(default)) / 10, 0.01 * float(high - low)),
        format="%d" if whole else "%g",
        key=key,
        on_change=lambda: put(recipe.changed(name, st.session_state[key], default)),
        help=f"{text} From {low:g} to {high:g}; default {default:g}.",
    )


def _seed(recipe: SuiteAddress, key: str, put: Callable[[SuiteAddress], None]) -> None:
    st.session_state[key] = min(MOST_SEED, max(0, recipe.seed))
    st.number_input(
        "Seed",
        0,
        MOST_SEED,
        step=1,
        key=key,
        on_change=lambda: put(replace(recipe, seed=st.session_state[key])),
        help=f"Random numbers depend on the seed and on the test's number. From 0 to {MOST_SEED}; default 0.",
    )


def _only(view: View, recipe: SuiteAddress, place: int, put: Callable[[SuiteAddress], None]) -> None:
    """Draw which tests of a suite are selected: by prediction, class and confidence."""
    if not view.is_classifier:
        st.caption("Tests without classes cannot be selected by class, prediction or confidence.")
        return
    keys = [f"{place}-{name}" for name in ("answers", "classes", "least", "most")]
    names = view.test.class_names
    values: list[object] = [
        recipe.answers,
        [value for value in recipe.classes if value < len(names)],
        recipe.least,
        recipe.most,
    ]
    st.session_state.update(zip(keys, values, strict=True))

    def take() -> None:
        answers, classes, least, most = (st.session_state[key] for key in keys)
        kept = {"answers": answers, "classes": tuple(sorted(classes)), "least": least, "most": max(least, most)}
        put(replace(recipe, **kept))

    if view.correct is not None:
        st.selectbox(
            "Predictions",
            list(ANSWERS),
            format_func=lambda value: ANSWERS[value],
            key=keys[0],
            on_change=take,
            help="Selects the tests of this suite with a correct or a wrong prediction. Default all.",
        )
    st.multiselect(
        "True classes",
        list(range(len(names))),
        format_func=lambda value: names[value],
        key=keys[1],
        on_change=take,
        placeholder="All classes",
        help="Selects the tests of this suite of these classes. Default all.",
    )
    for key, label, default in ((keys[2], "Minimum confidence", 0.0), (keys[3], "Maximum confidence", 1.0)):
        st.number_input(
            label,
            0.0,
            1.0,
            step=0.05,
            key=key,
            on_change=take,
            help=f"Selects the tests of this suite by confidence. From 0 to 1; default {default:g}.",
        )
