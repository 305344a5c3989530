"""The six chapters of the Learn page: the method on a network of ten neurons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from idc_core.analysis import teaching
from idc_core.analysis.teaching import LAYERS, NAMES, PICTURES, TESTS, WATCHED
from idc_core.coverage.cells import CellCounts, total
from idc_core.figures import clusters as cluster_figures
from idc_core.figures import learn as figures
from idc_core.figures.wording import typeset
from studio.learn import network
from studio.learn.network import Played
from studio.learn.parts import choose, fitted, halves, number, product, question, slide
from studio.shell.pages import PAGES
from studio.text import cell_name, plural
from studio.widgets.layout import Headline, counted, label, plot, topic

if TYPE_CHECKING:
    import plotly.graph_objects as go

_DECISION = "answer"
_FIRST, _SECOND = (NAMES[1][position] for position in WATCHED)


def _winner(found: teaching.Explanation) -> str:
    """Say which class is predicted."""
    one, seven = found.values[-1][0]
    name = NAMES[-1][int(found.values[-1][0].argmax())]
    return typeset(f"Predicted: {label(name)} (scores: one {number(one)}, seven {number(seven)}).")


def _neuron_sum(state: Played, found: teaching.Explanation) -> None:
    """Write out what the neuron at the end of the selected line computes."""
    layer, _, end = state.edge
    values, weights = found.values[layer][0], state.weights[layer][:, end]
    terms = " + ".join(product(x, w) for x, w in zip(values, weights, strict=True))
    name, added = state.ends[1], float(values @ weights)
    inactive = layer < len(state.weights) - 1 and added <= 0
    st.latex(rf"\text{{{name}}} = {terms} = {number(added)}" + r"\text{, so it passes on } 0" * inactive)


def _equation(state: Played, found: teaching.Explanation) -> None:
    """Write equation 1 with the numbers of the selected line."""
    layer, start, end = state.edge
    values, weights = found.values[layer][0], state.weights[layer][:, end]
    above, below = float(found.relevance[layer + 1][0, end]), float(found.relevance[layer][0, start])
    z = float(values @ weights)
    sign = "-" if np.signbit(z) else "+"
    names = state.ends
    st.markdown(f"Relevance of the line from {names[0]} to {names[1]} (click another):")
    st.latex(
        r"R_{i \leftarrow j} = \frac{x_i \, w_{ij}}{\sum_k x_k \, w_{kj} \; \pm \; \varepsilon} \; R_j \qquad "
        rf"R_{{\text{{{names[0]}}} \leftarrow \text{{{names[1]}}}}} = "
        rf"\frac{{{product(values[start], weights[start], 3)}}}{{{number(z, 3)} {sign} 0.000001}} "
        rf"\times {product(1, above, 3).partition('times ')[2]} = {number(found.flows[layer][0, start, end], 3)}"
    )
    flows = found.flows[layer][0, start]
    terms = " + ".join(f"{number(flow, 3)} from {name}" for flow, name in zip(flows, NAMES[layer + 1], strict=True))
    text = f"Relevance of {names[0]}: {terms} = {number(below, 3)}."
    st.markdown(typeset(text.replace("+ -", "\u2212 ")))


def _conservation(found: teaching.Explanation) -> None:
    """Show that every layer has the same sum of relevance."""
    sums = [float(relevance[0].sum()) for relevance in found.relevance]
    columns = st.columns(len(sums))
    for column, layer, value in zip(columns, LAYERS, sums, strict=True):
        column.metric(f"{layer.capitalize()}: sum", typeset(number(value, 3)), border=True)
    worst = max(abs(value - sums[-1]) for value in sums)
    st.caption(f"Largest difference: {worst:.6f}, from the tiny ε in the equation.")


def _again() -> None:
    """Offer the way back to the start."""
    st.button("Reset", on_click=network.reset, help="Reset all weights and inputs to the initial numbers.")


def _neurons() -> None:
    """Chapter 1."""
    text, picture = halves()
    with text:
        st.header("What does a neuron do?", anchor=False)
        says = (
            "This network tells handwritten ones from sevens by the ink at a picture's top, middle and foot (0 to 1)."
        )
        st.markdown(f"{says} **Try:** drag *top* down until the prediction changes.")
    with picture:
        state = network.played()
        network.draw(state, says, relevance=False)
        explanation = teaching.explain(state.weights, state.inputs[None])
        st.markdown(_winner(explanation))
        _neuron_sum(state, explanation)
        _again()
    with text:
        st.markdown(
            "A **neuron** adds up its incoming numbers, each times the **weight** of its line. It passes on a positive "
            "sum, else 0 (inactive). The last two sums are the **scores**: the higher one is predicted (✓)."
        )
        question(
            "Initially a3 is inactive. What would activate it?",
            "Less ink at the top or more at the foot: a3 adds up to \u22121.00 times top + 0.20 times middle + 1.00 "
            "times foot. With the top at 0.40 that is -0.40 + 0.10 + 0.40 = 0.10, so a3 is active. It detects ones.",
        )


def _relevance() -> None:
    """Chapter 2: the network with equation 1 and the sum of every layer."""
    text, picture = halves()
    with text:
        st.header("Which input decided?", anchor=False)
        says = (
            "The score is propagated backwards: every neuron passes its share, its relevance (R), back along its "
            "lines, in proportion to their contributions."
        )
        st.markdown(f"{says} **Try:** drag a line. The sums of the layers stay equal.")
    with picture:
        drawing = st.container()
    with text:
        texts = {_DECISION: "the predicted class", **{name: name for name in NAMES[-1]}}
        explained = choose("Explain the score of", texts, "explained", "Class whose score is explained.")
        target = None if explained == _DECISION else NAMES[-1].index(explained)
    state = network.played()
    with drawing:
        network.draw(state, says, relevance=True, target=target)
    explanation = teaching.explain(state.weights, state.inputs[None], target)
    with text:
        st.markdown(_winner(explanation))
    with drawing:
        _again()
    with text:
        question(
            "Initially there is ink at the foot, but its relevance is negative. Why?",
            "Its line to a1 has the weight -0.30: ink at the foot lowers a1, which is the evidence for seven. The "
            "small contribution through a2 does not compensate. So the foot is evidence against the prediction.",
        )
        with st.expander("The equation"):
            _equation(state, explanation)
            _conservation(explanation)
            st.markdown(
                "The relevance of a line is its contribution to the neuron at its end, divided by the sum of all "
                "contributions to that neuron, times the relevance of that neuron. "
                "ε is a very small number with the sign of the sum. It keeps the division defined where a sum is 0. "
                "The networks on the other pages also have biases, constants that are added to a sum. A bias can "
                "absorb its share of the relevance or redistribute it to the inputs. This network has no biases. "
                "The equation is number (1) in Gerasimou, Eniser, Sen and Cakan, ICSE 2020."
            )


def _importance() -> None:
    """Chapter 3: the network with importance over all pictures."""
    text, picture = halves()
    with text:
        st.header("Which neurons matter?", anchor=False)
        st.markdown(
            f"A neuron's **importance** is its relevance summed over many pictures, here {len(PICTURES)}. Its output "
            "is its **activation**. **Try:** drag the lines that leave a2 until a2 is the most important."
        )
    with picture:
        state = network.played()
        network.draw_again(state, relevance=True)
    with text:
        explanation = teaching.explain(state.weights, PICTURES)
        activation, shares = explanation.values[1].mean(axis=0), explanation.relevance[1].sum(axis=0)
        busiest, first = NAMES[1][int(activation.argmax())], NAMES[1][int(shares.argmax())]
        title = topic("{} is the most active neuron, {} the most important", busiest, first)
        if busiest == first:
            title = topic("{} is both the most active and the most important neuron", first)
        plot(
            "importance",
            lambda dark: fitted(figures.importance(activation, shares, NAMES[1], title, dark=dark), 205),
            alt=title,
            read=f"Each bar is one neuron of the first layer, over {len(PICTURES)} pictures. The network is read as in "
            "chapter 2.",
        )
        _again()
        question(
            "Initially a2 is the most active neuron. Why is it the least important?",
            "It responds to ink anywhere, so ones and sevens activate it equally, and its outgoing weights are small "
            "(0.10 and 0.20). It hardly changes any prediction. Tests should vary the neurons that decide. The studio "
            f"keeps the *m* most important ones; from here on *m* = 2: {_FIRST} and {_SECOND}, with the initial "
            "numbers.",
        )


def _name_step(step: teaching.Step, before: teaching.Step | None) -> Headline:
    """Describe a step of k-means."""
    if before is None:
        return topic("Initial guess: the centroids are at the lowest values")
    if step.kind == "move":
        return topic("Every centroid moves to the mean of its values")
    if step.kind == "done":
        return topic("Converged: no value changes its cluster")
    changed = int((step.assignment != before.assignment).sum())
    return counted("Join another centroid", changed, len(step.assignment), "value")


def _clusters() -> None:
    """Chapter 4."""
    clustering = teaching.states()[0]
    values = teaching.watched(PICTURES)[:, 0]
    text, picture = halves()
    with text:
        st.header("What clusters does a neuron have?", anchor=False)
        st.markdown(
            f"The activations of {_FIRST} form **clusters**. **k-means** guesses *k* centres (**centroids**), assigns "
            "values to the nearest, moves each centroid to their mean, and repeats. **Try:** increase the step. Where "
            "does it get stuck with four clusters?"
        )
        help = f"Number of clusters, from 2 to 4. Default {clustering.k}."
        choice = st.segmented_control(
            "Clusters k", (2, 3, 4), default=clustering.k, required=True, key="lesson-k", bind="query-params", help=help
        )
        k = choice or clustering.k  # an address may say none at all
        steps = teaching.kmeans_steps(values, k)
        # A slider for each k: their numbers of steps differ.
        at = slide("Step", len(steps) - 1, 0, f"step{k}", "Step of k-means.")
        step, title = steps[at], _name_step(steps[at], steps[at - 1] if at else None)
        st.caption(f"Spread: {step.spread:.3f}." if at else "Spread: none yet.")
    with picture:
        plot(
            "kmeans",
            lambda dark: fitted(figures.kmeans(values, step, title, dark=dark), 255),
            alt=title,
            read="Each point is one picture, its shape its cluster. Vertical lines: centroids. Spread: sum of squared "
            "distances to the centroids.",
        )
    with text:
        best = clustering.inertia[k]
        if step.kind == "done" and step.spread > best + 1e-9:
            st.markdown(
                f"This is not the optimum: the best {k} clusters have a spread of {best:.3f}. From a poor start "
                "k-means stops too early. In one dimension the studio computes the optimum directly."
            )
    with picture:
        scores = clustering.silhouettes
        title = topic("Silhouette of {}, by number of clusters", _FIRST)
        plot(
            "silhouettes",
            lambda dark: fitted(cluster_figures.silhouettes([clustering], [_FIRST], title, dark=dark), 255),
            alt=title,
            read="y: the **silhouette**, which compares the distance of a value to its own and to the next cluster; "
            "near 1: compact clusters far apart. Star: the chosen number.",
        )
    with text:
        question(
            "More clusters always reduce the spread. Why not four?",
            "Four clusters split one group, and its halves are close together: the silhouette falls from "
            f"{scores[3]:.2f} to "
            f"{scores[4]:.2f}. And every further cluster multiplies the number of combinations to test.",
        )


def _covered_by(cells: np.ndarray) -> tuple[int, int]:
    """Return how many cells contain a test, and how many there are."""
    sizes = [clustering.k for clustering in teaching.states()]
    return CellCounts(sizes).update(cells).covered, total(sizes)


def _plane(inputs: np.ndarray, title: Headline, *, own: bool) -> None:
    """Draw tests in the grid of cells."""
    plot(
        "cells",
        lambda dark: _plane_figure(inputs.tobytes(), title, own, dark, inputs),
        alt=title,
        read=f"Each point is one test. Each cell is a cluster of {_FIRST} (inactive, medium, high) with one of "
        f"{_SECOND} (inactive, high). Filled cells with a solid frame contain a test.",
    )


@st.cache_resource(max_entries=32, show_spinner=False)
def _plane_figure(content: bytes, title: str, own: bool, dark: bool, _inputs: np.ndarray) -> go.Figure:
    """Build the grid of cells once: plotly takes longer to check it than all else on its chapters takes."""
    across, upwards = (clustering.boundaries for clustering in teaching.states())
    watched, assigned = teaching.watched(_inputs), teaching.cells(_inputs)
    return figures.cells(watched, assigned, (across, upwards), (_FIRST, _SECOND), title, own=own, dark=dark)


def _coverage() -> None:
    """Chapter 5."""
    sizes = [clustering.k for clustering in teaching.states()]
    text, picture = halves()
    with text:
        st.header("Which combinations do the tests reach?", anchor=False)
        st.markdown(
            f"{sizes[0]} clusters of {_FIRST} and {sizes[1]} of {_SECOND} make {sizes[0] * sizes[1]} combinations, the "
            "**cells**. The share that contains a test is the **importance-driven coverage** (IDC). **Try:** start at "
            "0 and add one test at a time."
        )
        shown = slide("Tests", len(TESTS), len(TESTS), "tests-shown", "Number of tests shown, in their order.")
    with picture:
        covered, cells = _covered_by(teaching.cells(TESTS[:shown]))
        _plane(TESTS[:shown], counted(f"IDC of {plural(shown, 'test')}", covered, cells, "cell"), own=False)
    with text:
        question(
            "Which test adds nothing? Is it a bad test?",
            "Test 4: a clear seven like test 1, in the same cell. It still checks the prediction, but it exercises no "
            "behaviour that test 1 does not exercise. A thousand of these tests would not increase the coverage.",
        )


def _empty_cells() -> None:
    """Chapter 6."""
    text, picture = halves()
    with text:
        st.header("What to do with an empty cell?", anchor=False)
        st.markdown(
            "No test exercises an empty cell: predictions there are unknown. **Try:** move the star into each of the "
            "three empty cells."
        )
        own = []
        for column, name, ink in zip(st.columns(3), NAMES[0], (0.3, 0.6, 0.3), strict=True):
            with column:
                own.append(slide(f"Ink, {name}", 1.0, ink, f"own-{name}", f"Ink of your picture at its {name}."))
        inputs = np.concatenate([TESTS, [own]])
        all_cells = teaching.cells(inputs)
        before, cells = _covered_by(all_cells[:-1])
        covered, _ = _covered_by(all_cells)
        found = teaching.explain(teaching.START, [own])
        effect = "fills an empty cell" if covered > before else "falls into a covered cell"
    with picture:
        _plane(inputs, counted("IDC with your picture", covered, cells, "cell"), own=True)
    with text:
        st.markdown(f"Your picture {effect}, {cell_name(all_cells[-1])}.")
        st.markdown(_winner(found))
        across, upwards = (found.boundaries for found in teaching.states())
        question(
            "Can all six cells be reached?",
            f"No. Cell 2-1 would need {_FIRST} above {across[-1]:.2f} and {_SECOND} above {upwards[-1]:.2f}, together "
            f"more than {across[-1] + upwards[-1]:.2f}. But {_FIRST} responds to ink at the top, {_SECOND} to its "
            "absence: where both are active they add up to 0.40 times middle + 0.70 times foot, at most 1.10. An empty "
            "cell is a question, not a fault. Some cells cannot be reached. Some contain only unrealistic inputs, such "
            "as a blank picture (cell 0-0). And some are missing tests: ink at the top and at the foot (cell 1-1).",
        )
        st.markdown("Continue with real networks:")
        for name in ("overview", "coverage"):
            st.page_link(PAGES[name].file, label=PAGES[name].title, help=PAGES[name].question)


CHAPTERS: dict[str, tuple[str, Callable[[], None]]] = {
    "network": ("A network", _neurons),
    "relevance": ("Relevance", _relevance),
    "importance": ("Importance", _importance),
    "clusters": ("Clusters", _clusters),
    "cells": ("Cells", _coverage),
    "empty": ("Empty cells", _empty_cells),
}
"""Title and content of every chapter, by its name in the address."""
