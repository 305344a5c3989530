"""What lies behind a pair of classes: inputs confused or torn between the two, relevance, and cells that both reach."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.evidence import Evidence
from idc_core.confusion.ground_truth import Floats, Ints


def confused(evidence: Evidence, first: int, second: int) -> Ints:
    """Return the inputs of one of two classes that are predicted as the other one, int64 (k,)."""
    true, predicted = evidence.true, evidence.predicted
    if true is None or predicted is None:
        return np.zeros(0, np.int64)
    if true.ndim == 2:
        wrong = [true[:, a] & ~true[:, b] & predicted[:, b] for a, b in ((first, second), (second, first))]
    else:
        wrong = [(true == a) & (predicted == b) for a, b in ((first, second), (second, first))]
    return np.flatnonzero(wrong[0] | wrong[1]).astype(np.int64)


def confused_in(evidence: Evidence, pairs: Ints) -> Ints:
    """Return the inputs that are confused in any of several pairs (k, 2), int64 (n,)."""
    rows = [confused(evidence, first, second) for first, second in pairs.tolist()]
    return np.unique(np.concatenate(rows)) if rows else np.zeros(0, np.int64)


def between(scores: NDArray[np.floating], first: int, second: int) -> Ints:
    """Return the inputs whose two highest scores (n, classes) are those of two classes, closest first, int64 (k,)."""
    if scores.shape[1] < 2:
        return np.zeros(0, np.int64)
    highest = np.sort(np.argpartition(-scores, 1, axis=1)[:, :2], axis=1)
    rows = np.flatnonzero((highest == sorted((first, second))).all(1))
    margin = np.abs(scores[rows, first] - scores[rows, second])
    return rows[np.argsort(margin, kind="stable")].astype(np.int64)


def layer_relevance(relevance: NDArray[np.floating], rows: Ints) -> Floats:
    """Return the mean relevance of every neuron over some inputs, float64 (neurons,); NaN without inputs."""
    if not len(rows):
        return np.full(relevance.shape[1], np.nan)
    return np.asarray(relevance[rows].mean(0, dtype=np.float64))


def shared_cells(first: NDArray[np.integer], second: NDArray[np.integer]) -> tuple[NDArray[np.integer], Ints]:
    """Return the cells that inputs of both classes reach, int (k, m), and either class's inputs in each, int64 (k, 2).

    `first` and `second` are the clusters of either class's inputs, int (n, m). Most inputs of the rarer class come
    first.
    """
    cells, place = np.unique(np.concatenate([first, second]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    counts = np.stack(
        [np.bincount(part, minlength=len(cells)) for part in (place[: len(first)], place[len(first) :])], axis=1
    )
    both = np.flatnonzero(counts.min(1) > 0)
    order = both[np.argsort(-counts[both].min(1), kind="stable")]
    return cells[order], counts[order].astype(np.int64)
