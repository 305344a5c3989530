"""Cells that no test reaches, those that occur in training first, and the tests closest to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable, among, bordering
from idc_core.coverage.cells import decode, encode
from idc_core.coverage.closest_inputs import adjacent, closest, spread
from idc_core.figures.wording import cell_name
from idc_core.report.bounds import CLOSEST, CLOSEST_TEXTS, UNCOVERED
from idc_core.report.content import Uncovered, UncoveredCell
from idc_core.report.material import Material
from idc_core.report.shown_tests import is_pictured, show


def find_uncovered(material: Material) -> Uncovered:
    """Return the uncovered cells of a report, some of them with their closest tests."""
    table, training = material.table, material.overview.training
    if table.covered == table.total:
        return Uncovered(0, None if training is None else 0, ())
    counts = _in_training(material)
    cells = [cell for cell, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))]
    if len(cells) < UNCOVERED:
        cells += [cell for cell in map(tuple, bordering(table)[0].tolist()) if cell not in counts]
    return Uncovered(
        cells=table.total - table.covered,
        in_training=None if training is None else training.missed,
        listed=tuple(_listed(material, cell, counts.get(cell, 0)) for cell in cells[:UNCOVERED]),
    )


def _in_training(material: Material) -> dict[tuple[int, ...], int]:
    """Return the training inputs of every uncovered cell that has some."""
    learnt = material.learnt
    if not len(learnt):
        return {}
    codes, counts = np.unique(encode(material.analysis.assign(learnt), material.sizes), return_counts=True)
    missed = ~among(codes, encode(material.table.cells, material.sizes))
    cells = decode(codes[missed], material.sizes)
    return {tuple(cell): int(number) for cell, number in zip(cells.tolist(), counts[missed], strict=True)}


def _listed(material: Material, cell: tuple[int, ...], training_inputs: int) -> UncoveredCell:
    analysis, chosen = material.analysis, material.chosen
    unit = spread(analysis.train_activations)
    most = CLOSEST if is_pictured(material) else CLOSEST_TEXTS
    places, distances = closest(analysis.test_activations[chosen], analysis.centroids, cell, unit, most)
    return UncoveredCell(
        cell=cell_name(cell),
        training_inputs=training_inputs,
        covered_neighbours=_covered(material.table, adjacent(material.sizes, cell)),
        closest=tuple(
            show(material, int(chosen[place]), float(distance))
            for place, distance in zip(places, distances, strict=True)
        ),
    )


def _covered(table: CellTable, cells: list[tuple[int, ...]]) -> int:
    """Count the covered ones of some cells."""
    given: NDArray[np.uint8] = np.array(cells, dtype=np.uint8).reshape(len(cells), len(table.sizes))
    return int(among(encode(given, table.sizes), encode(table.cells, table.sizes)).sum())
