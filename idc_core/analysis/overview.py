"""What the Overview shows of an analysis, small enough to be kept in a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable, state_counts
from idc_core.errors import DataError
from idc_core.guarded import read_json


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

    @property
    def errors_only(self) -> NDArray[np.bool_]:
        """Whether only misclassified tests reach the cell, (c,); nowhere where no answer can be wrong."""
        only = self.table.only_errors
        return only if self.accuracy is not None else np.zeros_like(only)

    def to_json(self) -> str:
        """Write the overview as JSON text."""
        values: dict[str, Any] = dict(vars(self))
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
            found = read_json(text.encode(errors="replace"), "The overview", _Kept)
            return cls(**{**vars(found), "table": found.table.cell_table()})
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
