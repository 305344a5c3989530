"""Distances of classes by how they activate the neurons (DeepInspect), and orders of classes by these distances."""

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.ground_truth import Floats, Ints
from idc_core.errors import DataError

_CLOSE = 0.01
"""Squared distances below this share of the squared lengths lose digits in the matrix product and are summed again."""

_BLOCK = 2048
"""Neurons that are looked at together; bounds the memory beside the matrix itself."""


def class_distance(probability: NDArray[np.floating], normalise: bool = False) -> Floats:
    """Return the distance of every two classes in how often they activate the neurons, float64 (classes, classes).

    `probability` (neurons, classes) is that of `activation_probability`. Classes without inputs (NaN) stay NaN. With
    `normalise` the distance is divided by the square root of the number of neurons that either class ever activates, as
    the published tables do; 0 without any. Raises DataError for a matrix of another form, values outside 0..1, or a
    class with some probabilities missing.

    Notes
    -----
    Tian et al., ICSE 2020, equation (2), the neuron activation probability vector distance (NAPVD). Exact to rounding
    in float64: one matrix product over centred columns, where distances small enough to lose digits are summed again
    difference by difference.
    """
    matrix = _checked(probability)
    known = np.flatnonzero(np.isfinite(matrix[0]))
    distance = np.full((matrix.shape[1], matrix.shape[1]), np.nan)
    if not len(known):
        return distance
    # A product with all columns needs no copy of the matrix; undefined ones are left out block by block.
    squares, either = _sums(matrix, known, normalise)
    lengths = np.sqrt(squares)
    if normalise:
        lengths = np.divide(lengths, np.sqrt(either), out=np.zeros_like(lengths), where=either > 0)
    distance[np.ix_(known, known)] = lengths
    return distance


def _sums(matrix: NDArray[np.floating], known: Ints, normalise: bool) -> tuple[Floats, Floats]:
    """Return the squared distances of the known classes, and the numbers of neurons that either activates."""
    size = len(known)
    gram = np.zeros((size, size))
    both = np.zeros((size, size))
    active = np.zeros(size)
    for start in range(0, len(matrix), _BLOCK):
        block = _block(matrix, start, known)
        if normalise:
            met = (block > 0).astype(np.float32)  # exact: at most BLOCK ones are added
            both += met.T @ met
            active += met.sum(0, dtype=np.float64)
        block -= block.mean(1, keepdims=True)
        gram += block.T @ block
    lengths = np.diag(gram)
    squares = lengths[:, None] + lengths[None, :] - 2.0 * gram
    rows, columns = np.nonzero(np.triu(squares < _CLOSE * (lengths[:, None] + lengths[None, :]), 1))
    if len(rows):
        exact = _exact(matrix, known, rows, columns)
        squares[rows, columns] = exact
    squares = np.triu(squares, 1)
    return squares + squares.T, active[:, None] + active[None, :] - both


def _exact(matrix: NDArray[np.floating], known: Ints, rows: Ints, columns: Ints) -> Floats:
    """Sum the squared differences of some pairs one by one."""
    sums = np.zeros(len(rows))
    for start in range(0, len(matrix), _BLOCK):
        block = np.ascontiguousarray(_block(matrix, start, known).T)
        for first in range(0, len(rows), _BLOCK):
            some = slice(first, first + _BLOCK)
            difference = block[rows[some]] - block[columns[some]]
            sums[some] += np.einsum("ij,ij->i", difference, difference)
    return sums


def _block(matrix: NDArray[np.floating], start: int, known: Ints) -> Floats:
    return matrix[start : start + _BLOCK].astype(np.float64)[:, known]


def _checked(probability: NDArray[np.floating]) -> NDArray[np.floating]:
    matrix = np.asarray(probability)
    if matrix.ndim != 2 or not matrix.size or matrix.dtype.kind != "f":
        raise DataError(
            f"Expected a probability matrix of floats (neurons, classes); found {matrix.dtype} {matrix.shape}."
        )
    missing = np.zeros(matrix.shape[1], np.int64)
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        absent = np.isnan(block)
        missing += absent.sum(0)
        if not (absent | ((block >= 0) & (block <= 1))).all():
            raise DataError("A probability matrix holds shares in 0..1; found values outside.")
    partly = np.flatnonzero((missing > 0) & (missing < len(matrix)))
    if len(partly):
        raise DataError(
            f"Class {partly[0]} has no probability for {missing[partly[0]]:,} of {len(matrix):,} neurons; expected all "
            "or, for a class that no input is predicted as, none."
        )
    return matrix


_MOST_OPTIMAL = 150
"""Classes up to which neighbouring leaves are put next to each other as well as can be; that is cubic and more."""


def cluster_order(distance: NDArray[np.floating]) -> Ints:
    """Return the defined classes, int64 (k,), close ones next to each other by average linkage.

    Up to `_MOST_OPTIMAL` classes in the order in which neighbours are closest (Bar-Joseph et al. 2001).
    """
    known = np.flatnonzero(np.isfinite(np.diag(distance))).astype(np.int64)
    if len(known) < 3:
        return known
    from idc_core.base.scipy_parts import hierarchy

    pairs = np.asarray(distance, np.float64)[np.ix_(known, known)][np.triu_indices(len(known), 1)]
    tree = hierarchy.linkage(pairs, "average", optimal_ordering=len(known) <= _MOST_OPTIMAL)
    order: Ints = known[hierarchy.leaves_list(tree)]
    return order


def fold(distance: NDArray[np.floating], order: Ints, most: int) -> tuple[Floats, list[Ints]]:
    """Join neighbouring classes of an order (k,) so that a table has at most `most` rows.

    Returns the distance of the closest pair of different classes between two groups, (rows, rows), NaN where there is
    none, and the classes of each row.
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
