"""Clusters: the clusters of each important neuron, other ways to cluster, and the tests in two dimensions."""

import streamlit as st

from idc_core.clustering.methods import CLUSTERINGS
from studio.clusters import cluster_choices, histograms, projected_tests
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.shell.pins import beside
from studio.state.selection import selected
from studio.widgets import layout

PAGE = PageEntry(
    "Clusters",
    ":material/bar_chart:",
    "What clusters does each important neuron have?",
    "One histogram per neuron with its clusters, the choice of their number, and example inputs.",
    place=70,
    tabs={
        "histograms": "Histograms",
        "number": "Number of clusters",
        "cells": "Effect on cells",
        "map": "Map of the tests",
    },
    controls={"neuron-heatmaps": "histograms", "other-ways": "cells", "plane": "map", "plane-colour": "map"},
)

view = current_view()
st.markdown(histograms.sentence(view))


def draw_histograms() -> None:
    """Show one histogram per neuron, and the tests in each cluster of the chosen one."""
    histograms.controls(view)
    histograms.histograms(
        view,
        selected(),
        f"The activations of the important {'neuron' if view.analysis.m == 1 else 'neurons'} form "
        f"{histograms.numbers(view)}",
        "histograms",
        list(range(view.analysis.m)),
        clickable=True,
    )
    st.header("The tests in each cluster", anchor=False)
    rank = histograms.choose_neuron(view)
    histograms.galleries(view, rank)
    beside(view, histograms.draw_side)
    entry = CLUSTERINGS[view.setup.options["clustering"]]
    layout.computed(
        view,
        f"Each neuron's activations over the training inputs are clustered. {entry.label}: {entry.help} "
        "k-means is solved exactly and deterministically. Boundaries lie half way between neighbouring centroids, for "
        "other methods in the middle of the gap between clusters. A value on a boundary belongs to the lower cluster.",
        "A value is in a dense region (DBSCAN) if at least as many values lie within 1.06 s n^(\u22121/5) of it as for "
        "evenly spread values, where n is the number of values and s their standard deviation.",
    )


def draw_number() -> None:
    """Show how good every number of clusters is."""
    histograms.controls(view)
    histograms.draw_silhouettes(view)
    layout.computed(
        view,
        "Automatic keeps the number of clusters (2, 3 or 4) with the largest mean silhouette (Algorithm 2 of the "
        "paper). DBSCAN finds the number itself.",
    )


def draw_cells() -> None:
    """Show how many cells every choice makes, and how many of them the tests cover."""
    cluster_choices.draw_choices(view)
    layout.computed(view, "Every choice clusters the training activations anew and counts the cells that tests reach.")


def draw_map() -> None:
    """Show the tests in two dimensions."""
    projected_tests.draw_plane(view, histograms.rank_of(view, selected()) or 0)
    layout.computed(
        view,
        "Principal components are computed from the important neurons' activations on the chosen tests, unscaled. "
        "UMAP (umap-learn, 15 neighbours, minimal distance 0.1, seed 0) uses the same values.",
    )


tabs.draw("clusters", {"histograms": draw_histograms, "number": draw_number, "cells": draw_cells, "map": draw_map})
