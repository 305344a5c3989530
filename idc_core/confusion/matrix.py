"""The confusion matrix, and recall and precision of every class with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idc_core.base.statistics import wilson
from idc_core.confusion.ground_truth import Floats, Ints, check_labels, check_together, count_classes

_FEW = 10
"""Inputs below which Wilson's interval holds too rarely, and the exact one is taken: on either side of a share."""


@dataclass(frozen=True, eq=False)
class Shares:
    """A share of every class; arrays (classes,): `count` of `inputs`, and its 95 % interval `low` to `high`, 0..1.

    NaN where a class has no inputs.
    """

    count: Ints
    inputs: Ints

    @cached_property
    def share(self) -> Floats:
        """The shares, 0..1."""
        shares: Floats = np.divide(self.count, self.inputs, out=np.full(len(self.count), np.nan), where=self.inputs > 0)
        return shares

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of the 95 % intervals."""
        return share_interval(self.count, self.inputs)


@dataclass(frozen=True, eq=False)
class ClassTable:
    """What labels say of every class.

    `counts` are inputs by true (row) and predicted class (column), int64 (classes, classes); None where inputs have
    several labels. `recall` are the inputs of each class that are predicted as it, `precision` those predicted as each
    class that have it.
    """

    class_names: tuple[str, ...]
    counts: Ints | None
    recall: Shares
    precision: Shares

    @cached_property
    def row_shares(self) -> Floats | None:
        """`counts` as shares of the inputs of each true class, 0..1; NaN for a class without any."""
        if self.counts is None:
            return None
        inputs = self.counts.sum(1, keepdims=True)
        shares: Floats = np.divide(self.counts, inputs, out=np.full(self.counts.shape, np.nan), where=inputs > 0)
        return shares


def class_table(true: ArrayLike, predicted: ArrayLike, class_names: tuple[str, ...]) -> ClassTable:
    """Return the confusion matrix, recall and precision.

    Parameters
    ----------
    true, predicted : array
        One class per input, int (n,), or 0 and 1 for each class, (n, classes).
    class_names : tuple of str

    Raises
    ------
    DataError
        For labels out of range, of another form, or not of the same inputs.
    """
    classes = len(class_names)
    right = check_labels(true, classes, "true labels")
    predictions = check_labels(predicted, classes, "predictions")
    check_together(right, predictions)
    counts = None
    if right.ndim == 1:
        counts = np.bincount(right * classes + predictions, minlength=classes**2).reshape(classes, classes)
        counts = counts.astype(np.int64)
        hits = np.diag(counts)
    else:
        hits = (right & predictions).sum(0).astype(np.int64)
    of, said = count_classes(right, classes), count_classes(predictions, classes)
    return ClassTable(class_names, counts, Shares(hits, of), Shares(hits, said))


def share_interval(count: NDArray[np.integer], inputs: NDArray[np.integer]) -> tuple[Floats, Floats]:
    """Return the ends of the 95 % interval of shares `count` / `inputs`; NaN without inputs.

    Notes
    -----
    Wilson's interval; where fewer than `_FEW` inputs are counted, or are not, the exact one (C. J. Clopper, E. S.
    Pearson, The use of confidence or fiducial limits illustrated in the case of the binomial, Biometrika 26, 1934).
    """
    hits, trials = np.asarray(count, np.float64), np.asarray(inputs, np.float64)
    there = trials > 0
    share = np.divide(hits, trials, out=np.zeros_like(trials), where=there)
    low, high = wilson(share, np.where(there, trials, 1.0))
    few = there & (np.minimum(hits, trials - hits) < _FEW)
    if few.any():
        from idc_core.base.scipy_parts import special

        k, n = hits[few], trials[few]
        # Where a side has no inputs, its end is that of the range, and the other arguments only fill the place.
        low[few] = np.where(k > 0, special.betaincinv(np.maximum(k, 1), n - k + 1, 0.025), 0.0)
        high[few] = np.where(k < n, special.betaincinv(k + 1, np.maximum(n - k, 1), 0.975), 1.0)
    return np.where(there, low, np.nan), np.where(there, high, np.nan)
