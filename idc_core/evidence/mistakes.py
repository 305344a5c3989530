"""What a misclassified test most likely is: the network's error, a wrong label, ambiguous, or outside the domain.

Whether a label is doubted is asked of two that do not know each other: the network, by confident learning, and the
training inputs closest to the test, as they are, whose labels vote. Either alone doubts more labels that are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats, Ints
from idc_core.errors import DataError
from idc_core.evidence.finding import Control, Finding

NEIGHBOURS = 10
"""Training inputs that vote on a test."""

_CALIBRATION = 500
"""Correctly classified tests, at most, that say how far from training inputs a test usually is."""

_RARE = 0.01
"""A test is outside the domain where at most this share of correctly classified ones is as far from training inputs."""

_HARD = 0.1
"""Share of the correctly classified tests, the least confident ones, by which chance is measured: they are hard too."""

_BELIEVED = 0.5
"""Share of the doubts that chance may explain at most, for a label to be called wrong at all."""

_BLOCK = 256
"""Tests whose distances are computed at a time."""


class Reason(StrEnum):
    """What a misclassified test most likely is."""

    NETWORK = "the network's error"
    LABEL = "a wrong label"
    AMBIGUOUS = "ambiguous"
    OUTSIDE = "outside the domain"


@dataclass(frozen=True, eq=False)
class Mistakes:
    """The misclassified tests, and what each most likely is.

    Attributes
    ----------
    tests : ndarray, int64 (k,)
        Positions of the misclassified tests, ascending.
    reasons : tuple of Reason
        What each most likely is.
    for_label, for_prediction : ndarray, float64 (k,)
        Share, 0..1, of the closest training inputs that are of the test's class, and of the predicted one.
    own : ndarray, float64 (k,)
        The network's probability of the test's class.
    p : ndarray, float64 (k,)
        Share of correctly classified tests that are at least as far from the training inputs.
    doubted : int
        Labels that network and neighbours doubt.
    by_chance : float
        How many of them are to be expected if all labels are right, and network and neighbours err independently of
        each other: the control of every doubt. Where it is more than half of the doubts, no label is called wrong.
    """

    tests: Ints
    reasons: tuple[Reason, ...]
    for_label: Floats
    for_prediction: Floats
    own: Floats
    p: Floats
    doubted: int
    by_chance: float

    def of(self, reason: Reason) -> Ints:
        """Return the positions of the tests with this reason."""
        return self.tests[[one is reason for one in self.reasons]]

    @property
    def finding(self) -> Finding:
        """How many labels are doubted, beside how many would be if all labels were right."""
        from idc_core.base.scipy_parts import stats  # takes long to import

        low, high = (float(stats.poisson.ppf(tail, self.by_chance)) for tail in (0.025, 0.975))
        return Finding(
            "labels",
            "Labels that network and training inputs doubt",
            self.doubted,
            Control("by chance if all labels were right", self.by_chance, low, high),
            self.doubted - high,
            self.doubted - low,
            float(stats.poisson.sf(self.doubted - 1, self.by_chance)),
        )


def confident_classes(probabilities: NDArray[np.floating], labels: Ints) -> Ints:
    """Return the class that a network is confident of for each input, -1 where it is of none.

    It is confident of a class whose probability is at least the mean probability that inputs labelled so give it; of
    several the most probable counts (C. Northcutt, L. Jiang, I. Chuang, "Confident Learning", JAIR 70, 2021, eq. 1).

    Parameters
    ----------
    probabilities : float (n, classes)
        0..1, of a network that was not trained on these inputs.
    labels : int (n,)
        0..classes - 1.
    """
    classes = probabilities.shape[1]
    if probabilities.ndim != 2 or labels.shape != (len(probabilities),) or not len(labels):
        raise DataError(
            f"Expected probabilities (n, classes) and a label per input, got shapes {probabilities.shape} and "
            f"{labels.shape}."
        )
    if labels.min() < 0 or labels.max() >= classes:
        raise DataError(f"Labels must lie in 0..{classes - 1}, these in {labels.min()}..{labels.max()}.")
    own = probabilities[np.arange(len(labels)), labels]
    counts = np.bincount(labels, minlength=classes)
    sums = np.bincount(labels, own, classes)
    thresholds = np.divide(sums, counts, out=np.full(classes, np.inf), where=counts > 0)
    reached = np.where(probabilities >= thresholds - 1e-9, probabilities, -1.0)
    return np.where(reached.max(1) >= 0, reached.argmax(1), -1)


def judge_mistakes(
    probabilities: NDArray[np.floating],
    labels: Ints,
    tests: NDArray[Any],
    train: NDArray[np.floating],
    train_labels: Ints,
    numbers: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray,
) -> Mistakes:
    """Judge every misclassified test.

    Parameters
    ----------
    probabilities : float (n, classes)
        Of the network for the tests.
    labels : int (n,)
        The tests' classes.
    tests : (n, ...)
        Tests, as `numbers` takes them.
    train : float (t, ...)
        Training inputs as numbers that can be compared by their distance.
    train_labels : int (t,)
        The training inputs' classes.
    numbers : callable
        Makes of some tests numbers like those of the training inputs; for few tests at a time.

    Notes
    -----
    A label is taken for wrong where the network is confident of another class and more of the closest training inputs
    are of that class than of the label's. What is farther from the training inputs than nearly all correctly classified
    tests is outside the domain. Otherwise the network errs where most of the closest training inputs are of the label's
    class; what remains is ambiguous. Only misclassified tests, and at most 1,000 others, are compared with the training
    inputs.
    """
    predictions = probabilities.argmax(1)
    wrong, right = np.flatnonzero(predictions != labels), np.flatnonzero(predictions == labels)
    usual = right[:: max(1, -(-len(right) // _CALIBRATION))]
    hard = right[np.argsort(probabilities[right].max(1), kind="stable")][: max(50, int(_HARD * len(right)))]
    hard = hard[:_CALIBRATION]
    looked = np.concatenate([wrong, usual, hard])
    votes, distances = _neighbours(tests[looked], train, train_labels, probabilities.shape[1], numbers)
    k, sure = len(wrong), confident_classes(probabilities, labels)[wrong]
    rows, label = np.arange(k), labels[wrong]
    for_label, for_prediction = votes[rows, label], votes[rows, predictions[wrong]]
    confident = (sure >= 0) & (sure != label)
    doubted = confident & (votes[rows, sure] > for_label)
    chance = _by_chance(label[confident], sure[confident], labels[hard], votes[k + len(usual) :])
    farther = len(usual) - np.searchsorted(np.sort(distances[k : k + len(usual)]), distances[:k], side="left")
    p = (1 + farther) / (1 + len(usual))
    reasons = np.select(
        [
            doubted & (chance <= _BELIEVED * doubted.sum()),
            p <= _RARE,
            (for_label > for_prediction) & (for_label >= 0.5),
        ],
        [Reason.LABEL, Reason.OUTSIDE, Reason.NETWORK],
        Reason.AMBIGUOUS,
    )
    own = probabilities[wrong, label].astype(np.float64)
    return Mistakes(
        wrong, tuple(map(Reason, reasons)), for_label, for_prediction, own, p, int(doubted.sum()), float(chance)
    )


def _by_chance(label: Ints, sure: Ints, of: Ints, votes: Floats) -> float:
    """Return how often neighbours would side with the network against a right label, erring independently of it.

    Of each pair of a label and the class that the network is confident of (k,), by the `votes` (n, classes) on
    correctly classified tests `of` (n,) the same class; of all classes where there are fewer than five.
    """
    if not len(of):
        return float(len(label))
    # What did not happen to any of them may still do so once in as many and one.
    expected = 0.0
    for pair, count in zip(*np.unique(np.stack([label, sure], 1), axis=0, return_counts=True), strict=True):
        same = of == pair[0]
        same = same if same.sum() >= 5 else np.ones(len(of), bool)
        own = votes[np.flatnonzero(same), of[same]]
        expected += count * float((votes[same, pair[1]] > own).mean())
    return max(expected, len(label) / (1 + len(of)))


def _neighbours(
    tests: NDArray[Any],
    train: NDArray[np.floating],
    labels: Ints,
    classes: int,
    numbers: Callable[[NDArray[Any]], NDArray[Any]],
) -> tuple[Floats, Floats]:
    """Return the share of each class among the closest training inputs (n, classes), and their mean distance (n,)."""
    k = min(NEIGHBOURS, len(train))
    flat = np.asarray(train, np.float32).reshape(len(train), -1)
    squares = np.einsum("ij,ij->i", flat, flat)
    votes, distances = np.zeros((len(tests), classes)), np.zeros(len(tests))
    for rows in _blocks(len(tests)):
        some = np.asarray(numbers(tests[rows]), np.float32).reshape(-1, flat.shape[1])
        squared = squares - 2 * some @ flat.T + np.einsum("ij,ij->i", some, some)[:, None]
        nearest = np.argpartition(squared, k - 1, axis=1)[:, :k]
        near = labels[nearest]
        votes[rows] = (near[:, :, None] == np.arange(classes)).mean(1)
        distances[rows] = np.sqrt(np.maximum(np.take_along_axis(squared, nearest, 1), 0)).mean(1)
    return votes, distances


def _blocks(count: int) -> Iterator[slice]:
    for start in range(0, count, _BLOCK):
        yield slice(start, start + _BLOCK)
