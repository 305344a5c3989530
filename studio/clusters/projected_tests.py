"""Project the tests to two dimensions, and inspect the selected ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.analysis.projection import FEWEST_POINTS, Projection, alike, principal_components, sample, umap
from idc_core.base.progress import Progress
from idc_core.figures.projection import Groups, gather, plane
from studio.clusters.histograms import rank_of
from studio.jobs.brushed import brushed, in_chart
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.state.choices import choose_one
from studio.state.selection import forget_tests, select_tests, selected
from studio.text import cell_name, cluster_name, count, literal, percent, plural, signed
from studio.widgets import layout
from studio.widgets.hover_pictures import hover_pictures

_UMAP = JobKind("projections", is_long=True)

_PROJECTIONS = {"linear": "principal components", "umap": "UMAP"}
_COLOURED = {"class": "class", "target": "target", "cluster": "cluster", "cell": "cell", "correctness": "correctness"}
"""What the tests can be coloured by: name and label."""

_CLICK, _LASSO = "click", "lasso"

_SHOWN = 20
_RANGES = 5


def draw(view: View) -> None:
    """Show the tests in two dimensions."""
    _draw_plane(view, rank_of(view, selected()) or 0)
    layout.computed(
        view,
        "Principal components are computed from the important neurons' activations on the chosen tests, unscaled. "
        "UMAP (umap-learn, 15 neighbours, minimal distance 0.1, seed 0) uses the same values.",
    )


def _draw_plane(view: View, rank: int) -> None:
    """Show the setup's tests in two dimensions, and the selected ones.

    The clusters of the important neuron of a rank can be coloured.
    """
    colourings = _colourings(view, rank)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        way = choose_one(
            st.segmented_control,
            "Projection",
            _PROJECTIONS,
            "linear",
            "plane",
            required=True,
            help="Principal components: the directions in which the neurons vary most, instantly. UMAP keeps similar "
            "tests "
            "together and takes some seconds. Default principal components.",
        )
        colour = choose_one(
            st.segmented_control,
            "Colour by",
            {name: _COLOURED[name] for name in colourings},
            colourings[0],
            "plane-colour",
            required=True,
            help=f"Meaning of a test's colour and mark; cluster is that of {literal(view.neurons[rank])}. Default "
            f"{_COLOURED[colourings[0]]}.",
        )
        choosing = st.segmented_control(
            "Select",
            [_CLICK, _LASSO],
            default=_CLICK,
            required=True,
            key="plane-choosing",
            help=f"Select one test by a click, or several by a lasso. Default {_CLICK}.",
        )
    positions, projection = _project(view, way)
    groups = _groups(view, colour, rank, positions)
    title = _title(view, projection, groups, colour, rank)
    place = np.flatnonzero(positions == view.position) if view.position is not None else np.zeros(0, np.int64)
    axes = [f"component {i}" for i in (1, 2)]
    if projection.explained is not None and projection.loadings is not None:
        axes = [
            f"{axis}: {percent(share)} of the variance" for axis, share in zip(axes, projection.explained, strict=True)
        ]
    together = np.flatnonzero(np.isin(positions, brushed(view)))
    tests = {"test": view.test.ids[positions], "x": projection.points[:, 0], "y": projection.points[:, 1]}
    layout.chart(
        view,
        "projection",
        lambda dark: plane(
            projection.points,
            groups,
            view.test.ids[positions],
            (axes[0], axes[1]),
            title,
            selected=int(place[0]) if len(place) else None,
            together=together,
            lasso=choosing == _LASSO,
            dark=dark,
        ),
        alt=title,
        read=_reading(view, way, len(positions)),
        depends=(way, colour, rank, choosing, int(place[0]) if len(place) else None, together.tobytes()),
        clicked=lambda points: select_tests(view.setup.data, points),
        modes=("points", "lasso", "box"),
        table=pd.DataFrame(tests | {_COLOURED[colour]: np.asarray(groups.names)[groups.member]}),
    )
    hover_pictures(view, "projection", positions)
    _behind(view)


def _project(view: View, way: str) -> tuple[NDArray[np.int64], Projection]:
    """Return the drawn tests and their projection; where UMAP is not possible, say why and use principal components."""
    activations, drawn = view.analysis.test_activations, sample(view.chosen)
    if way == "umap":
        if len(drawn) >= FEWEST_POINTS:

            def work(report: Progress) -> Projection:
                return umap(activations[drawn], on_progress=report)

            doing = "computing UMAP, usually under a minute"
            key = (*view.key, view.setup.layer, view.analysis.m, view.chosen_key)
            return drawn, Waiting(1).get(_UMAP, key, doing, work)
        st.caption(f"UMAP needs at least {FEWEST_POINTS} tests. Principal components are shown.")
    if view.position is not None and view.position in view.chosen:
        drawn = np.union1d(drawn, view.position)
    whole = principal_components(activations[view.chosen])
    rows = np.searchsorted(view.chosen, drawn)
    return drawn, Projection(whole.points[rows], whole.explained, whole.loadings)


def _colourings(view: View, rank: int) -> list[str]:
    """Return what the tests can be coloured by, the default one first."""
    first = ["class"] if view.is_classifier else ["target"]
    return [*first, "cluster", "cell", *(["correctness"] if view.correct is not None else [])]


def _groups(view: View, colour: str, rank: int, positions: NDArray[np.int64]) -> Groups:
    """Put the drawn tests into groups."""
    if colour == "class":
        return gather(view.test.targets[positions], view.test.class_names, "other classes")
    if colour == "cluster":
        size = view.sizes[rank]
        names = [f"cluster {cluster}, {cluster_name(cluster, size)}" for cluster in range(size)]
        groups = gather(view.analysis.assignments[positions, rank].astype(np.int64), names, "other clusters")
        return Groups(groups.member, groups.names, ordered=groups.names == names)
    if colour == "cell":
        cells, member = np.unique(view.analysis.assignments[positions], axis=0, return_inverse=True)
        return gather(member.reshape(-1), [f"cell {cell_name(cell)}" for cell in cells], "other cells")
    if colour == "correctness":
        return Groups((~view.analysis.correct[positions]).astype(np.int64), ["correct", "misclassified"])
    answers = view.test.targets[positions].astype(np.float64)
    edges = np.unique(np.quantile(answers, np.linspace(0, 1, _RANGES + 1)))
    member = np.clip(np.searchsorted(edges, answers, "right") - 1, 0, max(0, len(edges) - 2))
    names = [f"{signed(low)} to {signed(high)}" for low, high in pairwise(edges)] or ["all"]
    return Groups(member, names, ordered=True)


def _title(view: View, found: Projection, groups: Groups, colour: str, rank: int) -> layout.Headline:
    """Say how many tests have a neighbour of their group, beside mixed groups."""
    what = {"cluster": f"cluster of {view.neurons[rank]}", "target": "range of the target"}.get(colour, colour)
    near = alike(found.points, groups.member, f"Tests whose nearest neighbour has the same {what}")
    return layout.topic("The tests by {}", what) if near is None else layout.claim(near)


def _reading(view: View, way: str, drawn: int) -> str:
    text = (
        "Each point is one test. Close points have similar activations."
        if way == "linear"
        else "Each point is one test. Neighbours have similar activations; distances between groups have no meaning."
    )
    text += " Selected tests are shown below; the legend counts them."
    if drawn < len(view.chosen):
        text += f" {count(drawn)} of {plural(len(view.chosen), 'test')} are drawn, at random (seed 0)."
    if view.position is not None and way == "umap" and view.position not in sample(view.chosen):
        text += f" Test {selected().input} is not among them."
    return text


def _behind(view: View) -> None:
    """Show the selected tests."""
    positions = in_chart(view)
    if not len(positions):
        st.caption("No test is selected in a chart yet.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(layout.topic("Selected tests"), anchor=False, width="content")
        st.button("Clear", key="plane-forget", type="tertiary", on_click=forget_tests, help="Clear the selection.")
    st.markdown(_summary(view, positions))
    layout.gallery(view, positions, _SHOWN, key="plane-tests")
    layout.take_inputs(view, positions, key="plane-inputs")


def _summary(view: View, positions: NDArray[np.int64]) -> str:
    """Say in which cells and classes the selected tests are."""
    cells = len(np.unique(view.analysis.assignments[positions], axis=0))
    parts = [f"{plural(len(positions), 'test')} in {plural(cells, 'cell')}."]
    if view.is_classifier:
        targets, sizes = np.unique(view.test.targets[positions], return_counts=True)
        most = np.argsort(-sizes, kind="stable")[:3]
        classes = [f"{literal(view.test.class_names[targets[i]])} ({count(int(sizes[i]))})" for i in most]
        parts.append(f"Their classes: {layout.names(classes)}{' and others' if len(sizes) > len(most) else ''}.")
    if view.correct is not None:
        parts.append(f"{count(int((~view.correct[positions]).sum()))} of them are misclassified.")
    return " ".join(parts)
