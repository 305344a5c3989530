"""Class errors: which classes the network seems to confuse, and between which it seems biased, without labels."""

from __future__ import annotations

from functools import partial

import streamlit as st

from idc_core.errors import CancelledError, IdcError
from idc_core.runs import ErrorSettings
from studio.classes import class_bias, class_errors, class_pair, controls, effectiveness, retraining, suspected_pairs
from studio.classes.class_errors import Looked
from studio.shell import pins, tabs
from studio.shell.frame import current_view
from studio.shell.needs import classes
from studio.shell.pages import PageEntry, stop_if_unmet
from studio.text import literal
from studio.widgets import layout

PAGE = PageEntry(
    "Class errors",
    ":material/balance:",
    "Which classes does it confuse, and for whom is it unfair?",
    "Pairs of classes with similar activations, compared with the labels; bias, your own predictions, groups.",
    place=150,
    tabs={"pairs": "Pairs", "pair": "One pair", "bias": "Bias", "cost": "Cost-effectiveness", "remedy": "Remedy"},
    controls={"pair-shown": "pair", "third": "bias"},
    needs=(
        classes(
            "This network predicts a number: it has no classes to confuse.",
            "coverage",
            "Choose a classifier in the sidebar, or load predictions of one above.",
        ),
    ),
    selects=("pair",),
    opens=("class-errors",),
)

SOURCE = (
    "Source: Y. Tian, Z. Zhong, V. Ordonez, G. Kaiser, B. Ray, Testing DNN Image Classifiers for Confusion & Bias "
    "Errors, ICSE 2020 (DeepInspect)."
)

view = current_view()
finding = st.empty()


def look() -> tuple[Looked, ErrorSettings]:
    """Draw what all tabs depend on; return what the tests, or a person's own predictions, show with it."""
    row = st.container(horizontal=True)
    with row.popover("Custom predictions, and groups of classes", key="own"):
        groups = controls.choose_own()
    try:
        own = class_errors.read_own()
    except IdcError as error:
        st.warning(literal(error))
        own = None
    if own is None:
        stop_if_unmet("classes", view.setup, finding)
    with row:
        settings = controls.choose_settings(view, own, groups)
    return class_errors.look(view, settings, own), settings


try:
    looked, settings = look()
except CancelledError:
    st.stop()
except IdcError as error:
    st.warning(literal(error))
    st.stop()
finding.markdown(suspected_pairs.sentence(looked))
if looked.positions is None:
    st.info("These are your own predictions, not those of the setup's network.")
if looked.found.unseen:
    st.caption(f"No input is predicted as {class_errors.named(looked.found.unseen)}: not analysed.")
pair = class_errors.current_pair(looked)


def draw_pairs() -> None:
    """Show the distances of all pairs, the ranked pairs, and the confused tests of the selected one."""
    table = suspected_pairs.pair_table(looked, suspected_pairs.MOST_PAIRS)
    suspected_pairs.draw_map(looked, view, "distances", pair, table)
    class_pair.draw_confused(view, looked, pair)
    st.button("Open this pair", key="open-pair", on_click=tabs.open_at, args=("classes", "pair"))
    st.header("The most suspected pairs", anchor=False)
    suspected_pairs.draw_pairs(looked, table)
    if looked.positions is not None:
        draw, compare = suspected_pairs.draw_side, suspected_pairs.compare
        pins.beside(view, partial(draw, settings, view), partial(compare, settings, view))
    layout.computed(
        view,
        "Every input passes through the network once. A layer's output before its activation function is scaled to "
        "0..1 per input and layer. A neuron is active where the mean of its scaled output is above "
        f"{settings.threshold:g}. Each class has a vector: per neuron, the share of the inputs *predicted* as the "
        "class that activate it. The distance of two classes is that of their vectors (equation 2 of the paper). Pairs "
        f"closer than the mean \u2212 {settings.deviations:g} SD are reported.",
        "Labels enter no distance, only the verdicts. Confusion: share of inputs of one class predicted as the other, "
        "mean of both directions. Its 95 % interval joins Wilson's intervals of the two directions (Zou, Huang and "
        "Zhang, 2009). The cut-off is the paper's; the interval is not part of it.",
        SOURCE,
    )


def draw_pair() -> None:
    """Show the selected pair: its inputs and both classes in the plane, or its neurons and cells."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = controls.choose_pair(looked)
        shown = controls.choose_shown()
    if shown == "inputs":
        class_pair.draw_confused(view, looked, chosen)
        layout.take_inputs(view, class_pair.wrong_tests(looked, chosen), key="pair-inputs")
        class_pair.draw_between(view, looked, chosen)
        class_pair.draw_plane(view, looked, chosen)
        return
    st.subheader("Neurons that both activate", anchor=False)
    neurons = class_pair.draw_neurons(view, looked, chosen)
    class_pair.draw_cells(view, looked, chosen)
    layout.computed(
        view,
        "Neurons are sorted by how much more the two classes activate them than the others do. Relevance: sum over "
        f"positions, mean over the tests classified as the class, for the setup's layer {view.setup.layer}.",
        SOURCE,
    )
    layout.take_away({"shared-neurons": neurons})


def draw_bias() -> None:
    """Show towards which of the two classes third ones are biased, and the largest biases of all."""
    if sentence := class_bias.sentence(looked):
        st.markdown(sentence)
    class_bias.draw_pair(view, looked, controls.choose_pair(looked), settings.filtered)
    st.subheader("Triplets with the largest bias", anchor=False)
    triplets = class_bias.draw_triplets(view, looked, settings.filtered)
    layout.computed(
        view,
        "The bias of a third class towards one of a pair is the difference of its two distances divided by their sum "
        "(equation 3). The average bias of a pair is the mean over all third classes (equation 4). Labels enter no "
        "bias, only the verdicts. Disparity: mean difference of two classes' confusion with third classes; labels "
        f"confirm a pair above the mean of all pairs + {settings.deviations:g} SD. \u00b1: 1.96 standard deviations "
        "over 400 test sets of the same sizes, drawn from the observed shares.",
        f"{SOURCE} The published program departs from its paper in its bias, which uses labels; its form is in the "
        "engine as an option, for reproducing the published tables.",
    )
    if triplets is not None:
        layout.take_away({"triplets": triplets})


def draw_cost() -> None:
    """Show what inspecting the most suspected pairs first saves."""
    effectiveness.draw(looked, view)
    layout.computed(
        view,
        f"Reported are pairs {settings.deviations:g} SD below the mean distance, or above the mean bias. True are "
        "pairs whose confusion, or disparity, is as far above the mean of all pairs.",
        SOURCE,
    )


def draw_remedy() -> None:
    """Offer the confused tests as a test set, and retrain with them."""
    retraining.draw(view, looked)
    layout.computed(view, "A copy is trained further on the training inputs and the added ones, with the same seed.")


tabs.draw(
    "classes", {"pairs": draw_pairs, "pair": draw_pair, "bias": draw_bias, "cost": draw_cost, "remedy": draw_remedy}
)
