"""DeepInspect's distances beside its rivals: last-layer weights, coincidence of labels, and random pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.base.progress import Progress
from idc_core.confusion import (
    ToldApart,
    average_bias,
    by_chance,
    collect_statistics,
    countable_layers,
    evaluate,
    find_errors,
    network_evidence,
    told_apart,
    weight_distance,
)
from idc_core.confusion.probability_matrix import THRESHOLD
from idc_core.datasets import Dataset
from idc_core.errors import DataError
from idc_core.models.network import Network


@dataclass(frozen=True)
class Rival:
    """What one way of ranking pairs of classes finds.

    `found` of random pairs is the mean of the draws, 95 % of which are from `low` to `high`. `spearman` is with the
    truth, `gain` that over a random order's area; NaN of random pairs.
    """

    errors: str
    method: str
    reported: int
    true_pairs: int
    found: float
    low: float
    high: float
    spearman: float
    gain: float


def rivals(errors: str, truth: NDArray[np.floating], scores: dict[str, NDArray[np.floating]]) -> list[Rival]:
    """Compare ways of ranking pairs with the truth, `errors` "confusion" (small scores) or "bias" (large ones).

    The last row is of as many random pairs as the first way reports. The truth and every score are (classes, classes).
    Raises DataError if no pair is defined.
    """
    rows: list[Rival] = []
    for method, score in scores.items():
        found = evaluate(score, truth, "low" if errors == "confusion" else "high")
        at, hits = found.at_deviations, found.at_deviations.true_positives
        rows.append(Rival(errors, method, at.reported, found.true_pairs, hits, hits, hits, found.spearman, found.gain))
        if len(rows) == 1:
            pairs = found.pairs
    first = rows[0]
    drawn = by_chance(pairs, first.true_pairs, first.reported)
    nothing = float("nan")
    mean, low, high = drawn.mean, drawn.low, drawn.high
    return [*rows, Rival(errors, "random pairs", first.reported, first.true_pairs, mean, low, high, nothing, nothing)]


@dataclass(frozen=True)
class ClassErrorRivals:
    """Rows of confusion and bias, and how far each input's neuron coverage tells the predicted classes apart."""

    rows: list[Rival]
    coverage: ToldApart


def class_error_rivals(model: Network, test: Dataset, on_progress: Progress | None = None) -> ClassErrorRivals:
    """Compare on a network whose last counted layer gives the scores of the classes of `test`.

    DataError if the tests have no classes of the network's, or the last layer is not as wide as there are classes.
    """
    layers = countable_layers(model)
    statistics = collect_statistics(model, test, layers, on_progress=on_progress)
    found = find_errors(network_evidence(statistics, test, test.class_names))
    if found.confusion is None or found.disparity is None or found.bias is None:
        raise DataError("Class errors are compared with labels: expected tests of three classes or more.")
    weights = weight_distance(_weights(model, layers[-1], len(test.class_names)))
    rows = rivals("confusion", found.confusion, {"activations": found.distance, "last-layer weights": weights})
    rows += rivals("bias", found.disparity, {"activations": found.bias, "last-layer weights": average_bias(weights)})
    active = (statistics.values > THRESHOLD).mean(1)
    return ClassErrorRivals(rows, told_apart(active, statistics.predictions))


def _weights(model: Network, layer: str, classes: int) -> Floats:
    """Return the last layer's weights, (classes, features)."""
    weight = dict(model.named_parameters())[f"{layer}.weight"]
    rows = weight.detach().cpu().numpy().reshape(len(weight), -1).astype(np.float64)
    if len(rows) != classes:
        raise DataError(f"Layer {layer!r} has {len(rows)} outputs; expected the scores of {classes} classes.")
    return np.asarray(rows)
