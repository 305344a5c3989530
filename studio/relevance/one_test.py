"""Show one test with its heatmaps, as pictures, words or bars, and layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from idc_core.attribution.methods import METHODS
from idc_core.errors import IdcError
from idc_core.figures import text_relevance
from idc_core.figures.input_images import contact_sheet, png
from idc_core.figures.layer_relevance import layer_sums
from idc_core.figures.palette import SCHEMES
from idc_core.lrp.rules import BIAS, RULES
from studio.jobs.explanations import INPUT, Explanation, explain, lost_digits, read_tokens, scores
from studio.jobs.results import View
from studio.jobs.wording import input_parts, quantity
from studio.relevance import choices
from studio.relevance.choices import RULE, Asked
from studio.relevance.findings import conserved, sentence, unexplained
from studio.shell import pins
from studio.state import address
from studio.state.choices import choose_one
from studio.state.selection import Selection
from studio.text import literal
from studio.widgets import layout, relevance_view
from studio.widgets.relevance_view import Display
from studio.widgets.storytelling import add_button

if TYPE_CHECKING:
    import plotly.graph_objects as go

_SPREAD = "redistribute"
"""How biases are treated where every layer is to sum to the score."""


@dataclass(frozen=True, eq=False)
class _Explained:
    """A test explained as the reader asked: once, or twice to compare; `settings` is the place of rare choices."""

    view: View
    position: int
    asked: Asked
    score: NDArray[np.float32]
    explanations: list[Explanation]
    settings: DeltaGenerator


def draw(view: View, position: int) -> None:
    """Show one test with its heatmaps."""
    one = _explain_as_asked(view, position, "at", "scale", "colours", "overlay")
    _draw_test(one)
    pins.beside(view, partial(_draw_side, one))
    _say_computed(one)


def draw_layers(view: View, position: int) -> None:
    """Show the relevance of every layer, from the scores to the input."""
    one = _explain_as_asked(view, position, "scale", "colours")
    _draw_layers(one)
    _say_computed(one)


def _say_computed(one: _Explained) -> None:
    """Say how the explanations were computed."""
    first = one.explanations[0]
    start = "the score before the softmax" if first.neuron is None else "the activation of the neuron"
    given = "".join(f"; {each.label.lower()} {first.settings[each.name]}" for each in first.method.parameters)
    layout.computed(
        one.view,
        f"These heatmaps use {first.method.label} ({first.method.citation}{given}), starting at {start}. "
        "One backward pass of relevance propagation explains all layers; other methods need one pass per layer. The "
        "importance of neurons on the other pages always uses the method below.",
    )


def _is_vector(view: View) -> bool:
    """Whether inputs are feature vectors or time series."""
    return not view.has_pictures and view.test.inputs.dtype.kind == "f"


def _explain_as_asked(view: View, position: int, *rare: str) -> _Explained:
    """Choose what explains a test, and explain it; where no method can, say why and draw nothing more.

    `rare` are the names in the address of the tab's other rare choices.
    """
    asked, settings = choices.choose_explanation(view, *rare)
    try:
        score = scores(view, position)
        return _Explained(view, position, asked, score, choices.explain_twice(view, position, asked, score), settings)
    except IdcError as error:
        st.error(literal(error))
        st.stop()


def _draw_test(one: _Explained) -> None:
    """Show the test with its heatmaps, and offer them as files."""
    view, position = one.view, one.position
    tokens = [] if view.has_pictures else read_tokens(view.test, position)
    strength = 0.0
    with one.settings:
        looked_at = _choose_place(view, one.explanations)
        scale, scheme = choices.choose_colours()
        if view.has_pictures:
            strength = _choose_strength()
    seen = [each.seen_at(looked_at, view.test, position) for each in one.explanations]
    st.markdown(sentence(view, position, one.score, seen[0], tokens, input_parts(view.test)))
    _say_unexplained(one)
    display = Display(view, position, seen, scale, scheme)
    pictures = display.pictures(strength) if view.has_pictures else []
    if view.has_pictures:
        relevance_view.draw_groups([pictures[:2], pictures[2:]])
        title = f"Test {view.test.ids[position]}: {layout.answer(view, position)}"
        add_button("heatmaps", title, lambda dark: _figure(replace(display, dark=dark), title), view.line)
    elif _is_vector(view):
        relevance_view.draw_vector(display, "input-relevance", _parts(display, tokens))
    else:
        relevance_view.draw_words(display, tokens)
    _legend(view, scheme, one.asked.neuron is not None)
    layout.take_inputs(view, np.array([position]))
    archive = Display(view, position, one.explanations, scale, scheme).archive
    files = {"Heatmaps (npz)": ("heatmaps.npz", "application/octet-stream", archive)}
    if view.has_pictures:
        files["Pictures (PNG)"] = (
            "heatmaps.png",
            "image/png",
            lambda: png(contact_sheet([tile for tile, _ in pictures], [caption for _, caption in pictures])),
        )
    words = {} if view.has_pictures or _is_vector(view) else {"word-relevance": _parts(display, tokens)}
    layout.take_away(words, files)


def _figure(display: Display, title: str) -> go.Figure:
    """Draw the test beside its heatmaps, for a slide."""
    from idc_core.figures.picture_figure import picture_figure

    tiles, captions = zip(display.image, *display.heatmaps, strict=True)
    return picture_figure(tiles, captions, title, dark=display.dark)


def _say_unexplained(one: _Explained) -> None:
    """Say that the heatmap's sum misses the score by much, with the rule that conserves a click away."""
    lost = [said for each in one.explanations if (said := lost_digits(one.view, one.position, each))]
    for said in dict.fromkeys(lost):
        st.warning(literal(said))
    text = unexplained(one.view, one.position, one.score, one.explanations[0])
    if lost or not text:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(text, width="content")
        if one.explanations[0].settings.get("bias") != _SPREAD:
            st.button(
                "Redistribute the biases",
                key="conserve",
                on_click=_conserve,
                help="Spread what biases keep over the inputs, by the chosen rule or LRP-epsilon: every layer then "
                "sums to the score.",
            )


def _parts(display: Display, tokens: list[str]) -> pd.DataFrame:
    """Return the relevance of every word, feature or step."""
    part = input_parts(display.view.test)[:-1] if _is_vector(display.view) else "word"
    return pd.DataFrame(
        {part: tokens} | {each.label: each.parts.reshape(-1)[: len(tokens)] for each in display.explanations}
    )


def _legend(view: View, scheme: str, of_neuron: bool) -> None:
    """Say what the colours mean."""
    what, colours, units = quantity(view.test), SCHEMES[scheme], input_parts(view.test)
    if not _is_vector(view):
        ends = (
            ("strongest against", "strongest for")
            if view.is_classifier or of_neuron
            else (what.negative, what.positive)
        )
        st.html(text_relevance.legend(*ends, scheme, dark=layout.is_dark()))
    moved = what.name.split()[-1] if what.signed else "prediction"
    meaning = (
        f"{colours.supports} is evidence for the explained class, {colours.against} against it"
        if view.is_classifier
        else f"{colours.supports} moves the {moved} {what.positive}, {colours.against} {what.negative}"
    )
    if of_neuron:
        meaning = f"{colours.supports} activates the neuron, {colours.against} holds its activation down"
    marks = (
        f"Dots mark {colours.against} pixels"
        if view.has_pictures
        else f"{colours.supports.capitalize()} {units} are bold, {colours.against} ones italic with a dotted line"
    )
    if _is_vector(view) and view.is_classifier and not of_neuron:
        return  # the chart of features says it
    layout.how_to_read(f"{meaning}." if _is_vector(view) else f"{meaning}. {marks}.")


def _draw_side(one: _Explained, shown: View, chosen: Selection, key: str) -> None:
    """Show one test of one of two setups with its heatmap for the predicted class."""
    place = shown.place(chosen)
    if place is None:
        place = one.position if shown is one.view else int(shown.chosen[0])
    method, settings = one.asked.method, one.asked.settings
    try:
        predicted = int(scores(shown, place).argmax())
        explained = explain(shown, place, method, predicted, settings, METHODS[method].label)
        side = Display(shown, place, [explained.seen_at(INPUT, shown.test, place)], "picture", "red-blue")
    except IdcError as error:
        st.error(literal(error))
        return
    if shown.has_pictures:
        image, _, heatmap = side.pictures(0)
        relevance_view.draw_pictures([image, heatmap], key=f"heatmaps-{key}")
    elif _is_vector(shown):
        relevance_view.draw_vector(side, f"vector-{key}")
    else:
        relevance_view.draw_words(side, read_tokens(shown.test, place))


def _draw_layers(one: _Explained) -> None:
    """Show each layer's map, and the sums of all layers."""
    with one.settings:
        scale, scheme = choices.choose_colours()
    view, first = one.view, one.explanations[0]
    second = one.explanations[1] if len(one.explanations) > 1 else None
    display = Display(view, one.position, one.explanations, scale, scheme)
    said, expected, expected_label = conserved(view, one.position, one.score, first)
    title = layout.topic("Relevance of every layer, and the {}", expected_label)
    st.markdown(said)
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
            beside=None if second is None else [second.sums.get(layer, np.nan) for layer in first.layers],
            beside_label="" if second is None else second.label,
            scheme=scheme,
            dark=dark,
        ),
        alt=title,
        read="Each bar is one layer. Height: its summed relevance for (plain) and against (hatched) the "
        f"{'score' if first.neuron is None else 'activation'}; the "
        f"diamond is their sum. {first.method.label} sums to {first.method.sums_to}."
        + ("" if view.has_pictures else " Parallel layers, such as the three convolutions, share the sum."),
        depends=(one.position, first.label, second and second.label, tuple(one.asked.settings.items()), scheme),
        table=display.table(),
    )
    relevance_view.draw_flow(display, skip=() if view.has_pictures else (INPUT,))
    layout.how_to_read(
        "Each picture is one layer: convolutions summed over channels, tokens over features, other layers with their "
        "neurons in rows. "
        + ("Top: first explanation; bottom: second. " if second else "")
        + "The numbers are sums over the layer."
    )


def _conserve() -> None:
    """Explain by the usual rule where the method has no such choice, and spread what biases keep; for callbacks."""
    if st.session_state["method"] not in RULES:
        address.keep("method", "")
        st.session_state["method"] = RULE
    address.keep(BIAS.name, _SPREAD)
    st.session_state[BIAS.name] = _SPREAD


def _choose_place(view: View, explanations: list[Explanation]) -> str:
    """Choose where relevance is looked at: the input, or a layer whose tokens lie over it."""
    units = input_parts(view.test)
    over = [
        layer
        for layer in explanations[0].over_input
        if all(layer in explanation.over_input for explanation in explanations)
    ]
    if not over:
        return INPUT
    tokens = "patches" if view.has_pictures else "tokens"
    return choose_one(
        st.selectbox,
        "Relevance of",
        {INPUT: units, **{layer: f"{tokens} at {layer}" for layer in reversed(over)}},
        INPUT,
        "at",
        help=f"The {units} of the input, or the {tokens} of a layer: the relevance of all features of a token, summed. "
        f"Tokens that are none of the {tokens}, such as the class token, are left out. Default {units}.",
    )


def _choose_strength() -> float:
    """Choose how strongly relevance covers its picture, in 0..1."""
    return (
        st.slider(
            "Overlay (%)",
            0,
            100,
            60,
            5,
            key="overlay",
            bind="query-params",
            help="Opacity of the most relevant pixels over the image. From 0 to 100; default 60.",
        )
        / 100
    )
