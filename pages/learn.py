"""Learn: the method on a network of ten neurons, in six short chapters."""

from collections.abc import Callable
from typing import Any

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
from studio.shell.frame import enter
from studio.shell.pages import PAGES
from studio.widgets.layout import is_dark, plot
from studio.widgets.text import cell_name, percent, plural

WIDTH = 900  # pixels: lines of text stay readable, and the network above the fold

DECISION = "the winning answer"
FIRST, SECOND = (NAMES[1][position] for position in WATCHED)


def choice(label: str, options: list[Any], default: Any, key: str, help: str) -> Any:
    """Let the reader choose one option; an address may say none at all."""
    chosen = st.segmented_control(
        label, options, default=default, required=True, key=key, bind="query-params", help=f"{help} Default {default}."
    )
    return default if chosen is None else chosen


def slide(label: str, most: float, default: float, key: str, help: str) -> Any:
    """Let the reader choose a whole number from 0 on, or a part of 1.0."""
    kind, step = (float, 0.05) if isinstance(most, float) else (int, 1)
    text = f"{help} From 0 to {most:g}; default {default:g}."
    return st.slider(label, kind(0), most, default, step, key=key, bind="query-params", help=text)


def number(value: float, digits: int = 2) -> str:
    """Write a number for a formula, without a negative zero."""
    return f"{value if abs(value) >= 0.5 * 10**-digits else 0.0:.{digits}f}"


def product(value: float, weight: float, digits: int = 2) -> str:
    """Write what a line carries."""
    factor = number(weight, digits)
    return rf"{number(value, digits)} \times {f'({factor})' if factor.startswith('-') else factor}"


def question(text: str, answer: str) -> None:
    """Ask, and keep the answer folded away."""
    st.markdown(f"**Question.** {text}")
    with st.expander("Show the answer"):
        st.markdown(answer)


def winner(found: teaching.Explanation) -> str:
    """Say which answer wins."""
    one, seven = found.values[-1][0]
    name = NAMES[-1][int(found.values[-1][0].argmax())]
    text = f"The network answers **{name}**: the scores are {number(one)} for one and {number(seven)} for seven."
    return typeset(text)


def neuron_sum(state: Played, found: teaching.Explanation) -> None:
    """Write out what the neuron at the end of the chosen line computes."""
    layer, _, end = state.edge
    values, weights = found.values[layer][0], state.weights[layer][:, end]
    terms = " + ".join(product(x, w) for x, w in zip(values, weights, strict=True))
    name, added, passed = state.ends[1], float(values @ weights), float(found.values[layer + 1][0, end])
    st.latex(rf"\text{{{name}}} = {terms} = {number(added)}")
    if layer == len(state.weights) - 1:
        st.markdown(typeset(f"{name} is an answer: its sum is its score, {number(passed)}."))
    else:
        why = "is above zero" if added > 0 else "is not above zero"
        st.markdown(f"The sum of {name} {why}, so it passes on {number(passed)}.")


def equation(state: Played, found: teaching.Explanation) -> None:
    """Write equation 1 with the numbers of the chosen line."""
    layer, start, end = state.edge
    values, weights = found.values[layer][0], state.weights[layer][:, end]
    above, below = float(found.relevance[layer + 1][0, end]), float(found.relevance[layer][0, start])
    z = float(values @ weights)
    sign = "-" if np.signbit(z) else "+"
    names = state.ends
    st.markdown(
        f"For the chosen line, from {names[0]} to {names[1]} (click another): what it carried, divided by all that "
        f"arrived at {names[1]}, times the relevance of {names[1]}."
    )
    st.latex(
        r"R_{i \leftarrow j} = \frac{x_i \, w_{ij}}{\sum_k x_k \, w_{kj} \; \pm \; \varepsilon} \; R_j \qquad "
        rf"R_{{\text{{{names[0]}}} \leftarrow \text{{{names[1]}}}}} = "
        rf"\frac{{{product(values[start], weights[start], 3)}}}{{{number(z, 3)} {sign} 0.000001}} "
        rf"\times {product(1, above, 3).partition('times ')[2]} = {number(found.flows[layer][0, start, end], 3)}"
    )
    flows = found.flows[layer][0, start]
    terms = " + ".join(f"{number(flow, 3)} from {name}" for flow, name in zip(flows, NAMES[layer + 1], strict=True))
    text = f"All that comes back to {names[0]}: {terms} = **{number(below, 3)}**."
    st.markdown(typeset(text.replace("+ -", "\u2212 ")))


def conservation(found: teaching.Explanation) -> None:
    """Show that every layer holds the same relevance."""
    sums = [float(relevance[0].sum()) for relevance in found.relevance]
    columns = st.columns(len(sums))
    for column, layer, value in zip(columns, LAYERS, sums, strict=True):
        column.metric(f"{layer.capitalize()}: sum", typeset(number(value, 3)), border=True)
    worst = max(abs(value - sums[-1]) for value in sums)
    st.caption(f"The largest difference between two layers is {worst:.6f}, from the tiny ε in the equation below.")


def again() -> None:
    """Offer the way back to the start."""
    st.button("Put all numbers back", on_click=network.reset)


@st.fragment
def play_forward() -> None:
    """Chapter 1's network with what one neuron computes."""
    state = network.played()
    network.draw(state, relevance=False)
    found = teaching.explain(state.weights, state.inputs[None])
    st.markdown(winner(found))
    neuron_sum(state, found)
    again()


def neurons() -> None:
    """Chapter 1."""
    st.header("What does a neuron do?", anchor=False)
    st.markdown(
        "This small network tells handwritten **ones** from **sevens**. It sees three numbers between 0 and 1: how "
        "much ink a picture has at its top, in its middle and at its foot. Each circle is a **neuron**. It multiplies "
        "every number that arrives by the **weight** of its line and adds up. If the sum is above zero it passes the "
        "sum on; otherwise it passes on 0 and is silent (dashed ring). The last two sums are the **scores**, and the "
        "higher one is the answer (✓)."
    )
    st.markdown("**Try:** drag the square *top* down until the answer changes. Then drag some lines.")
    play_forward()
    question(
        "With all numbers at the start, a3 is silent. What would wake it up?",
        "Less ink at the top or more at the foot: a3 adds up \u22121.00 times top + 0.20 times middle + 1.00 times "
        "foot. "
        "With the top at 0.40 that is -0.40 + 0.10 + 0.40 = 0.10, and a3 speaks. It looks for ones.",
    )


@st.fragment
def play_backward() -> None:
    """Chapter 2's network with equation 1 and the sum of every layer."""
    explained = choice(
        "Whose score is shared out", [DECISION, *NAMES[-1]], DECISION, "explained", "Which answer is explained."
    )
    target = None if explained == DECISION else NAMES[-1].index(explained)
    state = network.played()
    network.draw(state, relevance=True, target=target)
    found = teaching.explain(state.weights, state.inputs[None], target)
    st.markdown(winner(found))
    conservation(found)
    equation(state, found)
    again()


def relevance() -> None:
    """Chapter 2."""
    st.header("Which input decided?", anchor=False)
    st.markdown(
        "Go backwards. The score of an answer is credit to be shared out; a neuron's share is its **relevance** (R). "
        "Every neuron hands its share back along its lines, each line in proportion to what it had carried. Red lines "
        "spoke for the answer, blue dashed ones against it; the number on a line is what it hands back."
    )
    st.markdown("**Try:** drag any line and watch the four sums at the foot: they change, but they stay equal.")
    play_backward()
    question(
        "With all numbers at the start, there is ink at the foot, yet the foot's relevance is negative. Why?",
        "Its line to a1 has the weight -0.30: ink at the foot lowers a1, and a1 is what says seven. The little that "
        "it adds through a2 does not make up for that. So the foot spoke against the answer.",
    )
    with st.expander("What the equation leaves open"):
        st.markdown(
            "ε is a very small number with the sign of the sum; it only keeps the division defined where a sum is 0. "
            "The networks on the other pages also have biases, constants that are added to a sum. A bias can keep its "
            "own share of the relevance or spread it over the inputs; this network has none, so everything adds up. "
            "The equation is number (1) in Gerasimou, Eniser, Sen and Cakan, ICSE 2020."
        )


@st.fragment
def play_importance() -> None:
    """Chapter 3's network with importance over all pictures."""
    state = network.played()
    network.draw(state, relevance=True)
    found = teaching.explain(state.weights, PICTURES)
    activation, shares = found.values[1].mean(axis=0), found.relevance[1].sum(axis=0)
    busiest, first = NAMES[1][int(activation.argmax())], NAMES[1][int(shares.argmax())]
    if busiest == first:
        title = f"{first} is both the busiest neuron and the most important one"
    else:
        title = f"{busiest} is the busiest neuron, but {first} is the most important one"
    plot(
        "importance",
        figures.importance(activation, shares, NAMES[1], title, dark=is_dark()),
        alt=title,
        read=f"each bar is a neuron of the first layer over {len(PICTURES)} pictures: left how much it passes on, "
        "right how much relevance it gets in all.",
    )
    again()


def importance() -> None:
    """Chapter 3."""
    st.header("Which neurons matter?", anchor=False)
    st.markdown(
        f"Relevance belongs to one picture. Added up over many, here {len(PICTURES)} ones and sevens, it tells which "
        "neurons decide in general: their **importance**. What a neuron passes on is its **activation**; a neuron can "
        "be busy without being important."
    )
    st.markdown("**Try:** drag the lines that leave a2 until a2 is the most important neuron.")
    play_importance()
    question(
        "With all numbers at the start, a2 is the busiest neuron. Why is it the least important?",
        "It answers to ink anywhere, so ones and sevens excite it alike, and its lines onwards are weak (0.10 and "
        "0.20): it hardly changes any decision. Tests should vary the neurons that decide. The studio keeps the *m* "
        f"most important ones; from here on *m* = 2: {FIRST} and {SECOND}, with all numbers as at the start.",
    )


def step_words(step: teaching.Step, before: teaching.Step | None) -> str:
    """Say what a step of k-means did."""
    if before is None:
        return "A first guess: the centroids sit on the lowest values"
    if step.kind == "move":
        return f"Every centroid moves to the mean of its values: the spread falls to {step.spread:.3f}"
    if step.kind == "done":
        return f"No value changes its centroid: done, with a spread of {step.spread:.3f}"
    changed = int((step.assignment != before.assignment).sum())
    return f"Every value joins the nearest centroid: {plural(changed, 'value')} changed"


def states() -> None:
    """Chapter 4."""
    found = teaching.states()[0]
    values = teaching.watched(PICTURES)[:, 0]
    st.header("What states does a neuron have?", anchor=False)
    st.markdown(
        f"Below is what {FIRST} passes on for each of the {len(PICTURES)} pictures. The values come in groups: silent, "
        "medium, high. **k-means** finds such groups, called **clusters**: guess *k* centres (**centroids**), let "
        "every value join the nearest, move each centroid to the mean of its values, and repeat. A cluster is a "
        "**state** of the neuron."
    )
    st.markdown("**Try:** move the step from left to right. Then choose four clusters: where do they get stuck?")
    k = choice("Clusters k", [2, 3, 4], found.k, "k", "In how many clusters the values are put, from 2 to 4.")
    steps = teaching.kmeans_steps(values, k)
    # A slider for each k: their numbers of steps differ.
    at = slide("Step", len(steps) - 1, 0, f"step{k}", "How far k-means has come.")
    step, title = steps[at], step_words(steps[at], steps[at - 1] if at else None)
    plot(
        "kmeans",
        figures.kmeans(values, step, title, dark=is_dark()),
        alt=title,
        read="marks are pictures, their shape is their cluster; vertical lines are centroids. The spread is the sum of "
        "squared distances from the values to their centroids.",
    )
    best = found.inertia[k]
    if step.kind == "done" and step.spread > best + 1e-9:
        st.markdown(
            f"It is done, but stuck: the best {k} clusters have a spread of {best:.3f}. From a poor start k-means can "
            "stop too early. The studio does not step: in one dimension it computes the best clusters directly."
        )
    scores = found.silhouettes
    title = f"{found.k} clusters fit {FIRST} best, with a silhouette of {scores[found.k]:.2f}"
    plot(
        "silhouettes",
        cluster_figures.silhouettes([found], [FIRST], title, dark=is_dark()),
        alt=title,
        read="the **silhouette** compares how far a value is from its own cluster and from the next one; near 1 means "
        "tight clusters far apart. The star is the number that is kept.",
    )
    question(
        "More clusters always lower the spread. Why not take four?",
        f"Four clusters split a group that belongs together, so its halves are no longer far apart: the silhouette "
        f"falls from {scores[3]:.2f} to {scores[4]:.2f}. And every further state multiplies what has to be tested.",
    )


def covered_by(cells: np.ndarray) -> tuple[int, int]:
    """Return how many cells hold a test, and how many there are."""
    sizes = [found.k for found in teaching.states()]
    return CellCounts(sizes).update(cells).covered, total(sizes)


def plane(inputs: np.ndarray, title: str, *, own: bool) -> None:
    """Draw tests in the grid of cells."""
    across, upwards = (found.boundaries for found in teaching.states())
    plot(
        "cells",
        figures.cells(
            teaching.watched(inputs),
            teaching.cells(inputs),
            (across, upwards),
            (FIRST, SECOND),
            title,
            own=own,
            dark=is_dark(),
        ),
        alt=title,
        read=f"a cell is a state of {FIRST} (across: silent, medium, high) with a state of {SECOND} (upwards: silent, "
        "high); a filled cell with a solid frame holds a test.",
    )


def coverage() -> None:
    """Chapter 5."""
    sizes = [found.k for found in teaching.states()]
    st.header("Which combinations do the tests reach?", anchor=False)
    st.markdown(
        f"{FIRST} has {sizes[0]} states, {SECOND} has {sizes[1]}: {sizes[0] * sizes[1]} combinations, the **cells**. "
        "A test is a picture; it falls into one cell. The share of cells that hold a test is the "
        "**importance-driven coverage** (IDC)."
    )
    st.markdown("**Try:** go back to no test and add one at a time. Which one adds nothing?")
    shown = slide("Tests", len(TESTS), len(TESTS), "shown", "How many of the tests are shown, in their order.")
    covered, cells = covered_by(teaching.cells(TESTS[:shown]))
    plane(
        TESTS[:shown],
        f"{plural(shown, 'test')} {'fill' if shown != 1 else 'fills'} {covered} of {cells} cells: "
        f"IDC {percent(covered / cells)}",
        own=False,
    )
    question(
        "Which test adds nothing, and does that make it a bad test?",
        "Test 4: a clear seven like test 1, in the same cell. It still checks that the answer is right, but it "
        "exercises no behaviour that test 1 has not exercised. A thousand such tests would not raise the coverage.",
    )


def empty_cells() -> None:
    """Chapter 6."""
    st.header("What to do with an empty cell?", anchor=False)
    st.markdown(
        "An empty cell is a way of deciding that nobody has looked at: nothing is known about the answers there. "
        "The next step is to make an input that falls into it."
    )
    st.markdown("**Try:** put ink where you like and bring the star into each of the three empty cells.")
    own = []
    for column, name, ink in zip(st.columns(3), NAMES[0], (0.3, 0.6, 0.3), strict=True):
        with column:
            own.append(slide(f"Ink at the {name}", 1.0, ink, f"own-{name}", f"How dark your picture is at its {name}."))
    inputs = np.concatenate([TESTS, [own]])
    all_cells = teaching.cells(inputs)
    before, cells = covered_by(all_cells[:-1])
    covered, _ = covered_by(all_cells)
    found = teaching.explain(teaching.START, [own])
    effect = "fills an empty cell" if covered > before else "falls into a cell that a test had reached"
    plane(inputs, f"Your picture {effect}, {cell_name(all_cells[-1])}: IDC {percent(covered / cells)}", own=True)
    st.markdown(winner(found))
    across, upwards = (found.boundaries for found in teaching.states())
    question(
        "Can all six cells be reached?",
        f"No. Cell 2-1 would need {FIRST} above {across[-1]:.2f} and {SECOND} above {upwards[-1]:.2f}, together more "
        f"than {across[-1] + upwards[-1]:.2f}. But {FIRST} looks for ink at the top, {SECOND} for its absence: where "
        "neither is silent they add up to 0.40 times middle + 0.70 times foot, never more than 1.10. An empty cell is "
        "a question, not yet a fault. Some cells cannot be reached. Some hold only inputs that nobody would use, such "
        "as a blank picture (cell 0-0). And some are the tests that were missing: ink at the top and at the foot "
        "(cell 1-1).",
    )
    st.markdown("Now look at real networks:")
    for name in ("overview", "coverage"):
        st.page_link(PAGES[name].file, label=PAGES[name].question, help=PAGES[name].help)


CHAPTERS: dict[str, Callable[[], None]] = {
    "1 A network": neurons,
    "2 Relevance": relevance,
    "3 Importance": importance,
    "4 States": states,
    "5 Cells": coverage,
    "6 Empty cells": empty_cells,
}
NAMES_OF_CHAPTERS = list(CHAPTERS)


def turn(to: str) -> None:
    """Open a chapter."""
    st.session_state["chapter"] = to


enter()
with st.container(width=WIDTH):
    chapter = choice("Chapter", NAMES_OF_CHAPTERS, NAMES_OF_CHAPTERS[0], "chapter", "Six steps, each with a question.")
    CHAPTERS[chapter]()
    place = NAMES_OF_CHAPTERS.index(chapter)
    with st.container(horizontal=True):
        for label, to in (("Previous", place - 1), ("Next", place + 1)):
            if 0 <= to < len(CHAPTERS):
                st.button(f"{label}: {NAMES_OF_CHAPTERS[to][2:]}", on_click=turn, args=(NAMES_OF_CHAPTERS[to],))
