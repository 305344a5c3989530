"""Predictions of a network: class, confidence and whether it is right, from scores before the softmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.dataset import Task


@dataclass(frozen=True, eq=False)
class Predictions:
    """A network's predictions for n inputs."""

    classes: NDArray[np.int64]  # (n,), the class with the highest score; 0 for regression
    confidence: NDArray[np.float32]
    """(n,), softmax probability of the predicted class; for regression the predicted value."""
    correct: NDArray[np.bool_]  # (n,), whether the prediction is right; True throughout for regression

    def only(self, rows: NDArray[np.generic]) -> Predictions:
        """Return the predictions of some inputs."""
        return Predictions(self.classes[rows], self.confidence[rows], self.correct[rows])

    def quality(self, targets: NDArray[np.number], task: Task) -> tuple[float | None, float | None]:
        """Return the accuracy of a classification and the root mean squared error of a regression; else None."""
        if task == "regression":
            return None, float(np.sqrt(np.square(self.confidence.astype(np.float64) - targets).mean()))
        return float(self.correct.mean()), None


def predictions_of(scores: NDArray[np.floating], targets: NDArray[np.number], task: Task) -> Predictions:
    """Return the predictions of scores (n, classes) before the softmax."""
    if task == "regression":
        return Predictions(np.zeros(len(scores), np.int64), scores[:, 0].astype(np.float32), np.ones(len(scores), bool))
    classes = np.asarray(scores.argmax(1), np.int64)
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    confidence = (shifted.max(1) / shifted.sum(1)).astype(np.float32)
    return Predictions(classes, confidence, classes == targets)


def join_predictions(several: Sequence[Predictions]) -> Predictions:
    """Put predictions one after the other."""
    return Predictions(
        *(np.concatenate([getattr(part, name) for part in several]) for name in ("classes", "confidence", "correct"))
    )
