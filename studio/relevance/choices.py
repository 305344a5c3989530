"""Choose a test, and what explains it: the class, the method with its parameters, and what to compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from idc_core.attribution.methods import METHODS
from idc_core.base.parameters import Parameter
from idc_core.errors import IdcError
from idc_core.figures import heatmaps
from idc_core.figures.palette import SCHEMES
from studio.jobs.explanations import Explanation, explain
from studio.jobs.results import View
from studio.state.choices import choose_one
from studio.state.selection import EXPLAINED, NEURON, select, selected
from studio.text import literal
from studio.widgets import layout

_NOTHING, _NEXT = "nothing", "next"
RULE = "epsilon"

_PREDICTED = "predicted"

_SCORE = "score"
"""What is explained beside `NEURON`, by its name in the address."""


@dataclass(frozen=True)
class Asked:
    """What the reader wants to be explained: a class (None for the predicted one) by a key of `METHODS`.

    `second` is what to compare with: `_NOTHING`, `_NEXT`, or a class or a method; `settings` are those of both methods.
    With a `neuron` of the setup's layer its activation is to be explained, and `_NEXT` is the prediction.
    """

    explained: str | None
    method: str
    second: str
    settings: dict[str, float | str]
    neuron: int | None = None


def _seconds(view: View, neuron: int | None) -> dict[str, str]:
    """Return what the first heatmap can be compared with: key and label."""
    methods = {f"method {name}": entry.label for name, entry in METHODS.items()}
    if neuron is not None:
        return {_NEXT: "the prediction", **methods, _NOTHING: _NOTHING}
    choices = {_NEXT: "the true class or runner-up"} if view.is_classifier else {}
    choices |= {f"class {index}": f"class {name}" for index, name in enumerate(view.train.class_names)}
    return {**choices, **methods, _NOTHING: _NOTHING}


def choose_neuron(view: View) -> int | None:
    """Choose whether the prediction is explained, None, or a neuron of the setup's layer, and which."""
    layer = view.setup.layer
    what = choose_one(
        st.segmented_control,
        "Explain",
        {_SCORE: "the prediction", NEURON: "a neuron"},
        _SCORE,
        EXPLAINED,
        required=True,
        help=f"Start from a class's score, or from the activation of a neuron of {literal(layer)}, the layer in the "
        "sidebar. Default the prediction.",
    )
    if what == _SCORE:
        return None
    order = np.argsort(-view.analysis.importance, kind="stable").tolist()
    chosen = selected().neuron
    st.session_state["explained-neuron"] = chosen if chosen in order else int(view.analysis.important[0])
    neuron: int = st.selectbox(
        "Neuron",
        order,
        format_func=lambda number: f"{view.called(number)} of {layer}",
        key="explained-neuron",
        width=200,
        on_change=lambda: select(neuron=st.session_state["explained-neuron"]),
        help=f"Neuron whose activation is explained, from 0 to {len(order) - 1}, the most important one first. Default "
        "the selected one, else the most important.",
    )
    return neuron


def choose_class(view: View) -> str | None:
    """Choose the class whose score is explained; None for the predicted one, and where there are no classes."""
    if not view.is_classifier:
        return None
    texts = {_PREDICTED: "the predicted class", **{name: name for name in view.train.class_names}}
    explained = choose_one(
        st.selectbox,
        "Explain the score of",
        texts,
        _PREDICTED,
        "explain",
        width=200,
        help=f"Class whose score before the softmax is explained. Default {texts[_PREDICTED]}.",
    )
    return None if explained == _PREDICTED else explained


def choose_method() -> str:
    """Choose the method that explains."""
    lines = [f"{layout.label(entry.label)}: {entry.help}" for entry in METHODS.values()]
    return choose_one(
        st.selectbox,
        "Method",
        {name: entry.label for name, entry in METHODS.items()},
        RULE,
        "method",
        width=200,
        help="  \n".join([*lines, f"Default {METHODS[RULE].label}."]),
    )


def choose_explanation(view: View, *rare: str) -> tuple[Asked, DeltaGenerator]:
    """Choose class, method, what to compare with, and the parameters of both methods.

    Return them and the place of the tab's rare choices, of which `rare` are the names in the address.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        neuron = choose_neuron(view)
        explained, method = choose_class(view) if neuron is None else None, choose_method()
        choices = _seconds(view, neuron)
        usual = _NEXT if view.is_classifier or neuron is not None else "method composite"
        second = choose_one(
            st.selectbox,
            "Compare with",
            choices,
            usual,
            "second",
            width=210,
            help="The same method for a second class, or a second method for the same class or neuron. Default "
            f"{choices[usual]}.",
        )
        used = METHODS[method].parameters
        if second.startswith("method "):
            used = (*used, *METHODS[second.removeprefix("method ")].parameters)
        parameters = {parameter.name: parameter for parameter in used}
        settings = layout.settings(*parameters, *rare)
    with settings:
        chosen = {name: _choose_parameter(parameter) for name, parameter in parameters.items()}
    return Asked(explained, method, second, chosen, neuron), settings


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
            help=f"{parameter.help} Default {_written(default)}.",
        )
        return value
    first, last, usual = map(_written, (parameter.offered[0], parameter.offered[-1], parameter.default))
    span = f"Either {first} or {last}" if isinstance(parameter.default, str) else f"From {first} to {last}"
    value = choose_one(
        st.selectbox,
        parameter.label,
        {offer: _written(offer) for offer in parameter.offered},
        parameter.default,
        parameter.name,
        help=f"{parameter.help} {span}; default {usual}.",
    )
    return value


def _written(value: float | str) -> str:
    """Write a parameter's value, small numbers without powers of ten."""
    return value if isinstance(value, str) else f"{Decimal(f'{value:g}'):f}"


def _label(view: View, target: int, method: str, neuron: int | None) -> str:
    label = METHODS[method].label
    if neuron is not None:
        called = view.called(neuron)
        return f"{called[0].upper()}{called[1:]}, {label}"
    return f"Class {view.train.class_names[target]}, {label}" if view.is_classifier else label


def explain_twice(view: View, position: int, asked: Asked, scores: NDArray[np.float32]) -> list[Explanation]:
    """Explain a test as asked, and a second time where there is something to compare with; say why a method cannot.

    Raises IdcError if not even the epsilon rule, which the other pages use, can explain the network.
    """
    target = int(scores.argmax()) if asked.explained is None else view.train.class_names.index(asked.explained)

    def by(method: str, target: int, neuron: int | None = asked.neuron) -> Explanation:
        label = _label(view, target, method, neuron)
        return explain(view, position, method, target, asked.settings, label, neuron)

    try:
        first = by(asked.method, target)
    except IdcError as error:
        if asked.method == RULE:
            raise
        st.error(literal(error))
        first = by(RULE, target)
    second_target, method, neuron = target, first.method.name, asked.neuron
    if asked.neuron is not None and asked.second == _NEXT:
        neuron = None
    elif asked.second == _NEXT:
        second_target = _runner_up(view, position, target, scores)
    elif asked.second.startswith("class "):
        second_target = int(asked.second.removeprefix("class "))
    elif asked.second.startswith("method "):
        method = asked.second.removeprefix("method ")
    if (second_target, method, neuron) == (target, first.method.name, asked.neuron):
        if asked.second != _NOTHING:
            st.caption("Both explanations are the same. Compare with another class or method.")
        return [first]
    try:
        return [first, by(method, second_target, neuron)]
    except IdcError as error:
        st.error(literal(error))
        return [first]


def _runner_up(view: View, position: int, target: int, scores: NDArray[np.float32]) -> int:
    """Return the true class where another one is explained, else the class with the next highest score."""
    if view.is_comparable and view.test.targets[position] != target:
        return int(view.test.targets[position])
    return int(next(index for index in np.argsort(-scores, kind="stable") if index != target))


def choose_colours() -> tuple[str, str]:
    """Choose what shares a colour scale, and the colours."""
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
    return scale, scheme
