"""Classes in an order in which close ones are neighbours, and tables of many classes made smaller."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_OPTIMAL = 150
"""Classes up to which neighbouring leaves are put next to each other as well as can be; that is cubic and more."""


def cluster_order(distance: NDArray[np.floating]) -> Ints:
    """Return the defined classes, close ones next to each other, int64 (k,).

    Parameters
    ----------
    distance : ndarray of float (classes, classes)
        Symmetric; classes with NaN are left out.

    Notes
    -----
    The leaves of hierarchical clustering by average linkage; up to `MOST_OPTIMAL` classes in the order in which
    neighbours are closest (Bar-Joseph et al. 2001).
    """
    known = np.flatnonzero(np.isfinite(np.diag(distance))).astype(np.int64)
    if len(known) < 3:
        return known
    from scipy.cluster.hierarchy import leaves_list, linkage

    pairs = np.asarray(distance, np.float64)[np.ix_(known, known)][np.triu_indices(len(known), 1)]
    tree = linkage(pairs, "average", optimal_ordering=len(known) <= MOST_OPTIMAL)
    order: Ints = known[leaves_list(tree)]
    return order


def fold(distance: NDArray[np.floating], order: Ints, most: int) -> tuple[Floats, list[Ints]]:
    """Put neighbouring classes of an order together so that a table has at most so many rows.

    Parameters
    ----------
    distance : ndarray of float (classes, classes)
    order : ndarray of int64 (k,)
        Classes to draw.
    most : int
        Rows at most.

    Returns
    -------
    folded : ndarray, float64 (rows, rows)
        Distance of the closest pair of different classes between two groups; NaN where there is none.
    groups : list of ndarray of int64
        The classes of each row.
    """
    groups = [order[part] for part in np.array_split(np.arange(len(order)), min(most, len(order)))]
    table = np.asarray(distance, np.float64)[np.ix_(order, order)]
    np.fill_diagonal(table, np.inf)
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    folded = np.minimum.reduceat(np.minimum.reduceat(table, starts, axis=0), starts, axis=1)
    folded[~np.isfinite(folded)] = np.nan
    return folded, groups


def neighbours(distance: NDArray[np.floating], first: int, second: int, most: int) -> Ints:
    """Return a pair and the classes closest to either of the two, at most so many, int64 (k,)."""
    near = np.minimum(distance[first], distance[second])
    near[[first, second]] = -1.0
    order = np.argsort(near, kind="stable")
    closest: Ints = order[np.isfinite(near[order])][:most]
    return closest
