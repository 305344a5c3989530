"""Relevance: one test's heatmaps for any class and method, layer by layer, methods compared, and all tests."""

import streamlit as st

from studio.jobs import results
from studio.jobs.wording import input_parts, is_series
from studio.relevance import compared_methods, edited_input, layer_by_layer, one_test
from studio.relevance.choices import WAYS, choose_test
from studio.relevance.findings import opening
from studio.shell import pins, tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.text import plural
from studio.widgets import layout

PAGE = PageEntry(
    "Relevance",
    ":material/visibility:",
    "Which part of the input decided?",
    "Heatmaps of one test for any class and method, and relevance layer by layer.",
    place=50,
    tabs={
        "test": "One test",
        "layers": "Layer by layer",
        "methods": "Compare methods",
        "edit": "Change it",
        "tests": "All tests",
    },
    controls={"methods": "methods"},
)

SHOWN = 20

view = current_view()
finding = st.container()
position, way, order = choose_test(view)
finding.markdown(f"**{opening(view, position)}.**")


def draw_test() -> None:
    """Show one test with its heatmaps."""
    explained = one_test.explain_as_asked(view, position, "at", "scale", "colours", "overlay")
    one_test.draw(explained)
    pins.beside(view, lambda shown, chosen, key: one_test.draw_side(explained, shown, chosen, key))
    say_computed(explained)


def draw_layers() -> None:
    """Show relevance layer by layer."""
    explained = one_test.explain_as_asked(view, position, "scale", "colours")
    layer_by_layer.draw(explained)
    say_computed(explained)


def say_computed(one: one_test.Explained) -> None:
    """Say how the explanations were computed."""
    first = one.explanations[0]
    start = "the score before the softmax" if first.neuron is None else "the activation of the neuron"
    given = "".join(f"; {each.label.lower()} {first.settings[each.name]}" for each in first.method.parameters)
    layout.computed(
        view,
        f"These heatmaps use {first.method.label} ({first.method.citation}{given}), starting at {start}. "
        "One backward pass of relevance propagation explains all layers; other methods need one pass per layer. The "
        "importance of neurons on the other pages always uses the method below.",
    )


def draw_methods() -> None:
    """Show what several methods say of the test."""
    compared_methods.draw(view, position)
    layout.computed(
        view, "Every method runs with its default parameters. Methods are compared by Spearman's rank correlation."
    )


def draw_edit() -> None:
    """Let the test be changed, and show what follows."""
    edited_input.draw(view, position)
    layout.computed(
        view, "The changed test runs through the network as tests do; relevance is that of the class predicted now."
    )


def draw_tests() -> None:
    """Show the tests to step through, each with its heatmap."""
    st.markdown(f"**{WAYS[way].capitalize()}: {len(order):,} of {plural(len(view.chosen), 'test')}.**")
    layout.gallery(view, order, SHOWN, results.heatmaps(view, order[:SHOWN], None) if len(order) else None)
    layout.how_to_read(
        "Each test is shown with its relevance for (red) and against (blue) the predicted class, by the epsilon rule. "
        "Every heatmap has its own colour range."
        if view.test.inputs.ndim == 4
        else "Lines are the channels; the ground is each step's relevance for (red) and against (blue) the prediction."
        if is_series(view.test)
        else f"{input_parts(view.test).capitalize()} with strong relevance for the prediction are bold on red, against "
        "it italic on blue."
    )
    layout.computed(view)


tabs.draw(
    "relevance",
    {"test": draw_test, "layers": draw_layers, "methods": draw_methods, "edit": draw_edit, "tests": draw_tests},
)
