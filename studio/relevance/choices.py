"""Choose a test, and what explains it: the class, the method with its parameters, and what to compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.attribution.methods import METHODS
from idc_core.errors import IdcError
from idc_core.figures import heatmaps
from idc_core.figures.palette import SCHEMES
from idc_core.parameters import Parameter
from studio.engine.explanations import Explanation, explain
from studio.engine.results import PICKS, View, pick
from studio.state import address
from studio.state.choices import choose_one
from studio.state.selection import select
from studio.text import literal

WAYS = {**PICKS, "first": "all tests", "missed": "largest errors"}
NOTHING, NEXT = "nothing", "next"
RULE = "epsilon"
PREDICTED = "predicted"


@dataclass(frozen=True)
class Asked:
    """What the reader wants to be explained: a class (None for the predicted one) by a key of `METHODS`.

    `second` is what to compare with: `NOTHING`, `NEXT`, or a class or a method; `settings` are those of both methods.
    """

    explained: str | None
    method: str
    second: str
    settings: dict[str, float | str]


def orders(view: View) -> dict[str, NDArray[np.int64]]:
    """Return the tests to step through, by a key of `WAYS`."""
    ways = ["first", "misclassified", "uncertain"] if view.is_classifier else ["first"]
    found = {way: pick(view, way) for way in ways if way != "misclassified" or view.correct is not None}
    if not view.is_classifier:
        missed = np.abs(view.test.targets - view.analysis.confidence)[view.chosen]
        found["missed"] = view.chosen[np.argsort(-missed, kind="stable")]
    return {way: tests for way, tests in found.items() if len(tests)}


def choose_test(view: View) -> tuple[int, NDArray[np.int64]]:
    """Choose a test by its number, by stepping, or by the address; return its position, and those to step through."""
    offered, ids = orders(view), view.test.ids
    # The second one tells most: errors, where there are any.
    telling = list(offered)[1]
    default = int(offered[telling][0])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = choose_one(
            st.segmented_control,
            "Step through",
            {way: WAYS[way] for way in offered},
            telling,
            "step",
            required=True,
            help="Tests that Previous, Next and the gallery at the end of the page go through. Default "
            f"{WAYS[telling]}.",
        )
        order = offered[how]
        typed = st.session_state["test-number"] = address.read("input")
        st.text_input(
            "Test",
            key="test-number",
            on_change=lambda: select(input=st.session_state["test-number"]),
            placeholder=str(ids[default]),
            width=120,
            help=f"Number of the test in its test set, from {ids.min()} to {ids.max()}. Default: the first one to step "
            "through.",
        )
        position = default if view.position is None else view.position
        place = np.flatnonzero(order == position)
        for label, step in (("Previous", -1), ("Next", 1)):
            start = int(place[0]) + step if len(place) else 0
            number = str(ids[order[start % len(order)]]) if len(order) else ""
            st.button(label, on_click=select, kwargs={"input": number}, disabled=not number, key=f"step-{label}")
    if typed and view.position is None:
        st.warning(
            f"{literal(repr(typed))} is no test of {view.test.name}. Expected a number from {ids.min()} to "
            f"{ids.max()}; shown is test {ids[position]}."
        )
    return position, order


def _seconds(view: View) -> dict[str, str]:
    """Return what the first heatmap can be compared with: key and label."""
    choices = {NEXT: "the true class or runner-up"} if view.is_classifier else {}
    choices |= {f"class {index}": f"class {name}" for index, name in enumerate(view.train.class_names)}
    choices |= {f"method {name}": entry.label for name, entry in METHODS.items()}
    return {**choices, NOTHING: NOTHING}


def choose_explanation(view: View) -> Asked:
    """Choose class, method, what to compare with, and the parameters of both methods."""
    explained = None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if view.is_classifier:
            texts = {PREDICTED: "the predicted class", **{name: name for name in view.train.class_names}}
            explained = choose_one(
                st.selectbox,
                "Explain the score of",
                texts,
                PREDICTED,
                "explain",
                width=200,
                help=f"Class whose score before the softmax is explained. Default {texts[PREDICTED]}.",
            )
        lines = [f"**{entry.label}**: {entry.help}" for entry in METHODS.values()]
        method = choose_one(
            st.selectbox,
            "Method",
            {name: entry.label for name, entry in METHODS.items()},
            RULE,
            "method",
            width=200,
            help="  \n".join([*lines, f"Default {METHODS[RULE].label}."]),
        )
        choices = _seconds(view)
        usual = NEXT if view.is_classifier else "method composite"
        second = choose_one(
            st.selectbox,
            "Compare with",
            choices,
            usual,
            "second",
            width=210,
            help="The same method for a second class, or a second method for the same class. Default "
            f"{choices[usual]}.",
        )
        used = METHODS[method].parameters
        if second.startswith("method "):
            used = (*used, *METHODS[second.removeprefix("method ")].parameters)
        settings = {name: _choose_parameter(one) for name, one in {one.name: one for one in used}.items()}
    st.caption(f"{METHODS[method].label}: {METHODS[method].help}")
    return Asked(None if explained == PREDICTED else explained, method, second, settings)


def _choose_parameter(parameter: Parameter) -> float | str:
    value: float | str
    if not parameter.offered:
        default: Any = parameter.default  # an int or a float, as the limits
        value = st.number_input(
            parameter.label,
            type(default)(parameter.low),
            None if math.isinf(parameter.high) else type(default)(parameter.high),
            default,
            key=parameter.name,
            bind="query-params",
            width=130,
            help=f"{parameter.help} Default {_written(default)}.",
        )
        return value
    first, last, usual = map(_written, (parameter.offered[0], parameter.offered[-1], parameter.default))
    span = f"Either {first} or {last}" if isinstance(parameter.default, str) else f"From {first} to {last}"
    value = st.selectbox(
        parameter.label,
        parameter.offered,
        index=parameter.offered.index(parameter.default),
        format_func=_written,
        key=parameter.name,
        bind="query-params",
        width=130,
        help=f"{parameter.help} {span}; default {usual}.",
    )
    return value


def _written(value: float | str) -> str:
    """Write a parameter's value, small numbers without powers of ten."""
    return value if isinstance(value, str) else f"{Decimal(f'{value:g}'):f}"


def _label(view: View, target: int, method: str) -> str:
    label = METHODS[method].label
    return f"Class {view.train.class_names[target]}, {label}" if view.is_classifier else label


def explain_twice(view: View, position: int, asked: Asked, scores: NDArray[np.float32]) -> list[Explanation]:
    """Explain a test as asked, and a second time where there is something to compare with; say why a method cannot.

    Raises IdcError if not even the epsilon rule, which the other pages use, can explain the network.
    """
    target = int(scores.argmax()) if asked.explained is None else view.train.class_names.index(asked.explained)

    def by(method: str, target: int) -> Explanation:
        return explain(view, position, method, target, asked.settings, _label(view, target, method))

    try:
        first = by(asked.method, target)
    except IdcError as error:
        if asked.method == RULE:
            raise
        st.error(literal(error))
        first = by(RULE, target)
    second_target, method = target, first.method.name
    if asked.second == NEXT:
        second_target = _runner_up(view, position, target, scores)
    elif asked.second.startswith("class "):
        second_target = int(asked.second.removeprefix("class "))
    elif asked.second.startswith("method "):
        method = asked.second.removeprefix("method ")
    if (second_target, method) == (target, first.method.name):
        if asked.second != NOTHING:
            st.caption("Both explanations are the same. Compare with another class or method.")
        return [first]
    try:
        return [first, by(method, second_target)]
    except IdcError as error:
        st.error(literal(error))
        return [first]


def _runner_up(view: View, position: int, target: int, scores: NDArray[np.float32]) -> int:
    """Return the true class where another one is explained, else the class with the next highest score."""
    if view.is_comparable and view.test.targets[position] != target:
        return int(view.test.targets[position])
    return int(next(index for index in np.argsort(-scores, kind="stable") if index != target))


def choose_colours(is_image: bool) -> tuple[str, str, float]:
    """Choose what shares a colour scale, the colours, and the strength of the overlay in 0..1."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        scale = choose_one(
            st.segmented_control,
            "Colour scale",
            heatmaps.SCALES,
            "picture",
            "scale",
            required=True,
            help=f"Heatmaps that share one colour range. Default {heatmaps.SCALES['picture']}.",
        )
        scheme = choose_one(
            st.segmented_control,
            "Colours",
            {name: entry.label for name, entry in SCHEMES.items()},
            "red-blue",
            "colours",
            required=True,
            help="Orange and purple can be distinguished with every kind of colour vision. Default "
            f"{SCHEMES['red-blue'].label}.",
        )
        strength = 60
        if is_image:
            strength = st.slider(
                "Overlay (%)",
                0,
                100,
                60,
                5,
                key="overlay",
                bind="query-params",
                width=200,
                help="Opacity of the most relevant pixels over the image. From 0 to 100; default 60.",
            )
    return scale, scheme, strength / 100
