"""The first uncovered cells, and the tests that come closest to each: what a failed check names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import bordering, tabulate
from idc_core.coverage.closest_inputs import closest, spread


@dataclass(frozen=True)
class Closest:
    """An uncovered cell, and the tests closest to it."""

    cell: tuple[int, ...]
    """The cluster of every important neuron, 0 that of the lowest centroid."""
    tests: tuple[int, ...]
    """Positions of the tests, the closest first."""
    distances: tuple[float, ...]
    """Euclidean, each neuron in units of its standard deviation over the training inputs."""


@dataclass(frozen=True)
class Uncovered:
    """How many cells no test reaches, and the first of them: those that border on most covered cells."""

    covered: int
    total: int
    neurons: tuple[int, ...]
    first: tuple[Closest, ...]

    def lines(self) -> Iterator[str]:
        """Yield what is missing, line by line."""
        missing = self.total - self.covered
        yield f"{self.covered:,} of {self.total:,} cells are covered, {missing:,} are not."
        if not missing:
            return
        neurons = ", ".join(map(str, self.neurons))
        yield f"A cell is one cluster per neuron, 0 the lowest, of neurons {neurons}."
        yield f"The first {len(self.first)} uncovered cells, with the closest tests (distance in standard deviations):"
        for entry in self.first:
            near = ", ".join(f"{test} ({away:.2f})" for test, away in zip(entry.tests, entry.distances, strict=True))
            yield f"  {'-'.join(map(str, entry.cell))}: tests {near}"


def find_uncovered(
    activations: NDArray[np.floating],
    assignments: NDArray[np.uint8],
    centroids: Sequence[NDArray[np.floating]],
    important: NDArray[np.int64],
    train_activations: NDArray[np.floating],
    cells: int = 5,
    tests: int = 3,
) -> Uncovered:
    """Find the first uncovered cells of some tests.

    Parameters
    ----------
    activations, assignments : ndarray, (tests, m)
        Of the important neurons: their activations, and the clusters of these.
    centroids : sequence of ndarray, (k,)
        Of each important neuron, ascending.
    important : ndarray, int64 (m,)
        The neurons.
    train_activations : ndarray, (train inputs, m)
        They give the unit of distances.
    cells, tests : int
        How many cells are named, and how many tests for each.

    Returns
    -------
    Uncovered
        Cells that border on most covered ones come first, ties in the order of their clusters.
    """
    sizes = [len(values) for values in centroids]
    table = tabulate(assignments, sizes)
    unit = spread(train_activations)
    uncovered = []
    for cell in bordering(table)[0][:cells].tolist():
        places, away = closest(activations, centroids, cell, unit, tests)
        uncovered.append(Closest(tuple(cell), tuple(places.tolist()), tuple(away.tolist())))
    return Uncovered(table.covered, table.total, tuple(map(int, important)), tuple(uncovered))
