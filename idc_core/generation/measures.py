"""Measures of disagreements: distances to their seeds, majority votes, and how often each model is outvoted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Array, Floats
from idc_core.errors import SettingError

Answers = NDArray[np.int64] | NDArray[np.float32]
"""What models say of inputs: classes, or values of a regression."""

_NO_MAJORITY = -1
"""The label of a disagreement on which no class has more than half of the votes."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Distance of each disagreement to its seed, values in 0..1, (n,) each."""

    l1: Floats
    """Sum of the absolute changes of all values."""
    l2: Floats
    """Euclidean length of the change."""
    linf: Floats
    """Largest absolute change of a value."""

    @property
    def diversity(self) -> float:
        """Mean L1 distance (DeepXplore, section 7.1); NaN without disagreements."""
        return float(self.l1.mean()) if len(self.l1) else float("nan")


def distances(inputs: NDArray[np.floating], seeds: NDArray[np.floating]) -> Distances:
    """Measure the distance of each input (n, C, H, W) to its seed."""
    if inputs.shape != seeds.shape:
        raise SettingError(f"Expected one seed per input, got shapes {inputs.shape} and {seeds.shape}.")
    change = np.abs(inputs.astype(np.float64) - seeds).reshape(len(inputs), int(np.prod(inputs.shape[1:])))
    return Distances(change.sum(1), np.sqrt(np.square(change).sum(1)), change.max(1, initial=0.0))


def majority(predictions: Answers, bound: float | None = None) -> Answers:
    """Return the prediction of more than half of the models for each input: its automatic label, (n,).

    `predictions`, (n, models), are classes, or with a `bound` values of a regression: those that differ by at most this
    from the middle one agree, and their mean is the label. Without a majority `_NO_MAJORITY`, or NaN. DeepXplore labels
    disagreements by majority vote (section 7.3); two models that disagree never have one.
    """
    models = predictions.shape[1]
    if bound is None:
        votes = (predictions[:, :, None] == predictions[:, None, :]).sum(2)
        first = votes.argmax(1)
        rows = np.arange(len(predictions))
        label = np.where(2 * votes[rows, first] > models, predictions[rows, first], _NO_MAJORITY)
        return np.asarray(label, np.int64)
    middle: Array = np.sort(predictions, axis=1)[:, (models - 1) // 2]
    agree = np.abs(predictions - middle[:, None]) <= bound
    counts = agree.sum(1)
    means = (predictions * agree).sum(1) / np.maximum(counts, 1)
    return np.where(2 * counts > models, means, np.nan).astype(np.float32)


def has_majority(labels: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return which labels of `majority` are one, bool (n,)."""
    return np.isfinite(labels) if labels.dtype.kind == "f" else np.asarray(labels != _NO_MAJORITY)


def outvoted(predictions: Answers, bound: float | None = None) -> NDArray[np.int64]:
    """Return on how many inputs each model predicts otherwise than the majority, int64 (models,)."""
    labels = majority(predictions, bound)
    if bound is None:
        against = (predictions != labels[:, None]) & (labels != _NO_MAJORITY)[:, None]
    else:
        with np.errstate(invalid="ignore"):
            against = np.abs(predictions - labels[:, None]) > bound
    return np.asarray(against.sum(0), np.int64)
