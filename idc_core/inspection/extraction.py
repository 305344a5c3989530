"""Units and hypotheses block by block: each record through each network once, each hypothesis evaluated once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.progress import Progress, report
from idc_core.datasets import Dataset
from idc_core.inspection.blocks import Block, BlockStore, Place, present_rows, stack_rows, unit_rows
from idc_core.inspection.hypothesis import Hypothesis, Records
from idc_core.tracing.neurons import neuron_axes
from idc_core.tracing.trace import trace

BLOCK_ROWS = 4096
"""Rows of one block: large enough for fast matrix products, small enough for the caches."""

_FIRST_RECORDS, _FEWEST_RECORDS, _BLOCKS = 32, 16, 32
"""Records of the first blocks, in layers with many places as few as the second number; blocks before they double."""


def _block_ends(count: int, places: int) -> NDArray[np.int64]:
    """Return where the blocks of `count` records end, int64 (blocks,), for at most `places` rows per record.

    The first blocks are small, so that few records are cut into many, and later ones double. The blocks of 1,024
    records are the first ones of any larger number, so that reading on repeats none of them.
    """
    largest = max(_FEWEST_RECORDS, BLOCK_ROWS // places)
    size = max(1, min(_FIRST_RECORDS, largest, count // _BLOCKS))
    ends = [0]
    while ends[-1] < count:
        while ends[-1] >= _BLOCKS * size and size < largest:
            size = min(2 * size, largest)
        ends.append(min(ends[-1] + size, count))
    return np.array(ends[1:], np.int64)


@dataclass(eq=False)
class UnitSums:
    """Number, sum and sum of squares of every unit's rows (3, units) by place, about the first row (units,)."""

    about: dict[Place, Tensor]
    moments: dict[Place, NDArray[np.float64]]

    def merge(self, other: UnitSums) -> None:
        """Take in the sums over the records that come next."""
        self.about = {**other.about, **self.about}
        for place, moments in other.moments.items():
            self.moments[place] = self.moments[place] + moments if place in self.moments else moments


@dataclass(eq=False)
class Stream:
    """Make the blocks of a run in order, when they are first asked for.

    `order` is int64 (n,). Without a `store` blocks that are read again are made again; with `cache` a hypothesis is
    evaluated once per block. `on_progress` is called with records read.
    """

    models: Mapping[str, nn.Module]
    layers: Mapping[str, Sequence[str]]
    dataset: Dataset
    hypotheses: Sequence[Hypothesis]
    order: NDArray[np.int64]
    store: BlockStore | None = None
    cache: bool = True
    on_progress: Progress | None = None

    def __post_init__(self) -> None:
        self._places = 1
        for name, model in self.models.items():
            first = next(_extract(model, self.layers[name], iter([self.dataset.inputs[self.order[:1]]])))
            self._places = max(self._places, *(int(np.prod(shape)) for _, shape in first.values()))
        self.ends = _block_ends(len(self.order), self._places)
        self._sources: dict[str, Iterator[dict[str, tuple[Tensor, tuple[int, ...]]]]] = {}
        self.made = 0
        self._known: dict[int, tuple[NDArray[np.int64], dict[Place, tuple[int, ...]]]] = {}
        self._last: tuple[int, Block] | None = None
        self._about: dict[Place, Tensor] = {}
        self._moments: dict[Place, NDArray[np.float64]] = {}
        self._counted = 0
        self._evaluate()

    def _evaluate(self) -> None:
        together = _SPAN_ROWS // self._places if self.cache else 0
        self._evaluation = _Evaluation(self.dataset, self.hypotheses, self.order, self.ends, together)
        self._rows: tuple[tuple[int, ...], dict[int, Tensor]] | None = None

    def extend(self, order: NDArray[np.int64]) -> bool:
        """Read more records of the same order; return whether all blocks made so far are blocks of these as well."""
        ends = _block_ends(len(order), self._places)
        if not np.array_equal(ends[: self.made], self.ends[: self.made]):
            return False
        if len(order) != len(self.order):
            self.order, self.ends = order, ends
            self._sources.clear()
            self._evaluate()
        return True

    def only(self, blocks: range) -> None:
        """Read these blocks next, and no hypothesis elsewhere; moments are of these alone."""
        self._start(0)
        if blocks.start:
            # The first block settles how later ones are cut into batches, on which last digits depend.
            for name, model in self.models.items():
                inputs = chain([self.dataset.inputs[self.positions(0)]], self._inputs(blocks.start))
                self._sources[name] = _extract(model, self.layers[name], inputs)
                next(self._sources[name])
        self.made = self._counted = blocks.start
        self._last = None
        self._moments.clear()
        self._evaluate()
        records = self.records(blocks.stop) - self.records(blocks.start)
        self._evaluation.together = min(self._evaluation.together, records)

    def summed(self) -> UnitSums:
        """Return the moments of the units over what was read."""
        return UnitSums(dict(self._about), dict(self._moments))

    def take(self, found: UnitSums) -> None:
        """Go on after the last block, from moments that were made elsewhere."""
        self._about, self._moments = found.about, found.moments
        self.made = self._counted = len(self)

    def __len__(self) -> int:
        return len(self.ends)

    def records(self, blocks: int) -> int:
        """Return how many records the first blocks have."""
        return int(self.ends[blocks - 1]) if blocks else 0

    def blocks_of(self, records: int) -> int:
        """Return how many blocks hold the first records, at least one and at most all."""
        return min(int(np.searchsorted(self.ends, max(records, 1))) + 1, len(self))

    def positions(self, index: int) -> NDArray[np.int64]:
        """Return which records are in a block."""
        return self.order[self.records(index) : self.records(index + 1)]

    def block(self, index: int) -> Block:
        """Return a block: the last one made, a kept one, or the next."""
        if self._last is not None and self._last[0] == index:
            return self._last[1]
        if self.store is not None and index < self.made:
            positions, shapes = self._known[index]
            block = Block(positions, dict(zip(shapes, self.store.get((index,)), strict=True)), shapes, self._about)
        else:
            if index < self.made or not self._sources:
                self._start(index)
            while self.made < index:
                self._make()
            block = self._make()
        self._last = index, block
        if index + 1 == self.made:
            # Whoever stops now finds this block again when reading goes on.
            report(self.on_progress, self.records(self.made), len(self.order), "records read")
        return block

    def behaviours(self, index: int, place: Place, block: Block) -> Tensor:
        """Return what all hypotheses did at a layer's places: (rows, hypotheses), uint8 where that holds it."""
        shape = block.shapes[place]
        if self.cache and self.store is not None:
            if (index, shape) not in self.store:
                for at, rows in self._evaluation.rows(index, shape).items():
                    self.store.put((at, shape), [rows])
            return self.store.get((index, shape))[0]
        if self._rows is None or self._rows[0] != shape or index not in self._rows[1] or not self.cache:
            self._rows = shape, self._evaluation.rows(index, shape)
        return self._rows[1][index]

    def support(self, index: int) -> NDArray[np.int64]:
        """Return in how many records each hypothesis is true somewhere, and false somewhere: int64 (2, hypotheses)."""
        return self._evaluation.support(index)

    def units(self) -> dict[Place, NDArray[np.float64]]:
        """Return mean and standard deviation of every unit over what was read, float64 (units, 2)."""
        units = {}
        for place, (n, x, xx) in self._moments.items():
            mean, spread = self._about[place].double().numpy() + x / n, np.sqrt(np.maximum(xx / n - (x / n) ** 2, 0))
            units[place] = np.stack([mean, spread], 1)
        return units

    def _count(self, block: Block) -> None:
        """Add a block's rows to their units' moments."""
        for place, rows in block.units.items():
            if not len(rows):
                continue
            moments = self._moments.setdefault(place, np.zeros((3, rows.shape[1])))
            moments[0] += len(rows)
            for piece in block.pieces(place):
                moments[1:] += piece.units.moments

    def _start(self, index: int) -> None:
        self.made = index
        for name, model in self.models.items():
            self._sources[name] = _extract(model, self.layers[name], self._inputs(index))

    def _inputs(self, index: int) -> Iterator[NDArray[np.generic]]:
        for at in range(index, len(self)):
            yield self.dataset.inputs[self.positions(at)]

    def _make(self) -> Block:
        positions = self.positions(self.made)
        records = Records(self.dataset, positions)
        units: dict[Place, Tensor] = {}
        shapes: dict[Place, tuple[int, ...]] = {}
        for name, source in self._sources.items():
            for layer, (rows, shape) in next(source).items():
                kept = present_rows(records, shape)
                units[name, layer] = rows if kept is None else rows[torch.from_numpy(kept)]
                shapes[name, layer] = shape
                if (name, layer) not in self._about and len(units[name, layer]):
                    self._about[name, layer] = units[name, layer][0].clone()
        block = Block(positions, units, shapes, self._about)
        if self.made == self._counted:
            self._counted += 1
            self._count(block)
        if self.store is not None:
            self._known[self.made] = positions, shapes
            self.store.put((self.made,), units.values())
        self.made += 1
        return block


def _extract(
    model: nn.Module, layers: Sequence[str], blocks: Iterator[NDArray[np.generic]]
) -> Iterator[dict[str, tuple[Tensor, tuple[int, ...]]]]:
    """Yield, for every block of inputs, each layer's rows (n * places, units) and places."""
    sizes: deque[int] = deque()

    def noted() -> Iterator[NDArray[np.generic]]:
        for block in blocks:
            sizes.append(len(block))
            yield block

    axes = neuron_axes(model, layers)
    parts: list[dict[str, Tensor]] = []
    gathered = 0
    for batch in trace(model, noted(), layers):
        parts.append(batch.activations)
        gathered += len(batch.scores)
        del batch  # the next one needs the memory
        if gathered == sizes[0]:
            yield {layer: unit_rows(_whole(parts, layer).cpu(), axes[layer]) for layer in layers}
            parts, gathered = [], 0
            sizes.popleft()


def _whole(parts: list[dict[str, Tensor]], layer: str) -> Tensor:
    """Take a layer's activations from the batches of a block."""
    values = [part.pop(layer) for part in parts]
    return values[0] if len(values) == 1 else torch.cat(values)


_SPAN_ROWS = 32_768
"""Rows of the blocks for which hypotheses are evaluated together."""


@dataclass(frozen=True, eq=False)
class _EvaluatedBlocks:
    """Behaviours on the records of some blocks: one bool or float32 array (records, ...) per hypothesis."""

    blocks: range
    records: Records
    values: list[NDArray[np.bool_] | NDArray[np.float32]]

    @cached_property
    def somewhere(self) -> NDArray[np.bool_]:
        """Whether each hypothesis is true somewhere in a record, and false somewhere: bool (2, hypotheses, records)."""
        occurs = np.empty((2, len(self.values), len(self.records)), bool)
        for at, value in enumerate(self.values):
            flat = (value > 0).astype(np.float32).reshape(len(value), -1)
            # A product with ones counts much faster than `any` does along so short an axis.
            count = flat @ np.ones(flat.shape[1], np.float32)
            occurs[0, at], occurs[1, at] = count > 0, count < flat.shape[1]
        return occurs


@dataclass(eq=False)
class _Evaluation:
    """Evaluate hypotheses on records that are read in blocks.

    `ends` (blocks,) says where in `order` (n,) each block ends. Blocks of up to `together` records are evaluated
    together; 0 evaluates one block, again each time.
    """

    dataset: Dataset
    hypotheses: Sequence[Hypothesis]
    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    together: int
    evaluated: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._small = all(hypothesis.kind != "number" and hypothesis.classes <= 256 for hypothesis in self.hypotheses)
        self._span: _EvaluatedBlocks | None = None
        self._support: dict[int, NDArray[np.int64]] = {}

    def rows(self, index: int, shape: tuple[int, ...]) -> dict[int, Tensor]:
        """Return behaviours at a layer's places, uint8 or float32 (rows, hypotheses), of blocks evaluated together."""
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

    def _around(self, index: int) -> _EvaluatedBlocks:
        if self._span is None or index not in self._span.blocks or not self.together:
            begin = self._begin(index)
            stop = max(index + 1, int(np.searchsorted(self.ends, begin + self.together, "right")))
            records = Records(self.dataset, self.order[begin : self._begin(stop)])
            self.evaluated += len(self.hypotheses)
            values = [hypothesis.values(records) for hypothesis in self.hypotheses]
            self._span = _EvaluatedBlocks(range(index, stop), records, values)
        return self._span

    def _begin(self, index: int) -> int:
        return int(self.ends[index - 1]) if index else 0

    def _within(self, span: _EvaluatedBlocks, index: int) -> list[int]:
        """Return where in a span a block's records begin and end."""
        return [self._begin(at) - self._begin(span.blocks.start) for at in (index, index + 1)]
