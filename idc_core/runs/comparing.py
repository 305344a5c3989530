"""Runs side by side: what differs in their settings, then in their figures, then in the cells they reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core import store
from idc_core.analysis.result import Analysis
from idc_core.errors import DataError, SettingError
from idc_core.runs.run import Run

LABELS = ("network_label", "part_of_data")
"""Settings that follow from others."""


@dataclass(frozen=True, eq=False)
class CellChange:
    """Cells of a second analysis against those of a first, over the neurons that both have.

    `gained` and `lost` are cluster indices, uint8 (cells, m); `gained_tests` and `lost_tests`, int64 (cells,), count
    the tests in each.
    """

    neurons: NDArray[np.int64]
    gained: NDArray[np.uint8]
    lost: NDArray[np.uint8]
    gained_tests: NDArray[np.int64]
    lost_tests: NDArray[np.int64]
    both: int


def differing_settings(runs: Sequence[Run], aside: Sequence[str] = ()) -> dict[str, list[object]]:
    """Return the settings that are not the same in all runs: a value per run by name, None where it has none.

    Those named `aside` follow from others.
    """
    names = dict.fromkeys(name for run in runs for name in run.facts.settings)
    rows = {name: [run.facts.settings.get(name) for run in runs] for name in names if name not in (*LABELS, *aside)}
    return {name: values for name, values in rows.items() if any(value != values[0] for value in values)}


def figures(runs: Sequence[Run]) -> dict[str, list[float | None]]:
    """Return every figure that one of the runs has: a value per run by name, None where it has none."""
    names = dict.fromkeys(name for run in runs for name in run.facts.scores)
    return {name: [run.facts.scores.get(name) for run in runs] for name in names}


def cell_change(first: Run, second: Run) -> CellChange:
    """Return which cells the second analysis reaches and the first does not, and the other way round.

    Raises
    ------
    SettingError
        If cells of the one mean something else than cells of the other, or they are no analyses.
    DataError
        If a result cannot be read.
    """
    before, after = _analysis(first), _analysis(second)
    m = min(before.m, after.m)
    neurons = before.important[:m]
    if not np.array_equal(neurons, after.important[:m]):
        raise SettingError(
            f"Their cells cannot be compared: the important neurons are {_listed(neurons)} in the one and "
            f"{_listed(after.important[:m])} in the other."
        )
    for neuron, one, other in zip(neurons, before.centroids, after.centroids, strict=False):
        if not np.array_equal(one, other):
            raise SettingError(f"Their cells cannot be compared: the clusters of neuron {neuron} are not the same.")
    cells = [np.unique(one.assignments[:, :m], axis=0, return_counts=True) for one in (before, after)]
    sets = [{tuple(cell): int(tests) for cell, tests in zip(*one, strict=True)} for one in cells]
    lost, gained = (sorted(sets[one].keys() - sets[1 - one].keys()) for one in (0, 1))
    return CellChange(
        neurons,
        np.array(gained, np.uint8).reshape(-1, m),
        np.array(lost, np.uint8).reshape(-1, m),
        np.array([sets[1][cell] for cell in gained], np.int64),
        np.array([sets[0][cell] for cell in lost], np.int64),
        len(sets[0].keys() & sets[1].keys()),
    )


def _analysis(run: Run) -> Analysis:
    if run.facts.kind != "analysis":
        raise SettingError("Only analyses have cells to compare.")
    try:
        result = store.read(store.results_folder() / f"{run.id}{store.ENDING}")
    except DataError as error:
        raise DataError(
            "The cells of a run cannot be read: another version of the program made it, or its file is damaged. "
            "Open it, and it is computed again."
        ) from error
    if not isinstance(result, Analysis):
        raise DataError("A run of this kind holds something else than an analysis. Delete it.")
    return result


def _listed(neurons: NDArray[np.int64]) -> str:
    return ", ".join(map(str, neurons.tolist()))
