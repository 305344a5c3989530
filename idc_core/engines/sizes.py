"""How many inputs a source has, and how many of them one process would run at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from idc_core.engines.engine import Block, Engine, cut
from idc_core.engines.source import Opened, Source
from idc_core.lrp.named_inputs import main_of
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.batch_size import inputs_at_once
from idc_core.tracing.batching import place, probe, whole


@dataclass(frozen=True)
class Cutting:
    """Blocks of a source's inputs, and the batch size within them."""

    blocks: list[Block]
    batch_size: int

    def merge(self, other: Cutting) -> Cutting:
        """Return itself: one worker says how inputs are cut."""
        return self


@dataclass(frozen=True)
class _Sizes:
    """Finds out how inputs are cut, as `batches` would cut them."""

    layers: tuple[str, ...]
    settings: RelevanceSettings | None
    batch_size: int | None
    keeps: str = ""

    def __call__(self, opened: Opened, block: Block) -> Cutting:
        """Return the blocks."""
        size = self.batch_size
        if size is None:
            first = place(opened.model, whole(opened.data)[:1])
            tried = probe(opened.model, first, self.layers, self.settings)
            size = inputs_at_once(tried.footprint, tried.uses, main_of(first).device, tried.held)
        return Cutting(cut(len(opened.data), size), size)


def find_blocks(
    engine: Engine,
    source: Source,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    batch_size: int | None = None,
) -> Cutting:
    """Let a worker find out how inputs are cut for a pass that looks at these layers."""
    return engine.run(source, _Sizes(tuple(layers), settings, batch_size), [(0, 1)])
