"""Clusters: the clusters of each important neuron, other ways to cluster, and the tests in two dimensions."""

from functools import partial

import streamlit as st

from studio.clusters import cluster_choices, histograms, projected_tests
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry

PAGE = PageEntry(
    "Clusters",
    ":material/bar_chart:",
    "What clusters does each important neuron have?",
    "One histogram per neuron with its clusters, the choice of their number, and example inputs.",
    place=50,
    tabs={
        "histograms": "Histograms",
        "number": "Number of clusters",
        "cells": "Effect on cells",
        "map": "Map of the tests",
    },
    controls={"neuron-heatmaps": "histograms", "other-ways": "cells", "plane": "map", "plane-colour": "map"},
)

_view = current_view()
st.markdown(histograms.sentence(_view))
tabs.draw(
    "clusters",
    {
        "histograms": partial(histograms.draw, _view),
        "number": partial(histograms.draw_number, _view),
        "cells": partial(cluster_choices.draw, _view),
        "map": partial(projected_tests.draw, _view),
    },
)
