"""Passes over all inputs on the engine that the config file names, whose workers open networks and data by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from idc_core import setup_files
from idc_core.cli import own_server_files
from idc_core.config import config
from idc_core.progress import Progress
from studio.engine import workers

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.datasets.dataset import Split
    from idc_core.models import ModelCard
    from idc_core.tracing.traces import Traces

_TOLD = (setup_files.VARIABLE, own_server_files.VARIABLE)
"""Environment variables that name what this server has opened."""


@dataclass(frozen=True)
class SameServer:
    """Opens in an engine's worker what this server offers: its library, and what the environment names."""

    environment: tuple[tuple[str, str], ...]

    def __call__(self) -> None:
        """Open it."""
        os.environ.update(self.environment)
        from studio.engine.worker_process import follow

        follow()


def engine_traces(
    card: ModelCard, data: Dataset, split: Split, limit: int | None, layer: str
) -> Callable[[Progress], Traces] | None:
    """Return what makes a layer's traces on the engine of the config file; None where this server makes them.

    Networks and data of a running program are in no other process, so that no engine runs them.
    """
    name, address = config().engine, config().address
    if not name or workers.alone():
        return None
    prints = (card.fingerprint, data.fingerprint)
    environment = tuple((one, os.environ[one]) for one in _TOLD if one in os.environ)
    model, inputs = card.name, data.name

    def make(report: Progress) -> Traces:
        from idc_core.engines import ENGINES, Source
        from idc_core.engines.traces import usual_traces

        source = Source(model, inputs, split, limit, SameServer(environment), prints)
        return usual_traces(partial(ENGINES[name].open, address), source, layer, report)

    return make
