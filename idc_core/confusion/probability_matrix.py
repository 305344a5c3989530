"""How often the inputs of each class activate each neuron: counts that stream and merge, and the probability matrix."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from idc_core.base.progress import Progress
from idc_core.confusion.ground_truth import Floats, Ints, Labels, check_labels, count_classes
from idc_core.confusion.scaled_activation import stream_statistics
from idc_core.errors import DataError, SettingError
from idc_core.lrp.session import layer_names
from idc_core.tracing.sources import Inputs

THRESHOLD = 0.5
"""Above this mean scaled output a neuron is active."""


class ActivationCounts:
    """Count how many inputs of each class activate each neuron: a mean scaled output above `threshold`, 0..1."""

    def __init__(self, classes: int, threshold: float = THRESHOLD) -> None:
        if not 0 <= threshold <= 1 or classes < 1:
            raise SettingError(
                f"Expected a threshold in 0..1 and at least one class; got {threshold!r} and {classes!r}."
            )
        self.threshold, self.classes = threshold, classes
        self.images: Ints = np.zeros(classes, np.int64)
        self._active: Ints | None = None

    @property
    def active(self) -> Ints:
        """Inputs of each class that activate each neuron, int64 (neurons, classes)."""
        if self._active is None:
            raise SettingError("Nothing is counted yet: call update with some inputs first.")
        return self._active.T

    @property
    def probability(self) -> Floats:
        """Share of each class's inputs that activate each neuron, float64 (neurons, classes); NaN without inputs."""
        active = self.active.astype(np.float64)
        return np.divide(active, self.images, out=np.full_like(active, np.nan), where=self.images > 0)

    @property
    def unseen(self) -> Ints:
        """Classes that no input was predicted as, int64 (k,): their column is undefined."""
        return np.flatnonzero(self.images == 0).astype(np.int64)

    def update(self, values: NDArray[np.floating], predicted: ArrayLike) -> Self:
        """Count more inputs: mean scaled outputs (n, neurons), and the class or classes each is predicted as."""
        labels = check_labels(predicted, self.classes, "predictions")
        if len(labels) != len(values):
            raise DataError(
                f"There are activations of {len(values):,} inputs and predictions of {len(labels):,}; expected both of "
                "the same inputs."
            )
        if self._active is None:
            self._active = np.zeros((self.classes, values.shape[1]), np.int64)
        if values.shape[1] != self._active.shape[1]:
            raise DataError(f"There are {values.shape[1]} neurons; expected {self._active.shape[1]} as before.")
        rows, classes = _pairs_of(labels)
        if len(rows):
            met, starts = np.unique(classes, return_index=True)
            active = values > np.asarray(self.threshold, values.dtype)
            self._active[met] += np.add.reduceat(active[rows], starts, axis=0, dtype=np.int64)
            self.images += count_classes(labels, self.classes)
        return self

    def together(self, target: Ints, classes: int) -> Self:
        """Return the counts with classes joined: each becomes its `target`, int64 (classes,); of one class an input."""
        joined, active = type(self)(classes, self.threshold), np.zeros((classes, len(self.active)), np.int64)
        np.add.at(joined.images, target, self.images)
        np.add.at(active, target, self.active.T)
        joined._active = active
        return joined

    def merge(self, other: Self) -> Self:
        """Add what another worker has counted; SettingError if threshold, classes or neurons differ."""
        if (self.threshold, self.classes) != (other.threshold, other.classes):
            raise SettingError("Only counts of the same classes and threshold can be merged.")
        if other._active is not None:
            if self._active is not None and self._active.shape != other._active.shape:
                raise SettingError("Only counts of the same neurons can be merged.")
            self._active = other._active.copy() if self._active is None else self._active + other._active
            self.images = self.images + other.images
        return self


def activation_probability(
    model: nn.Module,
    inputs: Inputs,
    layers: str | Sequence[str],
    predicted: ArrayLike | None = None,
    threshold: float = THRESHOLD,
    *,
    multi_label: bool = False,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Floats:
    """Return how often the inputs predicted as each class activate each neuron, float64 (neurons, classes).

    Neurons come layer after layer; a class that no input is predicted as has NaN. `predicted` is int (n,), or 0 and 1
    (n, classes); by default the network's predictions: its highest score, or with `multi_label` every class of positive
    score. Layers, other parameters and errors as `collect_statistics` and `ActivationCounts`; DataError also where
    predictions and inputs do not match. Tian et al., ICSE 2020, section 3: the neuron activation probability matrix;
    needs no labels.
    """
    names = layer_names(layers)
    given = None if predicted is None else np.asarray(predicted)
    counts: ActivationCounts | None = None
    done = 0
    for parts, scores in stream_statistics(model, inputs, names, batch_size=batch_size, on_progress=on_progress):
        if counts is None:
            counts = ActivationCounts(scores.shape[1] if given is None or given.ndim < 2 else given.shape[1], threshold)
        rows = slice(done, done + len(scores))
        done += len(scores)
        if given is not None:
            if len(given) < done:
                raise DataError(f"There are {len(given):,} predictions for at least {done:,} inputs.")
            labels = given[rows]
        else:
            labels = scores > 0 if multi_label else scores.argmax(1)
        counts.update(np.concatenate(parts, axis=1), labels)
    if given is not None and len(given) != done:
        raise DataError(f"There are {len(given):,} predictions for {done:,} inputs; expected one an input.")
    if counts is None:
        raise DataError("There are no inputs to run: expected at least one.")
    return counts.probability


def count_again(
    values: NDArray[np.floating], predicted: ArrayLike, classes: int, threshold: float = THRESHOLD
) -> ActivationCounts:
    """Count kept statistics (n, neurons) at some threshold; as `ActivationCounts.update`."""
    return ActivationCounts(classes, threshold).update(values, predicted)


def _pairs_of(labels: Labels) -> tuple[Ints, Ints]:
    """Return inputs and classes (k,), one pair for each class that an input has, sorted by class."""
    if labels.ndim == 2:
        classes, rows = np.nonzero(labels.T)
        return rows.astype(np.int64), classes.astype(np.int64)
    rows = np.argsort(labels, kind="stable")
    return rows.astype(np.int64), labels[rows]
