"""Relevance: one test's heatmaps for any class and method, beside each other, and relevance layer by layer."""

from decimal import Decimal

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.attribution.methods import METHODS, PARAMETERS
from idc_core.errors import IdcError
from idc_core.figures import heatmaps, text_relevance
from idc_core.figures.input_images import contact_sheet, png
from idc_core.figures.layer_relevance import layer_sums
from idc_core.figures.palette import SCHEMES
from studio.engine import results
from studio.engine.explanations import INPUT, Explanation, baseline_scores, explain, read_tokens, scores
from studio.engine.results import PICKS, View, pick
from studio.shell import address, pins
from studio.shell.frame import current_view
from studio.shell.selection import Selection, select
from studio.widgets import layout, relevance_view
from studio.widgets.relevance_view import Display
from studio.widgets.text import count, percent, plural

view = current_view()


OFFERED = 10
WAYS = {**PICKS, "first": "all tests"}
NOTHING, NEXT = "nothing", "next"
RULE = "epsilon"
PREDICTED = "the predicted class"

is_image = view.test.inputs.ndim == 4
names = view.train.class_names
finding = st.container()


def steps() -> dict[str, NDArray[np.int64]]:
    """Return the tests to step through, by what they are."""
    ways = ["first", "misclassified", "uncertain"] if view.is_classifier else ["first"]
    found = {WAYS[way]: pick(view, way) for way in ways if way != "misclassified" or view.correct is not None}
    if not view.is_classifier:
        missed = np.abs(view.test.targets - view.analysis.confidence)[view.chosen]
        found["largest errors"] = view.chosen[np.argsort(-missed, kind="stable")]
    return {what: tests for what, tests in found.items() if len(tests)}


def choose_test() -> tuple[int, NDArray[np.int64]]:
    """Choose a test by its number, by stepping, or by the address; return its position, and those to step through."""
    orders = steps()
    # The second one tells most: errors, where there are any.
    telling = list(orders)[1]
    default = int(orders[telling][0])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = st.segmented_control(
            "Step through",
            list(orders),
            default=telling,
            required=True,
            key="step",
            bind="query-params",
            help=f"Which tests the two buttons and the row at the end of the page walk through; default {telling}.",
        )
        order = orders[how or telling]
        typed = st.session_state["test-number"] = address.read("input")
        st.text_input(
            "Test",
            key="test-number",
            on_change=lambda: select(input=st.session_state["test-number"]),
            placeholder=str(view.test.ids[default]),
            width=120,
            help=f"Number of the test in its test set, from {view.test.ids.min()} to {view.test.ids.max()}; default "
            "the first one to step through.",
        )
        position = default if view.position is None else view.position
        place = np.flatnonzero(order == position)
        for label, step in (("Previous", -1), ("Next", 1)):
            start = int(place[0]) + step if len(place) else 0
            number = str(view.test.ids[order[start % len(order)]]) if len(order) else ""
            st.button(label, on_click=select, kwargs={"input": number}, disabled=not number, key=f"step-{label}")
    if typed and view.position is None:
        st.warning(
            f"{typed!r} is no test of {view.test.name}. Expected a number from {view.test.ids.min()} to "
            f"{view.test.ids.max()}; shown is test {view.test.ids[position]}."
        )
    return position, order


def second_choices() -> dict[str, str]:
    """Return what can stand beside the first heatmap: key and label."""
    choices = {NEXT: "the true class or runner-up"} if view.is_classifier else {}
    choices |= {f"class {index}": f"class {name}" for index, name in enumerate(names)}
    choices |= {f"method {name}": entry.label for name, entry in METHODS.items()}
    return {**choices, NOTHING: NOTHING}


def choose_explanation() -> tuple[str | None, str, str, dict[str, float | str]]:
    """Choose class, method, what stands beside it, and the parameters of both."""
    explained = None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if view.is_classifier:
            explained = st.selectbox(
                "Explain the score of",
                [PREDICTED, *names],
                key="explain",
                bind="query-params",
                width=200,
                help=f"The class whose score before the softmax is explained; default {PREDICTED}.",
            )
        method = st.selectbox(
            "Method",
            list(METHODS),
            index=list(METHODS).index(RULE),
            format_func=lambda name: METHODS[name].label,
            key="method",
            bind="query-params",
            width=200,
            help=method_help(),
        )
        choices = second_choices()
        beside = st.selectbox(
            "Beside it",
            list(choices),
            index=0 if view.is_classifier else list(choices).index("method composite"),
            format_func=choices.get,
            key="second",
            bind="query-params",
            width=210,
            help="The same method for a second class, or a second method for the same class; default "
            + choices[NEXT if view.is_classifier else "method composite"]
            + ".",
        )
        used = METHODS[method].parameters
        if beside.startswith("method "):
            used = tuple(dict.fromkeys((*used, *METHODS[beside.removeprefix("method ")].parameters)))
        settings = {name: choose_parameter(name) for name in used}
    st.caption(f"{METHODS[method].label}: {METHODS[method].help}")
    return (None if explained == PREDICTED else explained), method, beside, settings


def written(value: float | str) -> str:
    """Write a parameter's value, small numbers without powers of ten."""
    return value if isinstance(value, str) else f"{Decimal(f'{value:g}'):f}"


def choose_parameter(name: str) -> float | str:
    """Choose the value of a method's parameter."""
    parameter = PARAMETERS[name]
    numbers = not isinstance(parameter.default, str)
    first, last, default = (
        written(value) for value in (parameter.offered[0], parameter.offered[-1], parameter.default)
    )
    return st.selectbox(
        parameter.label,
        parameter.offered,
        index=parameter.offered.index(parameter.default),
        format_func=written,
        key=name,
        bind="query-params",
        width=130,
        help=f"{parameter.help} {'From' if numbers else 'Either'} {first} {'to' if numbers else 'or'} {last}; default "
        f"{default}.",
    )


def method_help() -> str:
    """List the methods with a line each."""
    lines = [f"**{entry.label}**: {entry.help}" for entry in METHODS.values()]
    return "  \n".join([*lines, f"Default {METHODS[RULE].label}."])


def label_of(target: int, method: str) -> str:
    """Name an explanation."""
    return f"Class {names[target]}, {METHODS[method].label}" if view.is_classifier else METHODS[method].label


def runner_up(target: int) -> int:
    """Return the true class where another one is explained, else the class with the next highest score."""
    if view.is_comparable and view.test.targets[position] != target:
        return int(view.test.targets[position])
    return int(next(index for index in np.argsort(-score, kind="stable") if index != target))


def first_explanation(target: int, method: str) -> Explanation:
    """Explain by the chosen method; where it cannot, say why and explain by the rule that the other pages use."""
    try:
        return explain(view, position, method, target, settings, label_of(target, method))
    except IdcError as error:
        if method == RULE:
            raise
        st.error(str(error))
        return explain(view, position, RULE, target, settings, label_of(target, RULE))


def second_explanation(first: Explanation, beside: str) -> Explanation | None:
    """Return what stands beside the first explanation, if it is another one."""
    target, method = first.target, first.method.name
    if beside == NEXT:
        target = runner_up(target)
    elif beside.startswith("class "):
        target = int(beside.removeprefix("class "))
    elif beside.startswith("method "):
        method = beside.removeprefix("method ")
    if (target, method) == (first.target, first.method.name):
        if beside != NOTHING:
            st.caption("What was chosen to stand beside it is the same; choose another class or method.")
        return None
    try:
        return explain(view, position, method, target, settings, label_of(target, method))
    except IdcError as error:
        st.error(str(error))
        return None


def sentence() -> str:
    """Put the finding into words."""
    number = view.test.ids[position]
    said = int(view.analysis.predictions[position])
    values = first.maps[INPUT] if is_image else first.layers[INPUT][: len(tokens)]
    positive = "positive relevance"
    if not view.is_classifier:
        angle, true = float(score[0]), float(view.test.targets[position])
        opening = f"In test {number} the network steers {steer(angle)} (the driver: {steer(true)})"
        positive = f"relevance towards the {side(angle)}"
        values = values if angle > 0 else -values
    elif view.correct is not None and not view.correct[position]:
        true_class = view.test.class_names[view.test.targets[position]]
        opening = f"Test {number} is taken for class {names[said]} (true: {true_class})"
    else:
        rightly = "rightly " if view.correct is not None else ""
        confidence = percent(float(view.analysis.confidence[position]))
        opening = f"Test {number} is {rightly}taken for class {names[said]} with {confidence} confidence"
    if view.is_classifier and first.target != said:
        opening += f"; for class {names[first.target]} its score is {score[first.target]:.2f}"
    most = heatmaps.half(values)
    if not len(most):
        return f"**{opening}; nothing in it speaks for that.**"
    if is_image:
        place = f"{percent(len(most) / values.size)} of the pixels"
    else:
        best = ", ".join(f"\u201c{tokens[index]}\u201d" for index in most[:3])
        more = " and others" if len(most) > 3 else ""
        place = f"{count(len(most))} of {plural(len(tokens), read_as[:-1])}: {best}{more}"
    return f"**{opening}; half of the {positive} lies in {place}.**"


def steer(angle: float) -> str:
    """Write a steering angle with its side."""
    return f"{abs(angle):.3f} rad to the {side(angle)}"


def side(angle: float) -> str:
    """Name the side of a steering angle."""
    return "left" if angle > 0 else "right"


def conserved() -> tuple[str, float, str]:
    """Return the finding about the sums, what they are compared with, and what that is called."""
    sums = list(first.sums.values())
    expected, called = float(score[first.target]), "score"
    if "baseline" in first.settings:
        expected -= float(baseline_scores(view, float(first.settings["baseline"]))[first.target])
        called = "score less the baseline's score"
    if np.allclose(sums, expected, rtol=1e-3, atol=1e-6):
        return f"Every layer sums to the {called}, {expected:.2f}: nothing is lost", expected, called
    title = f"The input's relevance sums to {sums[-1]:.2f}, the {called} is {expected:.2f}"
    if first.settings.get("bias") == "absorb":
        title += f"; biases keep the difference of {abs(sums[-1] - expected):.2g}"
    return title, expected, called


def draw_side(shown: View, chosen: Selection, key: str) -> None:
    """Show one test of a bench with its heatmap for the answer that was given."""
    place = shown.place(chosen)
    if place is None:
        place = position if shown is view else int(shown.chosen[0])
    try:
        answer = int(scores(shown, place).argmax())
        one = explain(shown, place, method, answer, settings, METHODS[method].label)
    except IdcError as error:
        st.error(str(error))
        return
    side = Display(shown, place, [one], "picture", drawn.scheme)
    if shown.test.inputs.ndim == 4:
        image, _, heatmap = side.pictures(0)
        relevance_view.draw_pictures([image, heatmap], key=f"heatmaps-{key}")
    else:
        relevance_view.draw_words(side, read_tokens(shown.test, place))


position, order = choose_test()
explained, method, beside, settings = choose_explanation()
try:
    score = scores(view, position)
    target = int(score.argmax()) if explained is None else names.index(explained)
    first = first_explanation(target, method)
    second = second_explanation(first, beside)
except IdcError as error:
    st.error(str(error))
    st.stop()
explanations = [first] if second is None else [first, second]
tokens = [] if is_image else read_tokens(view.test, position)
read_as = "characters" if view.test.is_spelt else "words"
finding.markdown(sentence())

with st.container(horizontal=True, vertical_alignment="bottom"):
    scale = st.segmented_control(
        "Colour scale",
        list(heatmaps.SCALES),
        default="picture",
        required=True,
        format_func=heatmaps.SCALES.get,
        key="scale",
        bind="query-params",
        help=f"What shares one scale: nothing, the maps of a layer, or all maps; default {heatmaps.SCALES['picture']}.",
    )
    scheme = st.segmented_control(
        "Colours",
        list(SCHEMES),
        default="red-blue",
        required=True,
        format_func=lambda key: SCHEMES[key].label,
        key="colours",
        bind="query-params",
        help=f"Orange and purple are told apart with every kind of colour vision; default {SCHEMES['red-blue'].label}.",
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
            help="How much of the image the most relevant pixels cover. From 0 to 100; default 60.",
        )
drawn = Display(view, position, explanations, scale or "picture", scheme or "red-blue")
shown = drawn.pictures(strength / 100) if is_image else []
if is_image:
    relevance_view.draw_groups([shown[:2], shown[2:]])
else:
    relevance_view.draw_words(drawn, tokens)
against, supports = ("against", "for") if view.is_classifier else ("to the right", "to the left")
st.html(text_relevance.legend(drawn.deepest, against, supports, drawn.scheme))
colours = SCHEMES[drawn.scheme]
meaning = (
    f"{colours.supports} speaks for the explained class, {colours.against} against it"
    if view.is_classifier
    else f"{colours.supports} pushes the angle to the left, {colours.against} to the right"
)
marks = (
    f"dots mark {colours.against} pixels"
    if is_image
    else f"{colours.supports} {read_as} are bold, {colours.against} ones italic with a dotted line"
)
layout.how_to_read(f"{meaning}, white does not matter; {marks}.")
layout.take_inputs(view, np.array([position]))

st.header("Layer by layer, from the scores to the input", anchor=False)
relevance_view.draw_flow(drawn, skip=() if is_image else (INPUT,))
layout.how_to_read(
    "each picture is a layer, its channels summed over each position, its units in rows. "
    + ("The upper one is the first explanation, the lower one the second. " if second else "")
    + "Numbers are the sums of all values of a layer."
)
title, expected, expected_label = conserved()
layout.chart(
    view,
    "layer-sums",
    lambda dark: layer_sums(
        list(first.layers),
        first.signed(1),
        first.signed(-1),
        expected,
        expected_label,
        title,
        beside=None if second is None else list(second.sums.values()),
        beside_label="" if second is None else second.label,
        scheme=drawn.scheme,
        dark=dark,
    ),
    alt=title,
    read=f"bars are what speaks for (plain) and against (hatched) in each layer, the diamond is their sum. The values "
    f"of {first.method.label} sum to {first.method.sums_to}."
    + ("" if is_image else " Layers that lie side by side, as the three convolutions do, share the sum."),
    depends=(position, first.label, None if second is None else second.label, tuple(settings.items()), drawn.scheme),
)

st.header("Choose another test", anchor=False)
layout.gallery(view, order, OFFERED, results.heatmaps(view, order[:OFFERED], None) if len(order) else None)
layout.how_to_read(
    "beside every test is what speaks for (red) and against (blue) the network's own answer, by the epsilon rule; each "
    "heatmap has its own scale."
    if is_image
    else f"{read_as} that speak strongly for the network's own answer are bold on red, those against it italic on blue."
)

pins.beside(view, draw_side)

given = ", ".join(f"{PARAMETERS[name].label.lower()} {value}" for name, value in first.settings.items())
layout.computed(
    view,
    f"The heatmaps above are by {first.method.label} ({first.method.citation}{'; ' + given if given else ''}), from "
    "the score before the softmax. One backward pass of relevance propagation serves all layers; the other methods "
    "take one a layer. The importance of neurons on the other pages is always by the method named below.",
)
tables = {"layer-sums": drawn.table()}
files = {"Heatmaps (npz)": ("idc-heatmaps.npz", "application/octet-stream", drawn.archive)}
if is_image:
    files["Pictures (PNG)"] = (
        "idc-heatmaps.png",
        "image/png",
        lambda: png(contact_sheet([tile for tile, _ in shown], [caption for _, caption in shown])),
    )
else:
    tables["word-relevance"] = pd.DataFrame(
        {"word": tokens} | {one.label: one.layers[INPUT][: len(tokens)] for one in explanations}
    )
layout.take_away(tables, files)
