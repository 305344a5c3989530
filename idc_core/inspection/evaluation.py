"""Hypotheses evaluated for some blocks at once: each is called seldom, with much to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idc_core.datasets import Dataset
from idc_core.inspection.alignment import present_rows, stack_rows
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.records import Records

SPAN_ROWS = 32_768
"""Rows of the blocks for which hypotheses are evaluated together."""


@dataclass(frozen=True, eq=False)
class Span:
    """What all hypotheses did on the records of some blocks.

    Attributes
    ----------
    blocks : range
    records : Records
    values : list of ndarray, bool or float32 (records, ...)
        A hypothesis each.
    """

    blocks: range
    records: Records
    values: list[NDArray[Any]]

    @cached_property
    def somewhere(self) -> NDArray[np.bool_]:
        """Whether each hypothesis is true somewhere in a record, and false somewhere: bool (2, hypotheses, records)."""
        found = np.empty((2, len(self.values), len(self.records)), bool)
        for at, value in enumerate(self.values):
            flat = (value > 0).astype(np.float32).reshape(len(value), -1)
            # A product with ones counts much faster than `any` does along so short an axis.
            count = flat @ np.ones(flat.shape[1], np.float32)
            found[0, at], found[1, at] = count > 0, count < flat.shape[1]
        return found


@dataclass(eq=False)
class Evaluation:
    """The behaviours of hypotheses on records that are read in blocks.

    Parameters
    ----------
    dataset : Dataset
    hypotheses : sequence of Hypothesis
    order : ndarray, int64 (n,)
        The order in which records are read.
    ends : ndarray, int64 (blocks,)
        Where in the order each block ends.
    together : int
        Records of the blocks that are evaluated together; 0 evaluates one block, anew each time.
    """

    dataset: Dataset
    hypotheses: Sequence[Hypothesis]
    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    together: int
    evaluated: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._small = all(one.kind != "number" and one.classes <= 256 for one in self.hypotheses)
        self._span: Span | None = None
        self._support: dict[int, NDArray[np.int64]] = {}

    def rows(self, index: int, shape: tuple[int, ...]) -> dict[int, Tensor]:
        """Return behaviours at a layer's places, (rows, hypotheses), of a block and those evaluated with it, by index.

        They are uint8 where that holds them, else float32.
        """
        span = self._around(index)
        present = present_rows(span.records, shape)
        rows = stack_rows(span.values, self.hypotheses, shape, present, np.uint8 if self._small else np.float32)
        ends = np.arange(len(span.records) + 1) * int(np.prod(shape))
        before = ends if present is None else np.searchsorted(present, ends)
        return {at: rows[slice(*before[self._within(span, at)])] for at in span.blocks}

    def support(self, index: int) -> NDArray[np.int64]:
        """Return in how many records each hypothesis is true somewhere, and false somewhere: int64 (2, hypotheses)."""
        if index not in self._support:
            span = self._around(index)
            for at in span.blocks:
                self._support[at] = span.somewhere[..., slice(*self._within(span, at))].sum(2)
        return self._support[index]

    def _around(self, index: int) -> Span:
        if self._span is None or index not in self._span.blocks or not self.together:
            begin = self._begin(index)
            stop = max(index + 1, int(np.searchsorted(self.ends, begin + self.together, "right")))
            records = Records(self.dataset, self.order[begin : self._begin(stop)])
            self.evaluated += len(self.hypotheses)
            values = [hypothesis.values(records) for hypothesis in self.hypotheses]
            self._span = Span(range(index, stop), records, values)
        return self._span

    def _begin(self, index: int) -> int:
        return int(self.ends[index - 1]) if index else 0

    def _within(self, span: Span, index: int) -> list[int]:
        """Return where in a span a block's records begin and end."""
        return [self._begin(at) - self._begin(span.blocks.start) for at in (index, index + 1)]
