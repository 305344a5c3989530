"""Which neurons the inputs of each class activate: counts, and what is known of the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from idc_core.base.progress import Progress
from idc_core.confusion.probability_matrix import THRESHOLD, ActivationCounts
from idc_core.confusion.scaled_activation import stream_statistics
from idc_core.work.executor import Block, Executor, Work
from idc_core.work.rows import BlockRows
from idc_core.work.sizes import find_blocks
from idc_core.work.source import Opened, Source


@dataclass(eq=False)
class _ClassCounts:
    """Counts of active neurons by predicted class, and the prediction of every input, int64 (n,)."""

    counts: ActivationCounts
    predicted: BlockRows[np.int64]

    def merge(self, other: _ClassCounts) -> Self:
        """Take in the counts of the next inputs."""
        self.counts.merge(other.counts)
        self.predicted.merge(other.predicted)
        return self


def count_classes(
    executor: Executor,
    source: Source,
    layers: Sequence[str],
    threshold: float = THRESHOLD,
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> _ClassCounts:
    """Count which neurons the inputs that a source names activate, as `activation_probability` does."""
    cutting = find_blocks(executor, source, layers, None, batch_size)
    work = _Count(tuple(layers), threshold, cutting.batch_size)
    return executor.run(source, work, cutting.blocks, on_progress)


@dataclass(frozen=True)
class _Count(Work[_ClassCounts]):
    """Work: the counts of a block."""

    layers: tuple[str, ...]
    threshold: float
    batch_size: int | None

    def __call__(self, opened: Opened, block: Block) -> _ClassCounts:
        """Count a block of inputs."""
        counted: _ClassCounts | None = None
        batches = stream_statistics(
            opened.model, opened.inputs(block), self.layers, batch_size=self.batch_size, on_progress=opened.on_progress
        )
        for parts, scores in batches:
            predicted = np.asarray(scores.argmax(1), np.int64)
            if counted is None:
                counted = _ClassCounts(ActivationCounts(scores.shape[1], self.threshold), BlockRows([]))
            counted.counts.update(np.concatenate(parts, axis=1), predicted)
            counted.predicted.parts.append(predicted)
        assert counted is not None  # a block has inputs, or the pass has refused it
        return counted
