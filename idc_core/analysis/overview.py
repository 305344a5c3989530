"""What the Overview shows of an analysis, small enough to be kept in a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.filtering import Conditions, of_classes
from idc_core.analysis.findings_of_tests import Labelled, Looked, find
from idc_core.analysis.predictions import Predictions
from idc_core.coverage.cell_table import CellTable, among, tabulate
from idc_core.coverage.cells import Codes, encode
from idc_core.coverage.closest_inputs import most_typical, spread, to_own_cell
from idc_core.coverage.reach import Reach, find_reach
from idc_core.errors import DataError, SettingError
from idc_core.evidence.finding import Finding
from idc_core.guarded import read_json

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis
    from idc_core.datasets import Dataset


@dataclass(frozen=True)
class TrainingReach:
    """What training inputs reach, to compare the tests with."""

    inputs: int  # number of training inputs
    covered: int  # cells that they reach
    cells: tuple[tuple[int, ...], ...]  # of these, the cells that no test reaches, in ascending order
    counts: tuple[int, ...]  # training inputs in each of those

    @property
    def untested(self) -> int:
        """Number of cells that training inputs reach and no test."""
        return len(self.cells)


def _training_reach(training: NDArray[np.uint8], table: CellTable) -> TrainingReach:
    """Return the cells that training inputs reach, from the clusters of each (n, m), beside those of the tests."""
    reached = tabulate(training, table.sizes)
    left = ~among(encode(reached.cells, table.sizes), encode(table.cells, table.sizes))
    cells = tuple(tuple(cell) for cell in reached.cells[left].tolist())
    return TrainingReach(len(training), reached.covered, cells, tuple(reached.counts[left].tolist()))


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
    table: CellTable  # the covered cells, without classes
    training: TrainingReach | None
    """None if no training input is of the chosen classes, or tests are left out by more than their class."""
    findings: tuple[Finding, ...]
    """The most certain finding of each kind, whether it stands out or not."""
    typical: tuple[int, ...]  # the number of the most typical test (`most_typical`) of each covered cell
    rows: tuple[int, ...]  # of each test, in their order, the covered cell that it falls into: its row in the table

    @property
    def errors_only(self) -> NDArray[np.bool_]:
        """Whether only misclassified tests reach the cell, (c,); nowhere where no answer can be wrong."""
        only = self.table.only_errors
        return only if self.accuracy is not None else np.zeros_like(only)

    @property
    def reachable(self) -> int | None:
        """Cells that tests or training inputs reach; None where training inputs say nothing of it."""
        return None if self.training is None else self.table.covered + self.training.untested

    def reach(self, generated: Codes | None = None) -> Reach | None:
        """Return what reaches the cells that tests do not, codes of valid `generated` inputs' cells included.

        None where neither training inputs nor generated ones say anything of it.
        """
        if self.training is None and generated is None:
            return None
        cells, counts = ((), ()) if self.training is None else (self.training.cells, self.training.counts)
        return find_reach(self.table, cells, counts, generated)

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
        values["findings"] = [asdict(finding) for finding in self.findings]
        return json.dumps(values) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Overview:
        """Read an overview that `to_json` wrote."""
        try:
            kept = read_json(text.encode(errors="replace"), "The overview", _Kept)
            if (training := kept.training) is not None:
                none = (0,) * len(training.counts)
                _KeptTable(kept.table.sizes, training.cells, training.counts, none).cell_table()
            table = kept.table.cell_table()
            if len(kept.typical) != table.covered or np.bincount(kept.rows).tolist() != table.counts.tolist():
                raise ValueError("its cells and the tests in them do not fit each other")
            return cls(**{**vars(kept), "table": table})
        except (DataError, SettingError, ValueError, OverflowError) as error:
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
    network: str,
    data: tuple[Dataset, Dataset],
    conditions: Conditions,
    chosen: NDArray[np.int64],
    learnt: NDArray[np.floating],
) -> Overview:
    """Take from an analysis what is shown at a glance.

    `network` is the fingerprint of the weights; `data` are its training inputs and the tests, of which those are looked
    at that meet the conditions, the `chosen` positions (k,); `learnt` (n, neurons) are the layer's activations on all
    training inputs.
    """
    train, test = data
    sizes = tuple(of_neuron.k for of_neuron in analysis.clusters)
    comparable = bool(test.class_names) and test.class_names == train.class_names
    correct = analysis.correct[chosen] if comparable else None
    table = tabulate(analysis.assignments[chosen], sizes, correct=correct)
    # Tests that were chosen by what the network makes of them are not like any training inputs. Without the few whose
    # label or place is in doubt they still are.
    alike = of_classes(train.targets, train.class_names, conditions.classes)
    whole = len(alike) > 0 and conditions == Conditions(conditions.classes, without=conditions.without)
    training = analysis.assign(learnt[alike]) if whole else None
    classes = None
    if comparable and whole:
        classes = Labelled(test.class_names, test.targets[chosen], analysis.predictions[chosen], train.targets[alike])
    looked = Looked(analysis.assignments[chosen], training, correct, classes)
    first, together = shares(analysis.importance, analysis.important)
    rows = np.unique(analysis.codes[chosen], return_inverse=True)[1].reshape(-1)
    away = to_own_cell(
        analysis.test_activations[chosen],
        analysis.centroids,
        analysis.assignments[chosen],
        spread(analysis.train_activations),
    )
    important = tuple(int(neuron) for neuron in analysis.important)
    answers = Predictions(analysis.predictions, analysis.confidence, analysis.correct)
    return Overview(
        fingerprints=(network, train.fingerprint, test.fingerprint),
        tests=len(chosen),
        accuracy=None if correct is None else float(np.mean(correct)),
        rmse=answers.only(chosen).quality(test.targets[chosen], test.task)[1],
        layer=analysis.layer,
        neurons=len(analysis.importance),
        important=important,
        first_share=first,
        together_share=together,
        table=table,
        training=None if training is None else _training_reach(training, table),
        findings=find(looked, important, sizes),
        typical=tuple(test.ids[chosen[most_typical(rows, away)]].tolist()),
        rows=tuple(rows.tolist()),
    )


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
