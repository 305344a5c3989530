"""The states of the important neurons: how they are found, their histograms, and the tests in each."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from idc_core.clustering.methods import CLUSTERINGS
from idc_core.coverage.cell_table import typical
from idc_core.figures import clusters as figures
from studio.engine.results import View
from studio.shell.bench import CLUSTER_COUNTS, DEFAULT, ZEROS
from studio.shell.pages import PAGES
from studio.shell.selection import Selection, select, selected
from studio.widgets import layout
from studio.widgets.text import plural, state

SHOWN, FEW = 20, 6
"""Tests shown of the selected cluster, and of the others."""

SHOWN_TEXTS, FEW_TEXTS = 6, 2
"""The same for texts, which take more room."""

MOST_STATES = 8
"""Clusters of a neuron whose tests are shown."""


def controls(view: View) -> None:
    """Choose how the clusters are found; all pages follow."""
    bench = view.bench
    entry = CLUSTERINGS[bench.clustering]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, value in (("k", bench.k), ("zeros", bench.zeros), ("clustering", bench.clustering)):
            st.session_state[name] = value
        st.selectbox(
            "Number of clusters k",
            CLUSTER_COUNTS,
            key="k",
            on_change=_take,
            args=("k",),
            width=190,
            format_func=lambda k: "automatic" if k == DEFAULT.k else k,
            disabled=not entry.takes_k,
            help="How many clusters a neuron has: automatic takes 2, 3 or 4, whichever has the best silhouette; by "
            "hand 2 to 8 for all neurons. Default automatic.",
        )
        st.selectbox(
            "Activations of zero",
            ZEROS,
            key="zeros",
            on_change=_take,
            args=("zeros",),
            width=190,
            help="Whether activations of exactly zero take part in the clustering, kept or dropped; many neurons are "
            "zero for most inputs. Default kept.",
        )
        st.selectbox(
            "Way to cluster",
            list(CLUSTERINGS),
            key="clustering",
            on_change=_take,
            args=("clustering",),
            width=220,
            format_func=lambda name: CLUSTERINGS[name].label,
            help="How activations are split: "
            + " ".join(f"{one.label}: {one.help}" for one in CLUSTERINGS.values())
            + " Default k-means.",
        )
    st.caption(f"{entry.label}: {entry.help} What is chosen here holds on all pages.")


def _take(name: str) -> None:
    """Keep what was chosen."""
    select(**{name: st.session_state[name]})


def told(points: list[dict[str, Any]]) -> None:
    """Select the neuron and the cluster that were clicked; outlines and stars carry none."""
    for point in points:
        if (carried := point.get("customdata")) is not None and np.size(carried) == 2:
            neuron, cluster = (int(one) for one in np.ravel(carried))
            select(neuron=neuron, cluster=cluster)
            return


def rank_of(view: View, chosen: Selection) -> int | None:
    """Return which of the important neurons is selected; None where none of them is."""
    places = np.flatnonzero(view.analysis.important == chosen.neuron)
    return int(places[0]) if len(places) else None


def cluster_of(view: View, chosen: Selection) -> tuple[int, int] | None:
    """Return rank and cluster that are selected; None where there is no such cluster."""
    rank = rank_of(view, chosen)
    if rank is None or chosen.cluster is None or chosen.cluster >= view.sizes[rank]:
        return None
    return rank, chosen.cluster


def histograms(view: View, chosen: Selection, title: str, key: str, ranks: list[int], *, clickable: bool) -> None:
    """Draw the histograms of some important neurons, with what is selected in them."""
    analysis, place, picked = view.analysis, view.place(chosen), cluster_of(view, chosen)
    shaded = (ranks.index(picked[0]), picked[1]) if picked is not None and picked[0] in ranks else None
    names = [view.neurons[rank] for rank in ranks]
    read = (
        "bars show how often an activation occurs among the training inputs, on a logarithmic scale, the outline how "
        "often among the tests; solid lines under a diamond are centroids, dotted lines boundaries between clusters."
    )
    if clickable:
        read += " Click a bar or a diamond to see the tests in its cluster."
    if place is not None:
        read += f" The star is test {chosen.input}."
    layout.chart(
        view,
        key,
        lambda dark: figures.histograms(
            [analysis.clusters[rank] for rank in ranks],
            analysis.train_activations[:, ranks],
            analysis.test_activations[view.chosen][:, ranks],
            [f"{name}, {plural(view.sizes[rank], 'cluster')}" for name, rank in zip(names, ranks, strict=True)],
            title,
            numbers=analysis.important[ranks].tolist(),
            selected=shaded,
            marked=None if place is None else analysis.test_activations[place, ranks],
            dark=dark,
        ),
        alt=f"{title}. Histograms of the activations of {layout.names(names)} with their clusters",
        read=read,
        depends=(shaded, place, tuple(ranks)),
        clicked=told if clickable else None,
    )


def choose_neuron(view: View) -> int:
    """Choose the important neuron whose tests are shown; return its rank."""
    chosen, important = selected(), view.analysis.important.tolist()
    rank = rank_of(view, chosen)
    if chosen.neuron is not None and rank is None:
        st.caption(
            f"Neuron {chosen.neuron} is selected, but not among the {plural(len(important), 'important neuron')}, "
            "which alone are split into clusters; a larger m in the sidebar includes more."
        )
    st.session_state["clustered-neuron"] = important[rank or 0]
    st.selectbox(
        "Neuron",
        important,
        format_func=lambda one: f"neuron {one}",
        key="clustered-neuron",
        width=220,
        on_change=lambda: select(neuron=st.session_state["clustered-neuron"]),
        help="The neuron whose tests are shown, one of the important ones; default the most important.",
    )
    return rank or 0


def galleries(view: View, rank: int) -> None:
    """Show the tests in every cluster of a neuron, more of them of the selected one."""
    analysis, size, chosen = view.analysis, view.sizes[rank], selected()
    picked = cluster_of(view, chosen)
    if view.position is not None:
        value, cluster = analysis.test_activations[view.position, rank], int(analysis.assignments[view.position, rank])
        st.markdown(f"Test {chosen.input} has {view.neurons[rank]} at {value:.3g}, in cluster {cluster}.")
    shown = list(range(size))
    if size > MOST_STATES:
        fullest = np.argsort(-analysis.clusters[rank].counts, kind="stable")[:MOST_STATES]
        shown = sorted({*fullest.tolist(), *([picked[1]] if picked is not None and picked[0] == rank else [])})
        st.caption(f"Shown are the {len(shown)} largest of {size} clusters, and the selected one.")
    for cluster in shown:
        _one(view, rank, cluster, picked == (rank, cluster))


def _one(view: View, rank: int, cluster: int, picked: bool) -> None:
    """Show the tests in one cluster, the closest to its centroid first."""
    analysis, neuron = view.analysis, int(view.analysis.important[rank])
    found, centroid = analysis.clusters[rank], float(analysis.centroids[rank][cluster])
    values, inside = analysis.test_activations[view.chosen, rank], analysis.assignments[view.chosen, rank]
    tests = view.chosen[typical(values, inside, cluster, centroid, len(values))]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(
            f"Cluster {cluster}: {state(cluster, found.k)}, around {centroid:.3g}", anchor=False, width="content"
        )
        st.button(
            "Show fewer" if picked else "Show more and select",
            key=f"cluster-{cluster}",
            type="tertiary",
            on_click=select,
            kwargs={"neuron": neuron, "cluster": None if picked else cluster},
            help="Select no cluster." if picked else f"Select cluster {cluster} of neuron {neuron} on all pages.",
        )
    learnt = plural(int(found.counts[cluster]), "training input")
    st.markdown(f"{plural(len(tests), 'test')} and {learnt}; {_reach(view, rank, cluster)}.")
    texts = view.test.inputs.ndim != 4
    most = (SHOWN_TEXTS if texts else SHOWN) if picked else (FEW_TEXTS if texts else FEW)
    layout.gallery(view, tests, most, key=f"cluster-tests-{cluster}")
    if picked:
        layout.take_inputs(view, tests)
        st.page_link(
            PAGES["coverage"].file,
            icon=PAGES["coverage"].icon,
            label=f"See the cells with neuron {neuron} in cluster {cluster}",
        )


def _reach(view: View, rank: int, cluster: int) -> str:
    """Say between which activations a cluster lies."""
    boundaries = view.analysis.clusters[rank].boundaries
    if not len(boundaries):
        return "all activations"
    if cluster == 0:
        return f"activations up to {boundaries[0]:.3g}"
    if cluster == len(boundaries):
        return f"activations above {boundaries[-1]:.3g}"
    return f"activations above {boundaries[cluster - 1]:.3g} up to {boundaries[cluster]:.3g}"
