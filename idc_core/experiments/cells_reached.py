"""Uncovered cells that a search reaches by gradients, and by random noise of the same size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.result import Analysis
from idc_core.base.progress import Progress, report
from idc_core.coverage.cell_table import tabulate
from idc_core.generation import Pool, Reached, choose_seeds, noise_to_cell, reach_cell
from idc_core.generation.cell_search import CellSpace
from idc_core.generation.seeds import uncovered_neighbours


@dataclass(frozen=True, eq=False)
class _CellsReached:
    """Results of two searches for the same cells from the same seeds."""

    cells: tuple[tuple[int, ...], ...]
    """Uncovered cells, each with a covered neighbour, in the order in which they were drawn."""
    guided: NDArray[np.int64]
    """Seeds from which the guided search reached each cell, (cells,)."""
    noise: NDArray[np.int64]
    """Seeds from which random noise reached each cell, (cells,)."""
    closest: NDArray[np.float64]
    """Distance of the guided search's best picture to each cell, in mean gaps between centroids; 0 where reached."""
    kept: NDArray[np.int64]
    """Pictures of the guided search with the same prediction as their seeds."""
    seeds: int
    """Seeds per cell."""


def reach_cells(
    model: nn.Module,
    analysis: Analysis,
    inputs: NDArray[np.generic],
    *,
    cells: int = 20,
    seeds: int = 24,
    epsilon: float = 0.3,
    iterations: int = 50,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> _CellsReached:
    """Draw uncovered cells with a covered neighbour, and try to reach each from the `seeds` tests closest to it."""
    sizes = CellSpace.of(analysis).sizes
    drawn = uncovered_neighbours(tabulate(analysis.assignments, sizes), cells, seed)
    # Seeds close to a cell are chosen by activations alone.
    pool = (np.zeros(len(inputs)), np.zeros((len(inputs), 1)), analysis, None)
    pairs: list[tuple[Reached, Reached]] = []
    for number, cell in enumerate(drawn):
        report(on_progress, number, len(drawn), "cells searched for")
        near = inputs[choose_seeds(Pool(*pool, cell), "cell", seeds)]
        guided = reach_cell(model, analysis, cell, near, epsilon, iterations=iterations)
        noise = noise_to_cell(model, analysis, cell, near, epsilon, iterations=iterations, seed=seed)
        pairs.append((guided, noise))
    return _CellsReached(
        cells=tuple(drawn),
        guided=np.array([len(reached) for reached, _ in pairs], np.int64),
        noise=np.array([len(reached) for _, reached in pairs], np.int64),
        closest=np.array([reached.closest.min() for reached, _ in pairs], np.float64),
        kept=np.array(
            [(reached.predictions == reached.seed_predictions[reached.seed_index]).sum() for reached, _ in pairs],
            np.int64,
        ),
        seeds=min(seeds, len(inputs)),
    )
