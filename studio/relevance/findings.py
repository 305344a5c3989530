"""Put relevance into words: the finding about one test, and whether relevance is conserved through the layers."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.figures import heatmaps
from studio.jobs.explanations import INPUT, Explanation, baseline_activation, baseline_scores
from studio.jobs.results import View
from studio.jobs.wording import amount, quantity
from studio.shell import tabs
from studio.shell.pages import go_to
from studio.state.selection import select, selected
from studio.text import count, literal, parse_cell, percent, plural, signed
from studio.widgets.layout import label

_MUCH = 0.25
"""Share of the score by which a heatmap's sum misses it where the page says so first."""


def draw_way_back(view: View, position: int) -> None:
    """Draw the way back to the selected cell of the grid, where the test lies in it."""
    cell = selected().cell
    if parse_cell(cell, view.sizes) != tuple(view.analysis.assignments[position].tolist()):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="crumbs"):
        for text, kept in (("Grid", ""), (f"Cell {cell}", cell)):
            st.button(text, key=f"crumb-{text.split()[0]}", type="tertiary", on_click=_to_grid, args=(kept,))
            st.markdown("\u203a")
        st.markdown(f"Test {view.test.ids[position]}")


def _to_grid(cell: str) -> None:
    """Open the grid, with a cell or with none."""
    select(cell=cell)
    tabs.open_at("coverage", "grid")
    go_to("coverage")


def opening(view: View, position: int) -> str:
    """Say what the network predicts for a test, beside what is true of it, as Markdown without a full stop."""
    number = label(f"Test {view.test.ids[position]}")
    predicted = int(view.analysis.predictions[position])
    if not view.is_classifier:
        angle, true = float(view.analysis.confidence[position]), float(view.test.targets[position])
        if quantity(view.test).signed:
            return f"{number}: the network steers {_steer(angle)} (the driver: {_steer(true)})"
        return f"{number}: the network predicts {amount(view.test, angle)} (true: {amount(view.test, true)})"
    name = literal(view.train.class_names[predicted])
    if view.correct is not None and not view.correct[position]:
        true_class = literal(view.test.class_names[view.test.targets[position]])
        return f"{number} is classified as {name} (true class: {true_class})"
    rightly = "correctly " if view.correct is not None else ""
    confidence = percent(float(view.analysis.confidence[position]))
    return f"{number} is {rightly}classified as {name} with {confidence} confidence"


def activation(view: View, position: int, first: Explanation) -> float:
    """Return a test's activation of the neuron that is explained."""
    return float(view.test_traces.activations[view.setup.layer][position, first.neuron])


def sentence(
    view: View, position: int, scores: NDArray[np.float32], first: Explanation, tokens: list[str], units: str
) -> str:
    """Say where half of the positive relevance of one score, or of a neuron's activation, is.

    `tokens` are the parts (`units` says which) of an input that is no picture; empty for an image.
    """
    values = first.parts[: len(tokens)] if tokens else first.maps[INPUT]
    positive, start = "positive relevance", ""
    if view.is_classifier and first.neuron is None:
        name, score = literal(view.train.class_names[first.target]), signed(float(scores[first.target]), ".2f")
        start = f"Class {name} has the score {score}. "
    elif first.neuron is None:
        angle, what = float(scores[0]), quantity(view.test)
        positive = f"relevance {what.positive if angle > 0 else what.negative}".replace(" to ", " towards ")
        values = values if angle > 0 else -values
    if first.neuron is not None:
        where = f"{literal(view.setup.layer)} has the activation {signed(activation(view, position, first), '.2f')}"
        positive, start = "positive relevance", f"Neuron {first.neuron} of {where}. "
    most = heatmaps.half(values)
    if not len(most):
        return f"{start}No part of the test has positive relevance."
    if not tokens:
        place = f"{percent(len(most) / values.size)} of the pixels"
    else:
        best = ", ".join(f"\u201c{literal(tokens[index].strip())}\u201d" for index in most[:3])
        more = " and others" if len(most) > 3 else ""
        place = f"{count(len(most))} of {plural(len(tokens), units[:-1])}: {best}{more}"
    return f"{start}Half of the {positive} is in {place}."


def _steer(angle: float) -> str:
    return f"{abs(angle):.3f} rad to the {_side(angle)}"


def _side(angle: float) -> str:
    return "left" if angle > 0 else "right"


def _expected_sum(view: View, position: int, scores: NDArray[np.float32], first: Explanation) -> tuple[float, str]:
    """Return what the relevance of every layer sums to where nothing is lost, and its name."""
    of_neuron, called = first.neuron is not None, "score" if first.neuron is None else "activation"
    expected = activation(view, position, first) if of_neuron else float(scores[first.target])
    if "baseline" not in first.settings:
        return expected, called
    grey = float(first.settings["baseline"])
    expected -= (
        float(baseline_scores(view, grey)[first.target])
        if first.neuron is None
        else baseline_activation(view, grey, first.neuron)
    )
    return expected, f"{called} minus the baseline's {called}"


def unexplained(view: View, position: int, scores: NDArray[np.float32], first: Explanation) -> str:
    """Say that a heatmap's sum misses the score by much; empty where it does not."""
    (expected, called), total = _expected_sum(view, position, scores, first), first.sums[INPUT]
    if abs(total - expected) < _MUCH * abs(expected):
        return ""
    said = f"The heatmap sums to {signed(total)}, the {called} is {signed(expected)}"
    return f"{said}{_rest(total, expected, called, first)}."


def _rest(total: float, expected: float, called: str, first: Explanation) -> str:
    """Say by how much a sum of relevance exceeds the score, or what of the score biases absorb, to two digits."""
    missing = round(round(expected, 2) - round(total, 2), 2) * (1 if expected >= 0 else -1)
    if missing < 0:
        return f"; it exceeds the {called} by {-missing:.2f}"
    absorbs = missing > 0 and first.settings.get("bias") == "absorb"
    return f"; {missing:.2f} is absorbed by biases" if absorbs else ""


def conserved(view: View, position: int, scores: NDArray[np.float32], first: Explanation) -> tuple[str, float, str]:
    """Return what the sums of all layers are beside the expected sum, as a sentence, the expected sum, and its name."""
    sums = list(first.sums.values())
    expected, called = _expected_sum(view, position, scores, first)
    is_equal = np.isclose(sums, expected, rtol=1e-3, atol=1e-6)
    if is_equal.all():
        return f"Relevance is conserved: every layer sums to the {called}, {expected:.2f}.", expected, called
    if is_equal[-1]:
        return f"The input's relevance sums to the {called}, {expected:.2f}; layers between do not.", expected, called
    said = f"The input's relevance sums to {sums[-1]:.2f}, the {called} is {expected:.2f}"
    return f"{said}{_rest(sums[-1], expected, called, first)}.", expected, called
