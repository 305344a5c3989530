"""A pair of classes in detail: confused inputs, neurons and cells of both, and a projection of their inputs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.analysis.projection import alike, principal_components, sample
from idc_core.confusion.class_pair import between, confused, layer_relevance, shared_cells
from idc_core.errors import IdcError
from idc_core.figures.projection import Groups, plane
from studio.classes import class_errors
from studio.classes.class_errors import Looked
from studio.classes.controls import choose_pair
from studio.jobs.brushed import brushed
from studio.jobs.results import View
from studio.shell.pages import PAGES, draw_link
from studio.state.choices import choose_one
from studio.state.selection import select, select_tests
from studio.text import cell_name, literal, percent, plural, signed
from studio.widgets import layout
from studio.widgets.hover_pictures import hover_pictures

_SHOWN, _TEXTS = 20, 6
"""Confused tests that are shown: pictures, and texts, which take a row each; half as many of those in between."""

_NEURONS = 12
_CELLS = 8

_PARTS = {"inputs": "inputs", "neurons": "neurons and cells"}
"""What of a pair is shown: name and label."""


def draw(view: View, looked: Looked) -> None:
    """Show the selected pair: its inputs and both classes in the plane, or its neurons and cells."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pair = choose_pair(looked)
        shown = _choose_shown()
    if shown == "inputs":
        draw_confused(view, looked, pair)
        layout.take_inputs(view, _wrong_tests(looked, pair), key="pair-inputs")
        _draw_between(view, looked, pair)
        _draw_plane(view, looked, pair)
        return
    st.subheader("Neurons that both activate", anchor=False)
    neurons = _draw_neurons(view, looked, pair)
    _draw_cells(view, looked, pair)
    layout.computed(
        view,
        "Neurons are sorted by how much more the two classes activate them than the others do. Relevance: sum over "
        f"positions, mean over the tests classified as the class, for the setup's layer {view.setup.layer}.",
        class_errors.SOURCE,
    )
    layout.take_away({"shared-neurons": neurons})


def _wrong_tests(looked: Looked, pair: tuple[int, int]) -> NDArray[np.int64]:
    """Return the positions of the tests that the network confuses, int64 (k,); none for custom predictions."""
    if looked.positions is None:
        return np.zeros(0, np.int64)
    return looked.positions[confused(looked.evidence, *pair)]


def draw_confused(view: View, looked: Looked, pair: tuple[int, int]) -> None:
    """Show the tests that the network confuses, where there are labels, with the finding on the pair."""
    sentence = class_errors.told(looked, pair)
    if sentence and pair != tuple(looked.found.suspected[0].tolist()):  # of the first one the page's finding says it
        st.markdown(sentence)
    if looked.positions is None:
        st.caption("Custom predictions come without inputs to show.")
    elif len(wrong := _wrong_tests(looked, pair)):
        st.markdown(layout.label(f"Confused tests of {looked.pair_name(pair)}"))
        layout.gallery(view, wrong, _most(view), key="pair-confused")


def _draw_between(view: View, looked: Looked, pair: tuple[int, int]) -> None:
    """Show the tests between the two classes, for which no labels are needed."""
    if looked.positions is None or looked.scores is None:
        return
    torn = between(looked.scores, *pair)
    st.markdown(
        f"{layout.label('Close to the decision boundary')}: {plural(len(torn), 'test')} "
        f"{'has' if len(torn) == 1 else 'have'} these two classes as the highest scores; smallest margin first."
    )
    if len(torn):
        layout.gallery(view, looked.positions[torn], _most(view) // 2, key="pair-torn")


def _most(view: View) -> int:
    return _SHOWN if view.has_pictures else _TEXTS


def _draw_neurons(view: View, looked: Looked, pair: tuple[int, int]) -> pd.DataFrame:
    """Show the neurons that both classes activate more than others, with relevance where known."""
    errors = looked.found
    shared = errors.shared_neurons(*pair, _NEURONS)
    first, second = (looked.names[label] for label in pair)
    rows: list[dict[str, object]] = []
    others = errors.others(*pair)
    relevance = _relevance(view, looked, pair)
    for index in shared.tolist():
        layer, neuron = looked.neuron_of(index)
        row: dict[str, object] = {
            "layer": layer,
            "neuron": neuron,
            f"active for {first} (%)": 100 * errors.probability[index, pair[0]],
            f"active for {second} (%)": 100 * errors.probability[index, pair[1]],
            "active for others (%)": 100 * others[index],
        }
        if relevance is not None:
            own = layer == view.setup.layer
            for name, values in zip((first, second), relevance, strict=True):
                row[f"relevance for {name}"] = float(values[neuron]) if own else np.nan
        rows.append(row)
    table = pd.DataFrame(rows)
    both = np.minimum(errors.probability[:, pair[0]], errors.probability[:, pair[1]])
    st.markdown(
        f"{plural(int((both > 0.5).sum()), 'neuron')} of {len(both):,} are active for more than half of the inputs "
        "of both classes. " + _most_different(looked, pair)
    )
    if not rows:
        return table
    # As text: an empty number is drawn as the word None.
    shown = table.copy()
    for name in (name for name in table.columns if name.startswith("relevance")):
        shown[name] = [signed(value) if np.isfinite(value) else "" for value in table[name]]
    number = st.column_config.NumberColumn(format="%.1f")
    right = st.column_config.TextColumn(alignment="right")
    layout.pick_table(
        shown if looked.layers else shown.drop(columns="layer"),
        "pair-neurons",
        (lambda row: _open_neuron(looked, int(shared[row]))) if looked.layers else None,
        f"Neurons that {first} and {second} both activate",
        "content",
        {name: number for name in table.columns if name.endswith("(%)")}
        | {name: right for name in table.columns if name.startswith("relevance")},
    )
    if looked.layers:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("Choose a row to select its neuron and layer on all pages.", width="content")
            for name in ("neurons", "clusters"):
                draw_link(name, f"{PAGES[name].title} page")
    return table


def _relevance(
    view: View, looked: Looked, pair: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    if looked.positions is None:
        return None
    values = view.test_traces.relevance[view.setup.layer]
    first, second = (layer_relevance(values, looked.positions[looked.of_class(label)]) for label in pair)
    return first, second


def _clusters(view: View, looked: Looked, pair: tuple[int, int], positions: NDArray[np.int64]) -> None:
    """Show in which cluster of each important neuron most tests of each class are, and their relevance."""
    relevance = _relevance(view, looked, pair)
    if relevance is None:
        return
    assignments, important = view.analysis.assignments, view.analysis.important
    rows: list[dict[str, object]] = [
        {"neuron": int(neuron), "clusters": k} for neuron, k in zip(important, view.sizes, strict=True)
    ]
    for label, values in zip(pair, relevance, strict=True):
        tests = positions[looked.of_class(label)]
        for rank, (neuron, row) in enumerate(zip(important, rows, strict=True)):
            counts = np.bincount(assignments[tests, rank], minlength=1)
            share = 100 * counts.max() / max(1, len(tests))
            row[f"cluster of most {looked.names[label]}"] = f"{counts.argmax()} ({share:.0f} %)" if len(tests) else ""
            row[f"relevance for {looked.names[label]}"] = signed(values[neuron])
    table = pd.DataFrame(rows)
    right = st.column_config.TextColumn(alignment="right")
    layout.pick_table(
        table,
        "pair-important",
        lambda row: select(neuron=int(important[row])),
        "Important neurons with their clusters and relevance for both classes",
        "content",
        dict.fromkeys(table.columns[2:], right),
    )


def _most_different(looked: Looked, pair: tuple[int, int]) -> str:
    """Name the neurons whose activation differs most between the two."""
    apart = looked.found.apart_neurons(*pair, 3)
    if not len(apart):
        return "No neuron separates them."
    named = []
    for index in apart.tolist():
        layer, neuron = looked.neuron_of(index)
        share, other = 100 * looked.found.probability[index, list(pair)]
        named.append(f"{f'{layer} ' if layer else ''}neuron {neuron} ({share:.0f} % and {other:.0f} %)")
    return f"Neurons by their difference: {layout.names(named)}."


def _draw_cells(view: View, looked: Looked, pair: tuple[int, int]) -> None:
    """Show the important neurons' clusters of both classes, and the cells that tests of both reach."""
    if looked.positions is None:
        return
    st.subheader(layout.topic("Clusters and cells in layer {}", view.setup.layer), anchor=False)
    first, second = (looked.positions[looked.of_class(label)] for label in pair)
    cells, counts = shared_cells(view.analysis.assignments[first], view.analysis.assignments[second])
    inside = counts.sum(0)
    names = [literal(looked.names[label]) for label in pair]
    st.markdown(
        f"Both classes reach {plural(len(cells), 'cell')}. These hold {inside[0]:,} of {len(first):,} tests "
        f"classified as {names[0]} and {inside[1]:,} of {len(second):,} as {names[1]}."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        _clusters(view, looked, pair, looked.positions)
    if not len(cells):
        return
    table = {"cell": [cell_name(cell) for cell in cells[:_CELLS]]}
    with right:
        layout.pick_table(
            pd.DataFrame(table | {f"classified as {name}": counts[:_CELLS, i] for i, name in enumerate(names)}),
            "pair-cells",
            lambda row: select(cell=cell_name(cells[row])),
            "Cells that both classes reach, with the number of tests of each",
            "content",
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Choose a row to select its neuron or cell on all pages.", width="content")
        draw_link("coverage", "Coverage page")


def _draw_plane(view: View, looked: Looked, pair: tuple[int, int]) -> None:
    """Show the inputs of the two classes on the first two principal components of all counted neurons."""
    values, true = looked.evidence.values, looked.evidence.true
    if values is None:
        st.caption("A probability matrix has no single inputs to project.")
        return
    rows = sample(np.union1d(looked.of_class(pair[0]), looked.of_class(pair[1])))
    if len(rows) < 3:
        st.caption("Too few inputs are predicted as the two classes for a projection.")
        return
    try:
        placed = principal_components(values[rows])
    except IdcError as error:
        st.caption(literal(error))
        return
    groups = _members(looked, pair, rows, true)
    claim = f"Inputs classified as {looked.pair_name(pair)} whose nearest neighbour is of their kind"
    near = alike(placed.points, groups.member, claim)
    title = layout.topic("Inputs classified as {}", looked.pair_name(pair)) if near is None else layout.claim(near)
    shares = placed.explained or (0.0, 0.0)
    ids = rows if looked.positions is None else view.test.ids[looked.positions[rows]]
    positions = view.chosen[:0] if looked.positions is None else looked.positions[rows]
    there = np.flatnonzero(positions == view.position)
    place = int(there[0]) if len(there) else None
    together = np.flatnonzero(np.isin(positions, brushed(view)))
    axes = [f"principal component {i + 1}: {percent(portion)} of the variance" for i, portion in enumerate(shares)]
    layout.chart(
        view,
        "pair-plane",
        lambda dark: plane(
            placed.points, groups, ids, (axes[0], axes[1]), title, selected=place, together=together, dark=dark
        ),
        alt=title,
        read="each point is one input predicted as one of the two classes. Close points activate all counted neurons "
        "similarly." + (" Click a point to select its test on all pages." if looked.positions is not None else ""),
        depends=(looked.key, pair, place, together.tobytes()),
        clicked=(lambda points: select_tests(view.setup.data, points)) if len(positions) else None,
        table=pd.DataFrame(
            {
                "input": ids,
                "x": placed.points[:, 0],
                "y": placed.points[:, 1],
                "group": np.asarray(groups.names)[groups.member],
            }
        ),
    )
    if len(positions):
        hover_pictures(view, "pair-plane", positions)


def _members(
    looked: Looked, pair: tuple[int, int], rows: NDArray[np.int64], true: NDArray[np.generic] | None
) -> Groups:
    predicted = np.asarray(looked.evidence.predicted)
    if predicted.ndim == 2:
        has = predicted[rows][:, list(pair)]
        member = np.where(has.all(1), 2, np.where(has[:, 0], 0, 1))
        names = [f"{looked.names[pair[0]]} only", f"{looked.names[pair[1]]} only", "both"]
    else:
        member = np.where(predicted[rows] == pair[0], 0, 1)
        names = [f"classified as {looked.names[label]}" for label in pair]
        if true is not None:
            member = member + 2 * (true[rows] != predicted[rows])
            names = [f"{name}, {how}" for how in ("correct", "wrong") for name in names]
    return Groups(member.astype(np.int64), names)


def _open_neuron(looked: Looked, index: int) -> None:
    """Select a neuron on all pages, with its layer; for callbacks."""
    layer, neuron = looked.neuron_of(index)
    if layer:
        select(layer=layer, neuron=neuron)


def _choose_shown() -> str:
    """Choose what of the pair is shown."""
    return choose_one(
        st.segmented_control,
        "Show",
        _PARTS,
        "inputs",
        "pair-shown",
        required=True,
        help="The tests of the two classes, or the neurons and cells that both reach. Default inputs.",
    )
