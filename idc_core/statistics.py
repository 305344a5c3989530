"""Statistics that several packages share: rank correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def spearman(values: NDArray[Any]) -> Floats:
    """Return Spearman's rank correlation of every two rows.

    `values`: float (k, n), each row is one ranking: n scores of the same things. Returns float64 (k, k): in -1..1: 1
    where two rows have the same order, NaN where one row is constant. Equal values share the mean of their ranks.
    """
    ranks = np.stack([_ranks(row) for row in values])
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt((ranks * ranks).sum(axis=1))
    found = np.full((len(values), len(values)), np.nan)
    np.divide(ranks @ ranks.T, np.outer(norms, norms), out=found, where=np.outer(norms, norms) > 0)
    return found.clip(-1.0, 1.0)


def _ranks(values: NDArray[Any]) -> Floats:
    """Return the rank of every value; equal values share the mean of their ranks."""
    # scipy.stats does the same, but importing it takes longer than everything else that a page needs here.
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: Floats = np.cumsum(counts) - (counts - 1) / 2
    return means[place]


def kendall(values: NDArray[Any]) -> Floats:
    """Return Kendall's tau-b of every two rows.

    `values`: float (k, n), as `spearman`. Returns float64 (k, k): in -1..1; NaN where one row is constant. Equal values
    count for neither side (M. G. Kendall, "The Treatment of Ties in Ranking Problems", Biometrika 33, 1945).
    """
    from scipy.stats import kendalltau

    found = np.full((len(values), len(values)), np.nan)
    varied = [row for row, scores in enumerate(values) if np.ptp(scores) > 0]
    for place, row in enumerate(varied):
        found[row, row] = 1.0
        for other in varied[:place]:
            found[row, other] = found[other, row] = kendalltau(values[row], values[other]).statistic
    return found
