"""Controls of the suites: which are compared, how each is made, and how custom suites are added and deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from idc_core.errors import IdcError
from studio.engine import suite_addresses, suite_catalog
from studio.engine.results import View
from studio.engine.suite_addresses import ANSWERS, MOST_SEED, Recipe
from studio.engine.suite_catalog import SuiteOption
from studio.engine.wording import kind
from studio.state import address
from studio.text import literal, lower, plural

if TYPE_CHECKING:
    from idc_core.parameters import Parameter

MOST = 5
"""Suites beside the original tests."""

NOTHING = "none"
"""What the address says where no suite is chosen."""

CHOSEN = "suites-chosen"
REFUSED = "suite-refused"


def chosen(view: View) -> list[str]:
    """Return the suites beside the original tests: those that the address names, else the usual ones."""
    known, named = suite_catalog.suite_options(view), suite_catalog.chosen_names()
    if named == [NOTHING]:
        return []
    return [name for name in named if name in known][:MOST] or suite_catalog.usual(view)


def choose(view: View) -> list[str]:
    """Choose the suites, of how many tests they are made, and how."""
    known, names = suite_catalog.suite_options(view), chosen(view)
    st.session_state[CHOSEN] = names
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.multiselect(
            "Compare the original tests with",
            list(known),
            format_func=lambda name: known[name].label if name in known else name,
            key=CHOSEN,
            max_selections=MOST,
            on_change=lambda: suite_catalog.keep_names(st.session_state[CHOSEN] or [NOTHING]),
            placeholder="None",
            help=f"Up to {MOST} suites. Suites made of the tests include the original tests; parts of the tests and "
            f"other data sets are compared alone. Default {_usual(view, known)}.",
        )
        if view.test.inputs.ndim == 4:
            choose_count(view)
    missing = [name for name in suite_catalog.chosen_names() if name not in known and name != NOTHING]
    if missing:
        st.caption(f"Not available for this setup, left out: {', '.join(map(literal, missing))}.")
    if view.test.inputs.ndim != 4:
        st.caption(
            "Noise, transforms and attacks apply to images only. "
            f"For {kind(view.test)} you can compare parts of the tests, other "
            "data sets of the same format, your own tests and unions of these."
        )
    elif not view.is_classifier:
        st.caption("Attacks are not available: they aim at a wrong class, and these tests have no classes.")
    elif view.correct is None:
        st.caption("Attacks are not available: these tests have other classes than the network.")
    with st.container(horizontal=True, key="suite-settings"):
        for place, name in enumerate(names):
            if len(suite_addresses.split(name)) == 1:
                _change(view, names, place, known[name])
    return names


def _usual(view: View, known: dict[str, SuiteOption]) -> str:
    return " and ".join(known[name].label for name in suite_catalog.usual(view)) or "none"


def choose_count(view: View) -> None:
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

    def put(changed: Recipe) -> None:
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


def _variant(recipe: Recipe) -> Recipe:
    """Return the same kind with other settings: another seed, or another strength where that changes nothing."""
    from idc_core.suites import SUITES

    kind = SUITES[recipe.base]
    if kind.random:
        return replace(recipe, seed=recipe.seed + 1)
    for one in kind.parameters:
        if not isinstance(one.default, str):
            value = recipe.settings.get(one.name, one.default)
            other = 2 * value if 2 * value <= one.high and value else (value or one.high) / 2
            return recipe.changed(one.name, type(one.default)(other), one.default)
    return recipe


def _number(
    view: View, recipe: Recipe, parameter: Parameter, noise: bool, prefix: str, put: Callable[[Recipe], None]
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


def _seed(recipe: Recipe, key: str, put: Callable[[Recipe], None]) -> None:
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


def _only(view: View, recipe: Recipe, place: int, put: Callable[[Recipe], None]) -> None:
    """Draw which tests of a suite are selected: by prediction, class and confidence."""
    if not view.is_classifier:
        st.caption("Tests without classes cannot be selected by class, prediction or confidence.")
        return
    keys = [f"{place}-{name}" for name in ("answers", "classes", "least", "most")]
    names = view.test.class_names
    values: list[Any] = [recipe.answers, [one for one in recipe.classes if one < len(names)], recipe.least, recipe.most]
    st.session_state.update(zip(keys, values, strict=True))

    def take() -> None:
        answers, classes, least, most = (st.session_state[key] for key in keys)
        kept = {"answers": answers, "classes": tuple(sorted(classes)), "least": least, "most": max(least, most)}
        put(replace(recipe, **kept))

    if view.correct is not None:
        st.selectbox(
            "Predictions",
            list(ANSWERS),
            format_func=lambda one: ANSWERS[one],
            key=keys[0],
            on_change=take,
            help="Selects the tests of this suite with a correct or a wrong prediction. Default all.",
        )
    st.multiselect(
        "True classes",
        list(range(len(names))),
        format_func=lambda one: names[one],
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


def manage(view: View, names: list[str]) -> None:
    """Offer to upload a file, to combine suites, and to delete saved ones."""
    with st.expander("Upload tests, combine suites, delete saved suites"):
        file, together, saved = st.columns(3, gap="large")
        with file:
            _upload(view, names)
        with together:
            _combine(view, names)
        with saved:
            _delete(view)


def _upload(view: View, names: list[str]) -> None:
    key = "own-file"

    def take() -> None:
        from idc_core.suites import custom_suite, save_suite

        given = st.session_state[key]
        if given is None:
            return
        try:
            suite = custom_suite(given, view.test)
            path = save_suite(Path(given.name).stem, suite)
        except IdcError as error:
            st.session_state[REFUSED] = f"{literal(given.name)} was not added. {literal(error)}"
            return
        suite_catalog.keep_names([*names, path.stem][-MOST:])

    shape = ", ".join(map(str, view.test.inputs.shape[1:]))
    st.file_uploader(
        "Upload your own tests (npz)",
        type="npz",
        key=key,
        on_change=take,
        help=f"A file written by numpy.savez with the arrays inputs (n, {shape}) and targets (n); images in 0..1 or "
        "uint8. It is saved on this computer and added to the suites. Default none.",
    )
    if refused := st.session_state.pop(REFUSED, ""):
        st.error(refused)


def _combine(view: View, names: list[str]) -> None:
    known, key = suite_catalog.suite_options(view), "union-of"
    parts = [name for name in known if len(suite_addresses.split(name)) == 1]
    st.multiselect(
        "Combine",
        parts,
        format_func=lambda name: known[name].label if name in known else name,
        key=key,
        placeholder="None",
        help="Two or more suites that become one. Default none.",
    )

    def add() -> None:
        suite_catalog.keep_names([*names, suite_addresses.TOGETHER.join(st.session_state[key])][-MOST:])
        st.session_state[key] = []

    st.button(
        "Add union",
        key="union-add",
        on_click=add,
        disabled=len(st.session_state[key]) < 2,
        help="Adds the union of these suites to the comparison.",
    )


def _delete(view: View) -> None:
    from idc_core.suites import damaged_suites, delete_saved, saved_suites

    saved, damaged = saved_suites(view.test), damaged_suites()
    st.markdown("**Saved on this computer**")
    if not saved and not damaged:
        st.caption("Nothing yet. Uploaded files and inputs that you save below are listed here.")

    def delete(name: str) -> None:
        try:
            delete_saved(name)
        except IdcError as error:
            st.session_state[REFUSED] = literal(error)

    tests = {one.name: plural(one.inputs, "test") for one in saved.values()}
    listed = [(one.name, f"{literal(one.label)}: {tests[one.name]}", tests[one.name]) for one in saved.values()]
    listed += [(name, f"{name}.npz is damaged and left out", "this damaged file") for name in damaged]
    for name, said, what in listed:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(said, help=literal(damaged[name]) if name in damaged else None)
            st.button(
                "Delete",
                key=f"remove-{name}",
                on_click=delete,
                args=(name,),
                type="tertiary",
                help=f"Deletes {what} from this computer.",
            )
