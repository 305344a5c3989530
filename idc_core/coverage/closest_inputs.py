"""Which inputs come closest to a cell: distances between activations and the centroids of cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError

_ROWS = 65536  # inputs whose distances are held at a time


def spread(activations: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the unit of distances per neuron, float64 (m,): the standard deviation of activations (n, m), or 1.

    Neurons of one layer can differ in scale by orders of magnitude: a plain distance would look at the loudest only.
    """
    deviation: NDArray[np.float64] = activations.std(axis=0, dtype=np.float64)
    deviation[deviation == 0] = 1.0
    return deviation


def closest(
    activations: NDArray[np.floating],
    centroids: Sequence[NDArray[np.floating]],
    cell: Sequence[int],
    unit: NDArray[np.float64],
    count: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the at most `count` inputs whose activations (n, m) lie closest to a cell's centroids, and how far away.

    Positions come closest first; distances are Euclidean in units of `unit` (m,), from `spread`. Of every block of
    inputs only the best are kept: memory does not grow with their number.
    """
    _check(activations, centroids, unit)
    if len(cell) != len(centroids):
        raise SettingError(f"Expected a cell of {len(centroids)} clusters; got {len(cell)}.")
    target = np.array([values[index] for values, index in zip(centroids, cell, strict=True)], dtype=np.float64)
    positions, distances = np.zeros(0, dtype=np.int64), np.zeros(0)
    for start in range(0, len(activations), _ROWS):
        away = _distance(activations[start : start + _ROWS], target, unit)
        positions = np.concatenate([positions, np.arange(start, start + len(away), dtype=np.int64)])
        distances = np.concatenate([distances, away])
        if count < len(distances):
            # Everything up to the last place, ties with it included, so that sorting can break them.
            near = np.flatnonzero(distances <= np.partition(distances, count - 1)[count - 1])
            positions, distances = positions[near], distances[near]
        order = np.lexsort((positions, distances))[:count]
        positions, distances = positions[order], distances[order]
    return positions, distances


def adjacent(sizes: Sequence[int], cell: Sequence[int]) -> list[tuple[int, ...]]:
    """List the cells one step away: one neuron in the next lower or higher cluster, all others as they are."""
    if len(cell) != len(sizes) or not all(0 <= index < size for index, size in zip(cell, sizes, strict=True)):
        raise SettingError(f"Expected a cell of clusters below {tuple(sizes)}; got {tuple(cell)}.")
    own = tuple(int(index) for index in cell)
    return [
        (*own[:rank], own[rank] + step, *own[rank + 1 :])
        for rank, size in enumerate(sizes)
        for step in (-1, 1)
        if 0 <= own[rank] + step < size
    ]


def to_own_cell(
    activations: NDArray[np.floating],
    centroids: Sequence[NDArray[np.floating]],
    assignments: NDArray[np.uint8],
    unit: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how far each input lies from the centroids of its own cell, float64 (n,), in units of `unit` (m,)."""
    _check(activations, centroids, unit)
    if assignments.shape != activations.shape:
        raise SettingError(f"Expected assignments of shape {activations.shape}; got {assignments.shape}.")
    squares = np.zeros(len(activations))
    for neuron, values in enumerate(centroids):
        away = activations[:, neuron] - np.asarray(values, dtype=np.float64)[assignments[:, neuron]]
        squares += (away / unit[neuron]) ** 2
    return np.sqrt(squares)


def most_typical(cell_of: NDArray[np.integer], distances: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the most typical input of each cell: the one closest to the cell's own centroids.

    Parameters
    ----------
    cell_of : ndarray of int, shape (n,)
        Cell of each input, numbered from 0 in the order in which cells are wanted.
    distances : ndarray, shape (n,)
        How far each input lies from the centroids of its own cell, in standard deviations of each neuron over the
        training inputs: `to_own_cell` in units of `spread`.

    Returns
    -------
    ndarray of int64, shape (cells,)
        Positions of inputs; of equally close ones the first.
    """
    order = np.lexsort((distances, cell_of))
    return order[np.unique(cell_of[order], return_index=True)[1]].astype(np.int64)


def _distance(
    activations: NDArray[np.floating], target: NDArray[np.float64], unit: NDArray[np.float64]
) -> NDArray[np.float64]:
    distance: NDArray[np.float64] = np.sqrt((((activations - target) / unit) ** 2).sum(axis=1))
    return distance


def _check(
    activations: NDArray[np.floating], centroids: Sequence[NDArray[np.floating]], unit: NDArray[np.float64]
) -> None:
    m = len(centroids)
    if activations.ndim != 2 or activations.shape[1] != m or unit.shape != (m,):
        raise SettingError(
            f"Expected activations of shape (n, {m}) and {m} units, one per neuron that has centroids; got "
            f"{activations.shape} and {unit.shape}."
        )
