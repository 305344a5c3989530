"""What the Overview shows of an analysis, small enough to be kept in a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable, among, state_counts
from idc_core.coverage.cells import Codes, encode
from idc_core.errors import DataError
from idc_core.guarded import read_json

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis


@dataclass(frozen=True)
class TrainingReach:
    """What training inputs reach, to compare the tests with."""

    inputs: int  # number of training inputs
    covered: int  # cells that they reach
    missed: int  # of these, cells that no test reaches
    drawn: tuple[float, int, int] | None
    """Cells that as many training inputs as there are tests reach, over `DRAWS` random draws: mean, fewest and most;
    None if there are fewer training inputs than tests."""


DRAWS = 20
"""Random draws of training inputs."""


def _training_reach(train: Codes, test: Codes, seed: int = 0) -> TrainingReach:
    """Count the cells that training inputs reach, from the cell of every training input (n,) and test (t,)."""
    cells = np.unique(train)
    drawn = None
    if len(train) >= len(test):
        rng = np.random.default_rng(seed)
        reached = [len(np.unique(train[rng.permutation(len(train))[: len(test)]])) for _ in range(DRAWS)]
        drawn = float(np.mean(reached)), min(reached), max(reached)
    return TrainingReach(len(train), len(cells), int((~among(cells, np.unique(test))).sum()), drawn)


@dataclass(frozen=True)
class Overview:
    """The result of a setup at a glance."""

    fingerprints: tuple[str, str, str]  # of the weights, the training inputs and the tests
    tests: int  # number of tests
    accuracy: float | None  # share of tests classified correctly, 0..1; None where there is no right class
    rmse: float | None  # root mean square error in the target's unit; None for classification
    layer: str
    neurons: int  # neurons of that layer
    important: tuple[int, ...]  # the m important neurons, most important first
    first_share: float  # share of the layer's positive relevance that the first important neuron carries, 0..1
    together_share: float  # that all of them carry
    rarest: tuple[int, int, int]
    """Rank of a neuron, its cluster, and the tests in it: the state that the tests reach least often."""
    table: CellTable  # the covered cells, without classes
    training: TrainingReach | None  # None if no training input is of the chosen classes

    @property
    def errors_only(self) -> NDArray[np.bool_]:
        """Whether only misclassified tests reach the cell, (c,); nowhere where no answer can be wrong."""
        only = self.table.only_errors
        return only if self.accuracy is not None else np.zeros_like(only)

    def to_json(self) -> str:
        """Write the overview as JSON text."""
        values: dict[str, object] = dict(vars(self))
        values["training"] = None if self.training is None else asdict(self.training)
        values["table"] = {
            "sizes": list(self.table.sizes),
            "cells": self.table.cells.tolist(),
            "counts": self.table.counts.tolist(),
            "wrong": self.table.wrong.tolist(),
        }
        return json.dumps(values) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Overview:
        """Read an overview that `to_json` wrote."""
        try:
            kept = read_json(text.encode(errors="replace"), "The overview", _Kept)
            return cls(**{**vars(kept), "table": kept.table.cell_table()})
        except (DataError, ValueError, OverflowError) as error:
            raise DataError(f"This is not the text of an overview ({error}); write it anew.") from error


@dataclass(frozen=True)
class _KeptTable:
    """A table of cells as JSON."""

    sizes: tuple[int, ...]
    cells: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    wrong: tuple[int, ...]

    def cell_table(self) -> CellTable:
        """Return the table; `ValueError` or `OverflowError` where its parts do not fit each other."""
        cells = np.array(self.cells, dtype=np.uint8).reshape(len(self.cells), len(self.sizes))
        counts, wrong = np.array(self.counts, dtype=np.int64), np.array(self.wrong, dtype=np.int64)
        whole = (cells < np.array(self.sizes, dtype=np.int64)).all() and (wrong >= 0).all() and (wrong <= counts).all()
        if not whole or not len(cells) == len(counts) == len(wrong):
            raise ValueError("its cells, their clusters and their tests do not fit each other")
        return CellTable(self.sizes, cells, counts, wrong, np.zeros((len(cells), 0), dtype=np.int64))


@dataclass(frozen=True)
class _Kept(Overview):
    """An overview as JSON."""

    table: _KeptTable  # type: ignore[assignment]


def overview_of(
    analysis: Analysis,
    table: CellTable,
    fingerprints: tuple[str, str, str],
    chosen: NDArray[np.int64],
    accuracy: float | None,
    learnt: NDArray[np.floating],
) -> Overview:
    """Take from an analysis what is shown at a glance.

    `chosen` (k,) are the positions of the tests looked at, `table` their covered cells and `accuracy` theirs; `learnt`
    (n, neurons) the layer's activations on the training inputs of the same classes, of which there may be none.
    """
    first, together = shares(analysis.importance, analysis.important)
    sizes = tuple(of_neuron.k for of_neuron in analysis.clusters)
    training = _training_reach(encode(analysis.assign(learnt), sizes), analysis.codes[chosen]) if len(learnt) else None
    return Overview(
        fingerprints=fingerprints,
        tests=len(chosen),
        accuracy=accuracy,
        rmse=analysis.rmse,
        layer=analysis.layer,
        neurons=len(analysis.importance),
        important=tuple(int(neuron) for neuron in analysis.important),
        first_share=first,
        together_share=together,
        rarest=rarest_state(analysis.assignments[chosen], sizes),
        table=table,
        training=training,
    )


def rarest_state(assignments: NDArray[np.uint8], sizes: tuple[int, ...]) -> tuple[int, int, int]:
    """Return rank, cluster and number of tests of the state that the fewest tests (n, m) reach.

    Of equally rare states that of the more important neuron counts, then the lower one.
    """
    counts = state_counts(assignments, sizes)
    places = [(rank, cluster) for rank, size in enumerate(sizes) for cluster in range(size)]
    rank, cluster = min(places, key=lambda place: counts[place[0]][place[1]])
    return rank, cluster, int(counts[rank][cluster])


def shares(importance: NDArray[np.float64], important: NDArray[np.int64]) -> tuple[float, float]:
    """Return the shares, 0..1, of a layer's positive relevance that the first and all important neurons carry.

    Both are 0 where no neuron has positive relevance.
    """
    positive = np.clip(importance, 0.0, None)
    whole = float(positive.sum())
    if whole == 0.0:
        return 0.0, 0.0
    return float(positive[important[0]]) / whole, float(positive[important].sum()) / whole


def worst_tests(
    chosen: NDArray[np.int64], correct: NDArray[np.bool_], confidence: NDArray[np.floating], lonely: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the misclassified ones of the `chosen` tests (k,), those in cells that no other test reaches first.

    `correct`, `confidence` and `lonely` (n,), whether only misclassified tests reach a test's cell, are of all tests;
    within either group the most confident come first.
    """
    wrong = chosen[~correct[chosen]]
    return wrong[np.lexsort((-confidence[wrong], ~lonely[wrong]))]
