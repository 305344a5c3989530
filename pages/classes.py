"""Class errors: which classes the network seems to confuse, and between which it seems biased, without labels."""

from __future__ import annotations

from functools import partial

import streamlit as st

from idc_core.errors import CancelledError, IdcError
from studio.classes import class_bias, class_errors, class_pair, retraining, suspected_pairs
from studio.classes.class_errors import Settings
from studio.shell import pins
from studio.shell.frame import current_view
from studio.text import literal
from studio.widgets import layout

SOURCE = (
    "Y. Tian, Z. Zhong, V. Ordonez, G. Kaiser, B. Ray, Testing DNN Image Classifiers for Confusion & Bias Errors, ICSE "
    "2020 (DeepInspect)"
)

view = current_view()
finding = st.empty()
with st.expander("Custom predictions, and groups of classes"):
    left, right = st.columns([3, 2], gap="large")
    with left:
        try:
            own = class_errors.choose_own()
        except CancelledError:
            st.stop()
        except IdcError as error:
            st.warning(literal(error))
            own = None
    with right:
        groups = class_errors.choose_groups()
if own is None and not view.is_classifier:
    finding.markdown("**This network predicts a number: it has no classes to confuse.**")
    st.caption("Choose a classifier in the sidebar, or load predictions of one above.")
    st.stop()
layers = class_errors.choose_layers(view) if own is None else ()
numbers = class_errors.choose_numbers(own is not None and own.several_labels)
settings = Settings(layers=layers, groups=groups, **numbers)
try:
    looked = class_errors.look(view, settings, own)
except CancelledError:
    st.stop()
except IdcError as error:
    st.warning(literal(error))
    st.stop()
if own is not None:
    st.info("These are your own predictions, not those of the setup's network.")
if looked.found.unseen:
    st.caption(f"No input is predicted as {class_errors.named(looked.found.unseen)}: not analysed.")
finding.markdown(suspected_pairs.sentence(looked))
place = st.container()
st.header("The most suspected pairs", anchor=False)
suspected_pairs.draw_pairs(looked)
pair = class_errors.choose_pair(looked)
with place:
    suspected_pairs.draw_map(looked, view, "distances", pair)

st.header(f"{looked.pair_name(pair)} in detail", anchor=False)
class_pair.draw_inputs(view, looked, pair)
st.subheader("Neurons that both activate", anchor=False)
neuron_table = class_pair.draw_neurons(view, looked, pair)
class_pair.draw_cells(view, looked, pair)
st.subheader("Inputs of the two classes", anchor=False)
class_pair.draw_plane(view, looked, pair)

st.header("Bias towards third classes", anchor=False)
third_table = class_bias.draw_pair(view, looked, pair, settings.filtered)
st.subheader("Triplets with the largest bias", anchor=False)
triplet_table = class_bias.draw_triplets(view, looked, settings.filtered)

st.header("How much does it save to inspect suspected pairs first?", anchor=False)
suspected_pairs.draw_effectiveness(looked, view)

if own is None:
    retraining.draw(view, looked)
    draw, compare = suspected_pairs.draw_side, suspected_pairs.compare
    pins.beside(view, partial(draw, settings, view), partial(compare, settings, view))

layout.computed(
    view,
    "Every input passes through the network once. A layer's output before its activation function is scaled to 0..1 "
    "per input and layer. A neuron is active where the mean of its scaled output is above "
    f"{settings.threshold:g}. Each class has a vector: per neuron, the share of the inputs *predicted* as the class "
    "that activate it. The distance of two classes is that of their vectors (equation 2 of the paper). Small distances "
    "are suspected of confusion.",
    "The bias of a third class towards one of a pair is the difference of its two distances divided by their sum "
    "(equation 3). The average bias of a pair is the mean over all third classes (equation 4). Labels enter no "
    "distance and no bias, only what these are compared with. Confusion: share of inputs of one class predicted as the "
    "other, mean of both directions. Disparity: mean difference of two classes' confusion with third classes.",
    f"Source: {SOURCE}. The published program departs from its paper in its bias, which uses labels; its form is in "
    "the engine as an option, for reproducing the published tables.",
)
tables = {"shared-neurons": neuron_table}
for name, table in (("third-classes", third_table), ("triplets", triplet_table)):
    if table is not None:
        tables[name] = table
every = partial(suspected_pairs.all_pairs, looked)
layout.take_away(tables, {"All pairs (CSV)": ("idc-class-pairs.csv", "text/csv", every)})
