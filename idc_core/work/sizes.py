"""How many inputs one process would run at a time in a pass that looks at some layers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from idc_core.lrp.named_inputs import main_of
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.batch_size import inputs_at_once
from idc_core.tracing.batching import probe, to_network
from idc_core.tracing.sources import whole
from idc_core.work.executor import Cut, Cutting, Executor
from idc_core.work.source import Opened, Source


def find_blocks(
    executor: Executor,
    source: Source,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    batch_size: int | None = None,
) -> Cutting:
    """Find out how inputs are cut for a pass that looks at these layers, as `batches` would cut them."""
    return executor.cut(source, Cut(partial(_at_once, layers=tuple(layers), settings=settings), batch_size))


def _at_once(opened: Opened, layers: tuple[str, ...], settings: RelevanceSettings | None) -> int:
    first = to_network(opened.model, whole(opened.data)[:1])
    tried = probe(opened.model, first, layers, settings)
    return inputs_at_once(tried.footprint, tried.uses, main_of(first).device, tried.held)
