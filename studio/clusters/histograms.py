"""The clusters of the important neurons: how they are found, their histograms, and the tests in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.clustering.kmeans import sketch_sentence
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.coverage.cell_table import state_counts, typical
from idc_core.coverage.idc_settings import CONTROLS
from idc_core.figures import clusters as figures
from idc_core.report import sentences
from studio.jobs.brushed import brushed
from studio.jobs.overview import summarise
from studio.jobs.results import View
from studio.shell import pins
from studio.shell.pages import draw_link
from studio.state.selection import Point, Selection, carried, select, selected
from studio.state.sidebar import draw_part
from studio.text import cluster_name, literal, plural
from studio.widgets import layout
from studio.widgets.cluster_names import draw_name

_SHOWN, _FEW, _FEW_PAIRS = 20, 6, 3
"""Tests shown of the selected cluster, and of the others: alone, and beside heatmaps, of which so many are a row."""

_SHOWN_TEXTS, _FEW_TEXTS = 6, 2
"""The same for texts, which take more room."""

_MOST_STATES = 8
"""Clusters of a neuron whose tests are shown."""


def draw(view: View) -> None:
    """Show one histogram per neuron, and the tests in each cluster of the chosen one."""
    _controls(view)
    _draw_histograms(
        view,
        selected(),
        layout.topic("Activations of the important neurons, and their clusters"),
        "histograms",
        list(range(view.analysis.m)),
        clickable=True,
    )
    st.header("The tests in each cluster", anchor=False)
    _galleries(view, *_choose_neuron(view))
    pins.beside(view, _draw_side)
    entry = CLUSTERINGS[view.setup.options["clustering"]]
    layout.computed(
        view,
        f"Each neuron's activations over the training inputs are clustered. {entry.label}: {entry.help} "
        "k-means is solved exactly and deterministically. Boundaries lie half way between neighbouring centroids, for "
        "other methods in the middle of the gap between clusters. A value on a boundary belongs to the lower cluster.",
        "A value is in a dense region (DBSCAN) if at least as many values lie within 1.06 s n^(\u22121/5) of it as for "
        "evenly spread values, where n is the number of values and s their standard deviation.",
    )


def draw_number(view: View) -> None:
    """Show how good every number of clusters is."""
    _controls(view)
    _draw_silhouettes(view)
    layout.computed(
        view,
        "Automatic keeps the number of clusters (2, 3 or 4) with the largest mean silhouette (Algorithm 2 of the "
        "paper). DBSCAN finds the number itself.",
    )


def _controls(view: View) -> None:
    """Choose how the clusters are found; all pages follow."""
    first, *others = CONTROLS
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _choose(view, first, width=190)
        with layout.settings(*others):
            for name in others:
                _choose(view, name)


def _choose(view: View, name: str, **how: Any) -> None:
    """Choose an option of IDC."""
    control, chosen = CONTROLS[name], view.setup.options
    choices = control.choices()
    usual = f"Default {choices[str(control.default)].label}."
    draw_part(
        name,
        control.label,
        list(choices),
        chosen[name],
        {text: choice.label for text, choice in choices.items()},
        " ".join(
            [control.help, *(f"{choice.label}: {choice.help}" for choice in choices.values() if choice.help), usual]
        ),
        disabled=control.option == "clusters" and not CLUSTERINGS[chosen["clustering"]].takes_k,
        **how,
    )


def _told(points: Sequence[Point]) -> None:
    """Select the neuron and the cluster that were clicked; outlines and stars carry none."""
    for point in points:
        if len(numbers := carried(point)) == 2:
            neuron, cluster = (int(number) for number in numbers)
            select(neuron=neuron, cluster=cluster)
            return


def rank_of(view: View, chosen: Selection) -> int | None:
    """Return which of the important neurons is selected; None where none of them is."""
    places = np.flatnonzero(view.analysis.important == chosen.neuron)
    return int(places[0]) if len(places) else None


def _cluster_of(view: View, chosen: Selection) -> tuple[int, int] | None:
    """Return rank and cluster that are selected; None where there is no such cluster."""
    rank = rank_of(view, chosen)
    if rank is None or chosen.cluster is None or chosen.cluster >= view.sizes[rank]:
        return None
    return rank, chosen.cluster


def _draw_histograms(
    view: View, chosen: Selection, title: layout.Headline, key: str, ranks: list[int], *, clickable: bool
) -> None:
    """Draw the histograms of some important neurons, with what is selected in them."""
    analysis, place, picked = view.analysis, view.place(chosen), _cluster_of(view, chosen)
    shaded = (ranks.index(picked[0]), picked[1]) if picked is not None and picked[0] in ranks else None
    together = brushed(view) if clickable else view.chosen[:0]
    names = [view.neurons[rank] for rank in ranks]
    read = (
        "Bars: share of the training inputs per activation; outline: the same for the tests. Diamonds "
        "are centroids, dotted lines are cluster boundaries."
    )
    if clickable:
        read += " Click a bar to see the tests in its cluster, marked in all panels."
    if place is not None:
        read += f" The star is test {chosen.input}."
    layout.chart(
        view,
        key,
        lambda dark, logarithmic: figures.histograms(
            [analysis.clusters[rank] for rank in ranks],
            analysis.train_activations[:, ranks],
            analysis.test_activations[view.chosen][:, ranks],
            [f"{name}, {plural(view.sizes[rank], 'cluster')}" for name, rank in zip(names, ranks, strict=True)],
            title,
            numbers=analysis.important[ranks].tolist(),
            selected=shaded,
            marked=None if place is None else analysis.test_activations[place, ranks],
            together=analysis.test_activations[together][:, ranks],
            logarithmic=logarithmic,
            clickable=clickable,
            dark=dark,
        ),
        alt=title,
        more=f"Histograms of the activations of {layout.names(names)} with their clusters",
        read=read,
        depends=(shaded, place, tuple(ranks), together.tobytes()),
        clicked=_told if clickable else None,
        table=_cluster_table(view),
        scale="linear",
    )
    sketched = sketch_sentence([analysis.clusters[rank].sketch for rank in ranks], len(analysis.train_activations))
    if sketched:
        st.caption(sketched)


def _choose_neuron(view: View) -> tuple[int, bool]:
    """Choose the important neuron whose tests are shown, and whether with heatmaps; return its rank, and that."""
    chosen, important = selected(), view.analysis.important.tolist()
    rank = rank_of(view, chosen)
    if chosen.neuron is not None and rank is None:
        st.caption(
            f"The selected neuron {chosen.neuron} is not among the {plural(len(important), 'important neuron')}, so "
            "it has "
            "no clusters. Increase m in the sidebar to include it."
        )
    st.session_state["clustered-neuron"] = important[rank or 0]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Neuron",
            important,
            format_func=view.called,
            key="clustered-neuron",
            width=220,
            on_change=lambda: select(neuron=st.session_state["clustered-neuron"]),
            help="Important neuron whose tests are shown. Default the most important.",
        )
        explained = st.toggle(
            "Heatmaps of the neuron",
            True,
            key="neuron-heatmaps",
            bind="query-params",
            help="Show beside each test what activates the neuron: the relevance of its input, by the epsilon rule, "
            "for the neuron's activation. Red activates it, blue holds it down. Default on.",
        )
    return rank or 0, explained


def _galleries(view: View, rank: int, explained: bool) -> None:
    """Show the tests in every cluster of a neuron, more of them of the selected one."""
    analysis, size, chosen = view.analysis, view.sizes[rank], selected()
    picked = _cluster_of(view, chosen)
    if view.position is not None:
        value, cluster = analysis.test_activations[view.position, rank], int(analysis.assignments[view.position, rank])
        st.markdown(f"Test {chosen.input}: {view.neurons[rank]} has the activation {value:.3g}, cluster {cluster}.")
    shown = list(range(size))
    if size > _MOST_STATES:
        fullest = np.argsort(-analysis.clusters[rank].counts, kind="stable")[:_MOST_STATES]
        shown = sorted({*fullest.tolist(), *([picked[1]] if picked is not None and picked[0] == rank else [])})
        st.caption(f"The {len(shown)} largest of {size} clusters are shown, and the selected one.")
    for cluster in shown:
        _one(view, rank, cluster, picked == (rank, cluster), explained)


def _one(view: View, rank: int, cluster: int, picked: bool, explained: bool) -> None:
    """Show the tests in one cluster, the closest to its centroid first, perhaps beside what activates the neuron."""
    analysis, neuron = view.analysis, int(view.analysis.important[rank])
    clustering, centroid = analysis.clusters[rank], float(analysis.centroids[rank][cluster])
    values, inside = analysis.test_activations[view.chosen, rank], analysis.assignments[view.chosen, rank]
    tests = view.chosen[typical(values, inside, cluster, centroid, len(values))]
    with st.container(horizontal=True, vertical_alignment="center"):
        place = cluster_name(cluster, clustering.k).removesuffix(" cluster")
        place = "" if place.startswith("cluster") else f" ({place})"
        st.subheader(layout.topic("Cluster {}{}", cluster, place), anchor=False, width="content")
        st.button(
            "Show fewer" if picked else "Show more and select",
            key=f"cluster-{cluster}",
            type="tertiary",
            on_click=select,
            kwargs={"neuron": neuron, "cluster": None if picked else cluster},
            help="Select no cluster." if picked else f"Select cluster {cluster} of neuron {neuron} on all pages.",
        )
        draw_name(view, rank, cluster)
    learnt = plural(int(clustering.counts[cluster]), "training input")
    st.markdown(f"{plural(len(tests), 'test')} and {learnt}; {_reach(view, rank, cluster)}, centroid {centroid:.3g}.")
    texts = not view.has_pictures
    few = _FEW_TEXTS if texts else _FEW_PAIRS if explained else _FEW
    most = few if not picked else _SHOWN_TEXTS if texts else _SHOWN
    maps = layout.neuron_heatmaps(view, tests[:most], neuron) if explained and len(tests) else None
    layout.gallery(view, tests, most, maps, key=f"cluster-tests-{cluster}")
    if picked:
        layout.take_inputs(view, tests)
        draw_link("coverage", f"See the cells with neuron {neuron} in cluster {cluster}")


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


def _numbers(view: View) -> str:
    """Say how many clusters the important neurons have."""
    fewest, most = min(view.sizes), max(view.sizes)
    text = plural(most, "cluster") if fewest == most else f"{fewest} to {plural(most, 'cluster')}"
    return text if view.analysis.m == 1 else f"{text} each"


def sentence(view: View) -> str:
    """Put the finding into words."""
    analysis = view.analysis
    subject = "important neuron has" if analysis.m == 1 else f"{analysis.m} important neurons have"
    said = f"The {subject} {_numbers(view)}, {plural(analysis.total, 'combination')} in total."
    found = sentences.found(summarise(view), "cluster")
    return said if found is None else layout.lead(layout.claim(found), said)


def _draw_silhouettes(view: View) -> None:
    """Show the silhouette of every number of clusters."""
    clusters, names = view.analysis.clusters, view.neurons
    if not any(clustering.silhouettes for clustering in clusters):
        st.caption("There is no choice to compare: every neuron has one cluster, or the number is set by hand.")
        return
    if constant := [name for name, clustering in zip(names, clusters, strict=True) if not clustering.silhouettes]:
        st.caption(f"No line: {', '.join(map(literal, constant))}. The training inputs leave one cluster.")
    title = layout.topic("Silhouette of every number of clusters")
    layout.chart(
        view,
        "silhouettes",
        lambda dark: figures.silhouettes(clusters, names, title, dark=dark),
        alt=title,
        read="Each point is one number of clusters. y: its silhouette; near 1: compact clusters far apart, near 0: "
        "clusters touch. The star marks the chosen number.",
        table=lambda: pd.DataFrame(
            [
                {"neuron": int(number), "k": k, "silhouette": value, "chosen": k == clustering.k}
                for number, clustering in zip(view.analysis.important, clusters, strict=True)
                for k, value in sorted(clustering.silhouettes.items())
            ]
        ),
    )


def _draw_side(side: View, chosen: Selection, key: str) -> None:
    """Show one neuron of one of two setups: the selected one where it is important there, else the first."""
    rank = rank_of(side, chosen) or 0
    title = layout.topic("Activations of {}, and its clusters", side.neurons[rank])
    _draw_histograms(side, chosen, title, f"histogram-{key}", [rank], clickable=False)


def _cluster_table(view: View) -> pd.DataFrame:
    """Return every cluster of every important neuron."""
    analysis = view.analysis
    tests = state_counts(analysis.assignments[view.chosen], view.sizes)
    return pd.DataFrame(
        [
            {
                "neuron": int(analysis.important[i]),
                "cluster": c,
                "centroid": float(centroid),
                "from": float(clustering.boundaries[c - 1]) if c else -np.inf,
                "to": float(clustering.boundaries[c]) if c < clustering.k - 1 else np.inf,
                "training_inputs": int(clustering.counts[c]),
                "tests": int(tests[i][c]),
                "silhouette": clustering.silhouettes.get(clustering.k, np.nan),
            }
            for i, clustering in enumerate(analysis.clusters)
            for c, centroid in enumerate(analysis.centroids[i])
        ]
    )
