"""Important neurons: what the network looks at, which neurons decide, and whether relevance follows activation."""

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import IdcError
from idc_core.figures import neurons as figures
from idc_core.figures.overview import shares
from pages.common import layout
from pages.common.frame import frame, open_bench
from pages.common.results import PICKS, class_importance, heatmaps, pick, picks
from pages.common.text import percent, plural

SHOWN = 10
PREDICTED = "the predicted class"

view = open_bench(frame("neurons"))
analysis = view.analysis
first = int(analysis.important[0])
alone, together = shares(analysis.importance, analysis.important)
st.markdown(
    f"**Neuron {first} carries {percent(alone)} of the positive relevance of layer {analysis.layer}; "
    f"the {plural(analysis.m, 'chosen neuron')} of {len(analysis.importance)} carry {percent(together)}.**"
)

st.header("What the network looks at", anchor=False)
target = None
with st.container(horizontal=True, vertical_alignment="bottom"):
    offered = picks(view)
    how = st.segmented_control(
        "Tests",
        offered,
        default=offered[0],
        required=True,
        format_func=PICKS.get,
        key="tests",
        bind="query-params",
    )
    if view.is_classifier:
        explained = st.selectbox(
            "Explain the score of",
            [PREDICTED, *view.train.class_names],
            key="explain",
            bind="query-params",
            width=240,
        )
        target = None if explained == PREDICTED else view.train.class_names.index(explained)
positions = pick(view, how or offered[0], SHOWN)
try:
    layout.gallery(view, positions, SHOWN, heatmaps(view, positions[:SHOWN], target))
except IdcError as error:
    st.error(str(error))
layout.take_inputs(view, positions[:SHOWN])
layout.how_to_read(
    "beside every input is its relevance: red parts speak for the explained answer, blue parts against it, "
    "white ones do not matter. Every heatmap has its own scale."
    if view.test.inputs.ndim == 4
    else "words that speak strongly for the explained class are bold on red, words against it italic on blue; "
    "dots stand for words that the network does not know."
)

st.header("Which neurons decide", anchor=False)
ranking = np.argsort(-analysis.importance, kind="stable")
per_class = class_importance(view)
read = (
    "a bar is a neuron's relevance summed over all training inputs; hatched bars are the chosen neurons. "
    "A neuron of a convolution is a channel."
)
if len(ranking) > figures.MOST_BARS:
    read += f" The first {figures.MOST_BARS} of {len(ranking)} neurons are drawn."
if per_class is not None:
    read += " Diamonds are the part that the training inputs of the chosen classes contribute."
layout.chart(
    view,
    "ranking",
    lambda dark: figures.ranking(
        analysis.importance,
        analysis.important,
        f"Neuron {first} of layer {analysis.layer} decides most, with {percent(alone)} of the positive relevance",
        per_class=per_class,
        class_label=view.class_label,
        dark=dark,
    ),
    alt=f"Neurons of layer {analysis.layer} ranked by relevance, neuron {first} highest",
    read=read,
)

st.header("Does relevance follow activation?", anchor=False)
activations = analysis.test_activations[view.chosen]
relevance = analysis.test_relevance[view.chosen]
r = figures.correlations(activations, relevance)
known = r[np.isfinite(r)]
title = (
    f"Relevance follows activation with a correlation of {known.min():.2f} to {known.max():.2f}"
    if len(known)
    else "These neurons never change over these tests"
)
labels = [
    f"{name}, r = {value:.2f}" if np.isfinite(value) else name for name, value in zip(view.neurons, r, strict=True)
]
read = (
    "a mark is a test. A neuron that is active without relevance does not decide; "
    "one with negative relevance speaks against the answer that the network gave."
)
if len(view.chosen) > figures.MOST_POINTS:
    read += f" {figures.MOST_POINTS} tests are drawn"
    read += "." if view.correct is None else ", up to half of them misclassified."
layout.chart(
    view,
    "activation-relevance",
    lambda dark: figures.activation_relevance(
        activations,
        relevance,
        None if view.correct is None else view.correct[view.chosen],
        labels,
        title,
        dark=dark,
    ),
    alt=title,
    read=read,
)

layout.computed(
    view,
    "Relevance starts from the score of the predicted class before the softmax and is passed back layer by "
    "layer; a neuron's importance is its relevance summed over all training inputs, and the m neurons with the "
    "largest sums are the important ones (Algorithm 1 of the paper).",
)
table = pd.DataFrame(
    {
        "neuron": ranking,
        "summed_relevance": analysis.importance[ranking],
        "chosen": np.isin(ranking, analysis.important),
    }
)
if per_class is not None:
    table["summed_relevance_of_chosen_classes"] = per_class[ranking]
layout.take_away({"neuron-ranking": table})
