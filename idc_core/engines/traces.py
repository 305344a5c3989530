"""What layers show on inputs, on an engine: rows per input, equal to those of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from idc_core.engines.engine import Block, Engine
from idc_core.engines.sizes import find_blocks
from idc_core.engines.source import Opened, Source
from idc_core.lrp.rules import RelevanceSettings
from idc_core.progress import Progress
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces


def collect_on(
    engine: Engine,
    source: Source,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    *,
    only: NDArray[np.int64] | None = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Traces:
    """Trace inputs as `collect` does, all rows in memory; `only` these neurons (k,), where any are named."""
    cutting = find_blocks(engine, source, layers, settings, batch_size)
    work = _Collect(tuple(layers), settings, only, cutting.batch_size)
    found = Traces.joined(*engine.run(source, work, cutting.blocks, on_progress).parts)
    for values in (found.scores, *found.activations.values(), *found.relevance.values()):
        values.setflags(write=False)
    return found


def usual_traces(open_engine: Callable[[], Engine], source: Source, layer: str, on_progress: Progress | None) -> Traces:
    """Return what a layer shows with the usual rule of relevance, on an engine that is opened for it."""
    with open_engine() as engine:
        return collect_on(engine, source, (layer,), RelevanceSettings(), on_progress=on_progress)


@dataclass(eq=False)
class _Parts:
    """Traces of blocks, in order."""

    parts: list[Traces]

    def merge(self, other: _Parts) -> Self:
        """Take in the traces of the next blocks."""
        self.parts += other.parts
        return self


@dataclass(frozen=True)
class _Collect:
    """Work: the traces of a block."""

    layers: tuple[str, ...]
    settings: RelevanceSettings | None
    only: NDArray[np.int64] | None
    batch_size: int
    keeps: str = ""

    def __call__(self, opened: Opened, block: Block) -> _Parts:
        """Trace a block of inputs."""
        inputs = opened.data.inputs[slice(*block)]
        found = collect(opened.model, inputs, self.layers, self.settings, batch_size=self.batch_size)
        if self.only is not None:
            activations, relevance = (
                {layer: values[:, self.only] for layer, values in held.items()}
                for held in (found.activations, found.relevance)
            )
            found = replace(found, activations=activations, relevance=relevance)
        return _Parts([found])
