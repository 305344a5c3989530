"""Put relevance into words: the finding about one test, and whether relevance is conserved through the layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.figures import heatmaps
from studio.engine.explanations import INPUT, Explanation, baseline_scores
from studio.engine.results import View
from studio.engine.wording import amount, quantity
from studio.text import count, percent, plural


def sentence(
    view: View, position: int, scores: NDArray[np.float32], first: Explanation, tokens: list[str], units: str
) -> str:
    """Say what the network predicts for a test, and where half of the positive relevance is.

    `tokens` are the words or characters (`units` says which) of a text; empty for an image.
    """
    number = view.test.ids[position]
    said = int(view.analysis.predictions[position])
    values = first.layers[INPUT][: len(tokens)] if tokens else first.maps[INPUT]
    positive = "positive relevance"
    names = view.train.class_names
    if not view.is_classifier:
        angle, true = float(scores[0]), float(view.test.targets[position])
        what = quantity(view.test)
        if what.signed:
            opening = f"Test {number}: the network steers {_steer(angle)} (the driver: {_steer(true)})"
        else:
            opening = (
                f"Test {number}: the network predicts {amount(view.test, angle)} (true: {amount(view.test, true)})"
            )
        positive = f"relevance {what.positive if angle > 0 else what.negative}".replace(" to ", " towards ")
        values = values if angle > 0 else -values
    elif view.correct is not None and not view.correct[position]:
        true_class = view.test.class_names[view.test.targets[position]]
        opening = f"Test {number} is classified as {names[said]} (true class: {true_class})"
    else:
        rightly = "correctly " if view.correct is not None else ""
        confidence = percent(float(view.analysis.confidence[position]))
        opening = f"Test {number} is {rightly}classified as {names[said]} with {confidence} confidence"
    if view.is_classifier and first.target != said:
        opening += f"; the score of class {names[first.target]} is {scores[first.target]:.2f}"
    most = heatmaps.half(values)
    if not len(most):
        return f"**{opening}. No part of it has positive relevance.**"
    if not tokens:
        place = f"{percent(len(most) / values.size)} of the pixels"
    else:
        best = ", ".join(f"\u201c{tokens[index]}\u201d" for index in most[:3])
        more = " and others" if len(most) > 3 else ""
        place = f"{count(len(most))} of {plural(len(tokens), units[:-1])}: {best}{more}"
    return f"**{opening}. Half of the {positive} is in {place}.**"


def _steer(angle: float) -> str:
    return f"{abs(angle):.3f} rad to the {_side(angle)}"


def _side(angle: float) -> str:
    return "left" if angle > 0 else "right"


def conserved(view: View, scores: NDArray[np.float32], first: Explanation) -> tuple[str, float, str]:
    """Return the finding about the sums of all layers, the expected sum, and its name."""
    sums = list(first.sums.values())
    expected, called = float(scores[first.target]), "score"
    if "baseline" in first.settings:
        expected -= float(baseline_scores(view, float(first.settings["baseline"]))[first.target])
        called = "score minus the baseline's score"
    if np.allclose(sums, expected, rtol=1e-3, atol=1e-6):
        return f"Relevance is conserved: every layer sums to the {called}, {expected:.2f}", expected, called
    title = f"The input's relevance sums to {sums[-1]:.2f}, the {called} is {expected:.2f}"
    if first.settings.get("bias") == "absorb":
        title += f"; {abs(sums[-1] - expected):.2g} of the score is absorbed by biases and not explained"
    return title, expected, called
