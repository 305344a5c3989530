"""Clusters: the states of each important neuron, what other choices would make, and the tests on a plane."""

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.analysis.overview import rarest_state
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.coverage.cell_table import state_counts
from idc_core.figures import clusters as figures
from studio.clusters import cluster_choices, histograms, projected_tests
from studio.engine.results import View
from studio.shell.frame import current_view
from studio.shell.pins import beside
from studio.shell.selection import Selection, selected
from studio.widgets import layout
from studio.widgets.text import plural, state

view = current_view()
analysis, sizes, names = view.analysis, view.sizes, view.neurons


def numbers(noun: str) -> str:
    """Say how many clusters the neurons have."""
    fewest, most = min(sizes), max(sizes)
    text = plural(most, noun) if fewest == most else f"{fewest} to {plural(most, noun)}"
    return text if analysis.m == 1 else f"{text} each"


def sentence() -> str:
    """Put the finding into words."""
    rank, cluster, rare = rarest_state(analysis.assignments[view.chosen], sizes)
    subject = "important neuron has" if analysis.m == 1 else f"{analysis.m} important neurons have"
    return (
        f"**The {subject} {numbers('state')}, {plural(analysis.total, 'combination')} in all.** "
        f"The state that the tests reach least often is the {state(cluster, sizes[rank])} of {names[rank]}: "
        f"{plural(rare, 'test')} of {len(view.chosen):,}."
    )


def draw_silhouettes() -> None:
    """Show how good every number of clusters would be."""
    scored = {
        name: max(found.silhouettes.values())
        for name, found in zip(names, analysis.clusters, strict=True)
        if found.silhouettes
    }
    if not scored:
        st.caption("No number of clusters could be compared: each neuron is in one state, or its number is given.")
        return
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


def draw_side(side: View, chosen: Selection, key: str) -> None:
    """Show one neuron of one of two benches: the selected one where it is important there, else the first."""
    rank = histograms.rank_of(side, chosen) or 0
    title = f"{side.neurons[rank].capitalize()} is in one of {plural(side.sizes[rank], 'state')}"
    histograms.histograms(side, chosen, title, f"histogram-{key}", [rank], clickable=False)


def cluster_table() -> pd.DataFrame:
    """List every cluster of every important neuron."""
    tests = state_counts(analysis.assignments[view.chosen], sizes)
    return pd.DataFrame(
        [
            {
                "neuron": int(analysis.important[i]),
                "cluster": c,
                "centroid": float(centroid),
                "from": float(found.boundaries[c - 1]) if c else -np.inf,
                "to": float(found.boundaries[c]) if c < found.k - 1 else np.inf,
                "training_inputs": int(found.counts[c]),
                "tests": int(tests[i][c]),
                "silhouette": found.silhouettes.get(found.k, np.nan),
            }
            for i, found in enumerate(analysis.clusters)
            for c, centroid in enumerate(analysis.centroids[i])
        ]
    )


st.markdown(sentence())

st.header("The states of each neuron", anchor=False)
histograms.controls(view)
histograms.histograms(
    view,
    selected(),
    f"The activations of the important {'neuron' if analysis.m == 1 else 'neurons'} fall into {numbers('cluster')}",
    "histograms",
    list(range(analysis.m)),
    clickable=True,
)

st.header("The tests in each state", anchor=False)
rank = histograms.choose_neuron(view)
histograms.galleries(view, rank)

st.header("How good each number of clusters is", anchor=False)
draw_silhouettes()

st.header("What each choice does to the number of cells", anchor=False)
table_of_choices = cluster_choices.draw_choices(view)

st.header("The tests on a plane", anchor=False)
places = projected_tests.draw_plane(view, rank)

beside(view, draw_side)
entry = CLUSTERINGS[view.bench.clustering]
layout.computed(
    view,
    f"Each neuron's activations over the training inputs are split into clusters. {entry.label}: {entry.help} "
    "Of 2, 3 and 4 clusters the number with the largest mean silhouette is kept (Algorithm 2 of the paper) unless it "
    "is chosen by hand; DBSCAN finds it by itself: a place is crowded where at least as many values "
    "lie within 1.06 s n^(\u22121/5) of it, for n values with standard deviation s, as if all were spread evenly with "
    "the same deviation.",
    "k-means is solved exactly, nothing is random. Boundaries lie half way between neighbouring centroids; "
    "where another way parts the activations elsewhere, in the middle of the gap between the clusters. "
    "A value on a boundary belongs to the lower cluster.",
    "Principal components are of the important neurons' activations on the chosen tests, in their own unit. "
    "UMAP (umap-learn, 15 neighbours, minimal distance 0.1, seed 0) sees the same values.",
)
layout.take_away({"clusters": cluster_table(), "choices-of-clusters": table_of_choices, "places": places})
