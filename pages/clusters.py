"""Clusters: the states of each important neuron."""

import pandas as pd
import streamlit as st

from idc_core.coverage.table import state_counts, typical
from idc_core.figures import clusters as figures
from idc_core.figures.overview import rarest_state
from pages.common import layout
from pages.common.frame import frame, open_bench
from pages.common.selection import select, selected
from pages.common.text import count, plural, state

SHOWN = 20

view = open_bench(frame("clusters"))
analysis = view.analysis
sizes, names = view.sizes, view.neurons
assignments = analysis.assignments[view.chosen]
fewest, most = min(sizes), max(sizes)
states = f"{fewest}" if fewest == most else f"{fewest} to {most}"
rank, cluster, rare = rarest_state(assignments, sizes)
subject = "important neuron has" if analysis.m == 1 else f"{analysis.m} important neurons have"
st.markdown(
    f"**The {subject} {states} states each, {count(analysis.total)} combinations in all.** "
    f"The state that the tests reach least often is the {state(cluster, sizes[rank])} of {names[rank]}: "
    f"{plural(rare, 'test')} of {len(view.chosen):,}."
)

st.header("The states of each neuron", anchor=False)
layout.chart(
    view,
    "histograms",
    lambda dark: figures.histograms(
        analysis.clusters,
        analysis.train_activations,
        analysis.test_activations[view.chosen],
        [f"{name}, {plural(found.k, 'cluster')}" for name, found in zip(names, analysis.clusters, strict=True)],
        f"The activations of the important neurons fall into {states} clusters each",
        dark=dark,
    ),
    alt=f"Histograms of the activations of {layout.names(names)} with their clusters",
    read="bars show how often an activation occurs among the training inputs, on a logarithmic scale, the "
    "outline how often among the tests; solid lines are centroids, dotted lines the boundaries between clusters.",
)

st.header("Inputs that stand for a cluster", anchor=False)
with st.container(horizontal=True):
    present = selected()
    st.session_state["shown-neuron"] = f"neuron {present.neuron}" if f"neuron {present.neuron}" in names else names[0]
    neuron = st.selectbox(
        "Neuron", names, key="shown-neuron", width=220,
        on_change=lambda: select(neuron=st.session_state["shown-neuron"].removeprefix("neuron ")),
    )  # fmt: skip
    index = names.index(neuron)
    centroids = analysis.centroids[index]
    labels = [f"{c} ({state(c, sizes[index])}, around {value:.3g})" for c, value in enumerate(centroids)]
    known = present.cluster is not None and present.cluster < len(labels)
    st.session_state["shown-cluster"] = labels[present.cluster if known else 0]
    label = st.selectbox(
        "Cluster", labels, key="shown-cluster", width=320,
        on_change=lambda: select(
            neuron=int(analysis.important[index]), cluster=labels.index(st.session_state["shown-cluster"])
        ),
    )  # fmt: skip
    chosen = labels.index(label)
values = analysis.test_activations[view.chosen, index]
examples = view.chosen[typical(values, assignments[:, index], chosen, float(centroids[chosen]), len(values))]
learnt = int(analysis.clusters[index].counts[chosen])
st.markdown(
    f"{plural(len(examples), 'test')} and {plural(learnt, 'training input')} have {neuron} in its "
    f"{state(chosen, sizes[index])}. The tests closest to the centroid come first."
)
layout.gallery(view, examples, SHOWN)
layout.take_inputs(view, examples)

st.header("How the number of clusters was chosen", anchor=False)
scored = {
    name: max(found.silhouettes.values())
    for name, found in zip(names, analysis.clusters, strict=True)
    if found.silhouettes
}
if scored:
    clearest = max(scored, key=lambda name: scored[name])
    title = f"The clusters of {clearest} are the clearest, with a silhouette of {scored[clearest]:.2f}"
    layout.chart(
        view,
        "silhouettes",
        lambda dark: figures.silhouettes(analysis.clusters, names, title, dark=dark),
        alt=title,
        read="a silhouette near 1 means tight clusters far apart, near 0 clusters that touch; "
        "the star is the number that was chosen.",
    )
else:
    st.caption("No number of clusters could be compared: each neuron has too few different activations.")

layout.computed(
    view,
    "Each neuron's activations over the training inputs are split by one-dimensional k-means, solved exactly, "
    "for k = 2, 3 and 4; the k with the largest mean silhouette is kept (Algorithm 2 of the paper). "
    "An activation belongs to the nearest centroid, of two equally near ones to the lower.",
)
tests = state_counts(assignments, sizes)
table = pd.DataFrame(
    [
        {
            "neuron": int(analysis.important[i]),
            "cluster": c,
            "centroid": float(centroid),
            "from": float(found.boundaries[c - 1]) if c else float("-inf"),
            "to": float(found.boundaries[c]) if c < found.k - 1 else float("inf"),
            "training_inputs": int(found.counts[c]),
            "tests": int(tests[i][c]),
            "silhouette": found.silhouettes.get(found.k, float("nan")),
        }
        for i, found in enumerate(analysis.clusters)
        for c, centroid in enumerate(analysis.centroids[i])
    ]
)
layout.take_away({"clusters": table})
