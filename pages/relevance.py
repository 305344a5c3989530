"""Relevance: one test's heatmaps for any class and method, compared, and relevance layer by layer."""

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.attribution.methods import METHODS
from idc_core.errors import IdcError
from idc_core.figures import text_relevance
from idc_core.figures.input_images import contact_sheet, png
from idc_core.figures.layer_relevance import layer_sums
from idc_core.figures.palette import SCHEMES
from studio.engine import results
from studio.engine.explanations import INPUT, explain, read_tokens, scores
from studio.engine.results import View
from studio.engine.wording import input_parts, quantity
from studio.relevance.choices import choose_colours, choose_explanation, choose_test, explain_twice
from studio.relevance.findings import conserved, sentence
from studio.shell import pins
from studio.shell.frame import current_view
from studio.state.selection import Selection
from studio.text import literal
from studio.widgets import layout, relevance_view
from studio.widgets.relevance_view import Display

OFFERED = 10

view = current_view()
is_image = view.test.inputs.ndim == 4
finding = st.container()

position, order = choose_test(view)
asked = choose_explanation(view)
try:
    score = scores(view, position)
    explanations = explain_twice(view, position, asked, score)
except IdcError as error:
    st.error(literal(error))
    st.stop()
first, second = explanations[0], explanations[1] if len(explanations) > 1 else None
tokens = [] if is_image else read_tokens(view.test, position)
units = input_parts(view.test)
finding.markdown(sentence(view, position, score, first, tokens, units))

scale, scheme, strength = choose_colours(is_image)
drawn = Display(view, position, explanations, scale, scheme)
shown = drawn.pictures(strength) if is_image else []
if is_image:
    relevance_view.draw_groups([shown[:2], shown[2:]])
else:
    relevance_view.draw_words(drawn, tokens)
what = quantity(view.test)
moved = what.name.split()[-1] if what.signed else "prediction"
ends = ("strongest against", "strongest for") if view.is_classifier else (what.negative, what.positive)
st.html(text_relevance.legend(*ends, scheme))
colours = SCHEMES[scheme]
meaning = (
    f"{colours.supports} is evidence for the explained class, {colours.against} against it"
    if view.is_classifier
    else f"{colours.supports} moves the {moved} {what.positive}, {colours.against} {what.negative}"
)
marks = (
    f"Dots mark {colours.against} pixels"
    if is_image
    else f"{colours.supports.capitalize()} {units} are bold, {colours.against} ones italic with a dotted line"
)
layout.how_to_read(f"{meaning}. White has no relevance. {marks}.")
layout.take_inputs(view, np.array([position]))

st.header("Layer by layer, from the scores to the input", anchor=False)
relevance_view.draw_flow(drawn, skip=() if is_image else (INPUT,))
layout.how_to_read(
    "Each picture is one layer: convolutions summed over channels, other layers with their units in rows. "
    + ("Top: first explanation; bottom: second. " if second else "")
    + "The numbers are sums over the layer."
)
title, expected, expected_label = conserved(view, score, first)
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
        scheme=scheme,
        dark=dark,
    ),
    alt=title,
    read="Each bar is one layer. Height: its summed relevance for (plain) and against (hatched) the score; the diamond "
    f"is their sum. {first.method.label} sums to {first.method.sums_to}."
    + ("" if is_image else " Parallel layers, such as the three convolutions, share the sum."),
    depends=(position, first.label, second and second.label, tuple(asked.settings.items()), scheme),
)

st.header("Choose another test", anchor=False)
layout.gallery(view, order, OFFERED, results.heatmaps(view, order[:OFFERED], None) if len(order) else None)
layout.how_to_read(
    "Each test is shown with its relevance for (red) and against (blue) the predicted class, by the epsilon rule. "
    "Every heatmap has its own colour range."
    if is_image
    else f"{units.capitalize()} with strong relevance for the prediction are bold on red, against it italic on blue."
)


def draw_side(shown: View, chosen: Selection, key: str) -> None:
    """Show one test of a setup with its heatmap for the predicted class."""
    place = shown.place(chosen)
    if place is None:
        place = position if shown is view else int(shown.chosen[0])
    try:
        predicted = int(scores(shown, place).argmax())
        label = METHODS[asked.method].label
        side = Display(
            shown, place, [explain(shown, place, asked.method, predicted, asked.settings, label)], "picture", scheme
        )
    except IdcError as error:
        st.error(literal(error))
        return
    if shown.test.inputs.ndim == 4:
        image, _, heatmap = side.pictures(0)
        relevance_view.draw_pictures([image, heatmap], key=f"heatmaps-{key}")
    else:
        relevance_view.draw_words(side, read_tokens(shown.test, place))


pins.beside(view, draw_side)

given = ", ".join(f"{one.label.lower()} {first.settings[one.name]}" for one in first.method.parameters)
layout.computed(
    view,
    f"These heatmaps use {first.method.label} ({first.method.citation}{'; ' + given if given else ''}), starting at "
    "the score before the softmax. One backward pass of relevance propagation explains all layers; other methods need "
    "one pass per layer. The importance of neurons on the other pages always uses the method below.",
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
