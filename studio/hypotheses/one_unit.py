"""The tab of one unit and one hypothesis: ranks, single records, clusters, and whether the one causes the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import CancelledError
from idc_core.figures import heatmaps
from idc_core.figures import hypotheses as figures
from idc_core.figures.input_images import pictures
from studio.hypotheses import inspections
from studio.hypotheses.hypothesis_pair import pick, shown_records, significant
from studio.hypotheses.inspections import Measured, quoted
from studio.hypotheses.verification import draw_verification
from studio.neurons.neuron import told
from studio.shell.pages import draw_link
from studio.state.selection import select, selected
from studio.text import cluster_name, literal, percent, plural
from studio.widgets import layout
from studio.widgets.relevance_view import draw_pictures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from idc_core.inspection import Hypothesis
    from idc_core.inspection.result import Grid
    from idc_core.inspection.single_records import RecordBehaviour

_At: TypeAlias = "tuple[int | NDArray[np.int64], int | NDArray[np.int64]]"

_MOST = 12
"""Units, and hypotheses, that are listed."""
_SHOWN = 3
"""Pictures of the most and of the least active records."""
_SIDE = 112
_STRENGTH = 0.75


def draw(measured: Measured, grid: Grid, layer: str, pair: tuple[int, int], hypothesis: Hypothesis, label: str) -> None:
    """Show the selected unit and hypothesis: ranks, single records, clusters, and whether the one causes the other."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _draw_choice(measured, grid, layer, pair)
        _draw_links(measured, layer, pair[1])
    _draw_ranks(measured, grid, layer, pair, label)
    try:
        _draw_records(measured, layer, pair[1], hypothesis)
    except CancelledError:
        st.caption("Stopped before single tests were ready.")
    draw_verification(measured, grid, layer, hypothesis)
    layout.computed(
        measured.view,
        f"Single tests: the first {inspections.SHOWN_RECORDS} tests, and the selected one.",
        inspections.SOURCE,
    )


def _draw_choice(measured: Measured, grid: Grid, layer: str, pair: tuple[int, int]) -> None:
    """Choose the hypothesis and the unit by name, for who does not click."""
    hypothesis, unit = pair
    st.session_state["hypothesis-chosen"], st.session_state["unit-chosen"] = hypothesis, unit
    with st.container(horizontal=True, width="content"):
        st.selectbox(
            "Hypothesis",
            range(len(grid.names)),
            format_func=grid.names.__getitem__,
            key="hypothesis-chosen",
            width=320,
            on_change=lambda: pick(measured, grid, layer, hypothesis=st.session_state["hypothesis-chosen"]),
            help=f"The hypothesis shown below. Default that of the strongest score, {literal(grid.names[hypothesis])}.",
        )
        st.selectbox(
            "Neuron",
            range(grid.score.shape[1]),
            format_func=lambda number: f"neuron {number}",
            key="unit-chosen",
            width=160,
            on_change=lambda: pick(measured, grid, layer, unit=st.session_state["unit-chosen"]),
            help=f"The neuron of layer {literal(layer)} shown below. In the setup's layer it is selected on all pages. "
            f"Default that of the strongest score, neuron {unit}.",
        )


def _draw_ranks(measured: Measured, grid: Grid, layer: str, pair: tuple[int, int], what: str) -> None:
    """Show the top units of the hypothesis, and the top hypotheses of the unit."""
    hypothesis, unit = pair
    name, visible = grid.names[hypothesis], significant(grid)
    units, named = grid.units_of(hypothesis)[:_MOST], grid.hypotheses_of(unit)[:_MOST]

    def draw(
        key: str, at: _At, names: list[str], keys: NDArray[np.int64], chosen: int, title: layout.Headline, part: str
    ) -> None:
        layout.chart(
            measured.view,
            key,
            lambda dark: figures.ranked_scores(
                names,
                keys.tolist(),
                grid.score[at],
                grid.low[at],
                grid.high[at],
                visible[at],
                title,
                what,
                chosen=chosen,
                dark=dark,
            ),
            alt=title,
            read="each point is a score with its 95 % confidence interval; open: not significant. Click one to "
            "select it.",
            table=pd.DataFrame(
                {
                    "neuron" if part == "unit" else part: names,
                    "score": grid.score[at],
                    "low": grid.low[at],
                    "high": grid.high[at],
                }
            ),
            depends=(measured.key, what, layer, pair, part, visible.sum()),
            clicked=lambda points: pick(measured, grid, layer, **{part: told(points)}),
        )

    left, right = st.columns(2, gap="large")
    with left:
        title = layout.topic("Neurons by their score for {}", quoted(name))
        draw(
            "units-of-hypothesis",
            (hypothesis, units),
            [f"neuron {index}" for index in units],
            units,
            unit,
            title,
            "unit",
        )
    with right:
        title = layout.topic("Hypotheses by their score for neuron {}", unit)
        names = [grid.names[index] for index in named]
        draw("hypotheses-of-unit", (named, unit), names, named, hypothesis, title, "hypothesis")


def _draw_records(measured: Measured, layer: str, unit: int, hypothesis: Hypothesis) -> None:
    """Show unit and hypothesis on single records, and compare records with and without the hypothesis."""
    view, positions = measured.view, shown_records(measured)
    seen = inspections.look(view, layer, unit, hypothesis, positions)
    symbols = view.test.inputs.ndim == 2 and seen.activations.ndim == 2
    if symbols and seen.activations.shape[1:] == seen.present.shape[1:]:
        _draw_text(measured, seen, positions, unit, hypothesis)
    elif view.has_pictures:
        _draw_overlays(measured, seen, positions, unit, hypothesis)
    if hypothesis.kind == "classes":
        _draw_by_class(measured, seen, layer, unit, hypothesis)
        return
    important = layer == view.setup.layer and unit in view.analysis.important
    binary = hypothesis.kind == "binary"
    left, right = st.columns([3, 2], gap="large") if important and binary else (st.container(), st.container())
    if binary:
        with left:
            _draw_by_truth(measured, seen, layer, unit, hypothesis)
    if important:
        with right:
            _draw_clusters(measured, seen, positions, unit, hypothesis)


def _draw_text(
    measured: Measured, seen: RecordBehaviour, positions: NDArray[np.int64], unit: int, hypothesis: Hypothesis
) -> None:
    """Draw the unit's activation over one text, with the hypothesis under it."""
    view = measured.view
    numbers = view.test.ids[positions].tolist()
    order = np.argsort(~(seen.holds & seen.varies), kind="stable")
    first = int(order[0])
    chosen = numbers.index(selected().input) if selected().input in numbers else first
    st.session_state["record-chosen"] = chosen
    st.selectbox(
        "Test",
        order.tolist(),
        format_func=lambda at: f"test {numbers[at]}",
        key="record-chosen",
        width=200,
        on_change=lambda: select(input=int(numbers[st.session_state["record-chosen"]])),
        help="The text in the chart; texts where the hypothesis holds at some symbols come first. It is selected on "
        f"all pages. Default test {numbers[first]}.",
    )
    there = seen.present[chosen]
    tokens = view.test.inputs[positions[chosen]][there]
    words = view.test.words(tokens)
    activations = seen.activations[chosen][there]
    behaviour = np.broadcast_to(np.reshape(seen.behaviour[chosen], (-1,)), there.shape)[there]
    title = layout.topic("Activation of neuron {} over test {}", unit, numbers[chosen])
    layout.chart(
        view,
        "string-trace",
        lambda dark: figures.string_trace(
            words, activations, behaviour, title, f"neuron {unit}", hypothesis.name, dark=dark
        ),
        alt=title,
        read="top: the neuron's activation after each symbol. Bottom: the hypothesis, hatched where it is true, or its "
        "value. A neuron that responds to the hypothesis rises (or falls) there.",
        table=pd.DataFrame({"symbol": words, "activation": activations, hypothesis.name: behaviour}),
        depends=(measured.key, unit, hypothesis.name, numbers[chosen]),
    )


def _draw_overlays(
    measured: Measured, seen: RecordBehaviour, positions: NDArray[np.int64], unit: int, hypothesis: Hypothesis
) -> None:
    """Show the records that activate a unit most and least, with overlays of the hypothesis and the unit's map."""
    order = np.argsort(-seen.mean, kind="stable")
    rows = {"most": order[:_SHOWN], "least": order[::-1][:_SHOWN]}
    for column, (words, chosen) in zip(st.columns(2, gap="large"), rows.items(), strict=True):
        with column:
            name = layout.label(f"Neuron {unit} is {words} active")
            st.markdown(f"{name} on these, of the first {len(positions)} tests")
            tiles = [tile for at in chosen.tolist() for tile in _tiles(measured, seen, positions[at], at, hypothesis)]
            draw_pictures(tiles, key=f"overlays-{words}")
    if seen.behaviour.ndim > 1 or seen.activations.ndim > 1:
        layout.how_to_read(
            "red: the hypothesis is true, or the neuron is positive; blue: negative. The more the two overlap, the "
            "higher the score."
        )


def _tiles(
    measured: Measured, seen: RecordBehaviour, position: int, at: int, hypothesis: Hypothesis
) -> list[tuple[NDArray[np.uint8], str]]:
    """Return a record with an overlay of the hypothesis, and where the unit has a map one of that, with captions."""
    test = measured.view.test
    image, number = test.inputs[position], f"test {test.ids[position]}"
    caption = f"{number}: neuron {seen.mean[at]:.2f}"
    if seen.behaviour.ndim > 1:
        limit = 1.0 if hypothesis.kind == "binary" else float(np.abs(seen.behaviour).max()) or 1.0
        share = percent(float((seen.behaviour[at] != 0).mean()))
        tiles = [
            (
                _overlay(image, seen.behaviour[at] / limit),
                f"{caption}; red where {quoted(hypothesis.name)}, {share} of it",
            )
        ]
    else:
        value = _value(hypothesis, seen.behaviour[at])
        tiles = [(pictures(image[None], _SIDE)[0], f"{caption}; {hypothesis.name}: {value}")]
    if seen.activations.ndim > 1:
        tiles.append((_overlay(image, seen.over(at)), f"the neuron's map over {number}"))
    return tiles


def _overlay(image: NDArray[np.floating], values: NDArray[np.floating]) -> NDArray[np.uint8]:
    if not np.any(values):
        plain: NDArray[np.uint8] = pictures(image[None], _SIDE)[0]
        return plain
    return heatmaps.overlay(image, values, _STRENGTH, _SIDE)


def _value(hypothesis: Hypothesis, value: float) -> str:
    return f"{value:.3g}" if hypothesis.kind != "binary" else "true" if value else "not true"


def _draw_by_truth(measured: Measured, seen: RecordBehaviour, layer: str, unit: int, hypothesis: Hypothesis) -> None:
    """Draw the unit's mean over records where the hypothesis holds anywhere, and where it does not."""
    true, false = seen.mean[seen.holds], seen.mean[~seen.holds]
    if not len(true) or not len(false):
        name = quoted(literal(hypothesis.name))
        st.caption(
            f"{name} {'holds in all' if len(true) else 'holds in none'} of these {len(seen.mean)} tests: there is "
            "nothing to compare."
        )
        return
    title = layout.topic("Activation of neuron {} over tests with {}, and the others", unit, quoted(hypothesis.name))
    layout.chart(
        measured.view,
        "by-truth",
        lambda dark: figures.by_truth(true, false, title, f"neuron {unit}", hypothesis.name, dark=dark),
        alt=title,
        read="the less the two groups of tests overlap, the better the neuron alone predicts the hypothesis.",
        table=pd.DataFrame({"mean activation": seen.mean, hypothesis.name: seen.holds}),
        depends=(measured.key, layer, unit, hypothesis.name, seen.mean.shape),
    )


def _draw_by_class(measured: Measured, seen: RecordBehaviour, layer: str, unit: int, hypothesis: Hypothesis) -> None:
    """Draw the unit's values per class."""
    values = seen.by_class(hypothesis.classes)
    known = measured.view.test.class_names
    names = known if len(known) == hypothesis.classes else [f"class {at}" for at in range(hypothesis.classes)]
    title = layout.topic("Activation of neuron {} by class", unit)
    empty = sum(not len(own) for own in values)
    left = f" {empty} of the {len(values)} classes {'is' if empty == 1 else 'are'} not among these tests."
    layout.chart(
        measured.view,
        "by-class",
        lambda dark: figures.by_class(values, names, title, f"neuron {unit}", dark=dark),
        alt=title,
        read="each diamond is the neuron's mean in one class, the line its middle half (quartiles). The neuron alone "
        f"separates classes whose lines do not overlap.{left if empty else ''}",
        table=pd.DataFrame(
            [(name, float(value)) for name, own in zip(names, values, strict=True) for value in own],
            columns=["class", "activation"],
        ),
        depends=(measured.key, layer, unit, hypothesis.name, seen.mean.shape),
    )


def _draw_clusters(
    measured: Measured, seen: RecordBehaviour, positions: NDArray[np.int64], unit: int, hypothesis: Hypothesis
) -> None:
    """Show in which of the neuron's clusters the hypothesis holds."""
    from idc_core.inspection.result import shares

    view = measured.view
    place = view.analysis.important.tolist().index(unit)
    count = view.sizes[place]
    clusters = view.analysis.assignments[positions, place].astype(np.int64)
    portions = shares(seen.holds, clusters, count)
    sizes = np.bincount(clusters, minlength=count)
    table = pd.DataFrame(
        {
            "cluster": [cluster_name(at, count) for at in range(count)],
            "centroid": np.round(view.analysis.centroids[place], 3),
            "tests": sizes,
            f"with {quoted(hypothesis.name)}": [
                percent(float(portion)) if portion == portion else "" for portion in portions
            ],
        }
    )
    st.markdown(
        layout.label(f"Clusters of important neuron {unit}, and the share of tests with {quoted(hypothesis.name)}")
    )
    st.dataframe(
        table,
        hide_index=True,
        height="content",
        width="stretch",
        alt=f"Clusters of neuron {unit}, and the share of tests in each with {quoted(hypothesis.name)}",
    )
    st.caption(f"Of {plural(len(positions), 'test')}.")


def _draw_links(measured: Measured, layer: str, unit: int) -> None:
    """Offer the pages that show more of the unit."""
    if layer != measured.view.setup.layer:
        st.button(
            f"Make {layer} the setup's layer",
            key="take-layer",
            on_click=_take,
            args=(layer, unit),
            help="All pages then show this layer, with this neuron selected.",
        )
        return
    shown = {"neurons": f"Neuron {unit}"}
    if unit in measured.view.analysis.important:
        shown |= {"clusters": "Its clusters", "coverage": "Its cells"}
    with st.container(horizontal=True, width="content"):
        for page, label in shown.items():
            draw_link(page, label)
        if selected().input is not None:
            draw_link("relevance", f"Relevance of test {selected().input}")


def _take(layer: str, unit: int) -> None:
    select(layer=layer)
    select(neuron=unit)
