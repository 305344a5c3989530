"""What layers show on inputs: rows per input, equal however the inputs are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.lrp.rules import RelevanceSettings
from idc_core.store import Unfinished
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces
from idc_core.work.executor import Block, Executor, Work
from idc_core.work.rows import Parts
from idc_core.work.sizes import find_blocks
from idc_core.work.source import Opened, Source


def trace_inputs(
    executor: Executor,
    source: Source,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    *,
    only: NDArray[np.int64] | None = None,
    batch_size: int | None = None,
    unfinished: Unfinished | None = None,
    on_progress: Progress | None = None,
) -> Traces:
    """Trace inputs as `collect` does; by blocks, all rows are in memory.

    `only` these neurons (k,), where any are named. `unfinished` is where a pass in one piece keeps what it has found.
    """
    cutting = find_blocks(executor, source, layers, settings, batch_size)
    work = _Trace(tuple(layers), settings, only, cutting.batch_size, unfinished)
    traces = Traces.joined(*executor.run(source, work, cutting.blocks, on_progress).parts)
    for values in (traces.scores, *traces.activations.values(), *traces.relevance.values()):
        values.setflags(write=False)
    return traces


@dataclass(frozen=True)
class _Trace(Work[Parts[Traces]]):
    """Work: the traces of a block."""

    layers: tuple[str, ...]
    settings: RelevanceSettings | None
    only: NDArray[np.int64] | None
    batch_size: int | None
    unfinished: Unfinished | None

    def __call__(self, opened: Opened, block: Block) -> Parts[Traces]:
        """Trace a block of inputs."""
        traces = collect(
            opened.model,
            opened.inputs(block),
            self.layers,
            self.settings,
            batch_size=self.batch_size,
            unfinished=self.unfinished if opened.whole else None,
            on_progress=opened.on_progress,
        )
        if self.only is not None:
            activations, relevance = (
                {layer: values[:, self.only] for layer, values in held.items()}
                for held in (traces.activations, traces.relevance)
            )
            traces = replace(traces, activations=activations, relevance=relevance)
        return Parts([traces])
