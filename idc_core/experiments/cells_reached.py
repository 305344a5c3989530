"""How many uncovered cells a search reaches: by gradients, and by random noise of the same size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.analysis import Analysis
from idc_core.coverage.cell_table import tabulate
from idc_core.generation import Pool, Reached, choose_seeds, noise_to_cell, reach_cell
from idc_core.generation.cell_search import CellSpace
from idc_core.generation.seeds import uncovered_neighbours
from idc_core.progress import Progress, report


@dataclass(frozen=True, eq=False)
class CellsReached:
    """What two searches reached of the same cells from the same seeds.

    Attributes
    ----------
    cells : tuple of tuple of int
        Uncovered cells, each with a covered neighbour, in the order in which they were drawn.
    guided, noise : ndarray of int64 (cells,)
        Seeds from which each search came to the cell.
    closest : ndarray of float64 (cells,)
        How far the guided search's best picture misses the cell, in mean gaps between centroids; 0 where reached.
    kept : ndarray of int64 (cells,)
        Pictures of the guided search that the network answers as their seeds.
    seeds : int
        Seeds of each cell.
    """

    cells: tuple[tuple[int, ...], ...]
    guided: NDArray[np.int64]
    noise: NDArray[np.int64]
    closest: NDArray[np.float64]
    kept: NDArray[np.int64]
    seeds: int


def reach_cells(
    model: nn.Module,
    analysis: Analysis,
    inputs: NDArray[Any],
    *,
    cells: int = 20,
    seeds: int = 24,
    epsilon: float = 0.3,
    iterations: int = 50,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> CellsReached:
    """Draw uncovered cells that have a covered neighbour, and try to reach each from the tests closest to it.

    Parameters
    ----------
    model : Module
    analysis : Analysis
        Of this model, these tests and a layer.
    inputs : ndarray (n, C, H, W)
        The tests of the analysis.
    cells : int
        How many cells; fewer where there are fewer.
    seeds : int
        Tests to start from, the closest to each cell.
    epsilon : float
        Largest change of a value.
    iterations : int
        Steps of the guided search from one seed, and draws of noise.
    seed : int
        Of the choice of cells and of the noise.
    on_progress : Progress, optional

    Returns
    -------
    CellsReached

    Raises
    ------
    SettingError, DataError, ModelError, UnsupportedOperationError
        As `reach_cell`.
    CancelledError
        If the work was stopped.
    """
    sizes = CellSpace.of(analysis).sizes
    drawn = uncovered_neighbours(tabulate(analysis.assignments, sizes), cells, seed)
    # Seeds close to a cell are chosen by activations alone.
    pool = (np.zeros(len(inputs)), np.zeros((len(inputs), 1)), analysis, None)
    found: list[tuple[Reached, Reached]] = []
    for number, cell in enumerate(drawn):
        report(on_progress, number, len(drawn), "cells searched for")
        near = inputs[choose_seeds(Pool(*pool, cell), "cell", seeds)]
        guided = reach_cell(model, analysis, cell, near, epsilon, iterations=iterations)
        noise = noise_to_cell(model, analysis, cell, near, epsilon, iterations=iterations, seed=seed)
        found.append((guided, noise))
    return CellsReached(
        cells=tuple(drawn),
        guided=np.array([len(one) for one, _ in found], np.int64),
        noise=np.array([len(one) for _, one in found], np.int64),
        closest=np.array([one.closest.min() for one, _ in found], np.float64),
        kept=np.array([(one.predictions == one.seed_predictions[one.seed_index]).sum() for one, _ in found], np.int64),
        seeds=min(seeds, len(inputs)),
    )
