"""Passes over all inputs on the engine that the config file names, whose workers open networks and data by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from idc_core.base.config import config
from idc_core.opening import server_files, setup_files
from idc_core.work import EXECUTORS, Executor, Here, Source
from studio.jobs import workers

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.models import ModelCard, Network
    from idc_core.work.executor import OpenExecutor

    Passes = tuple[Source, OpenExecutor]

_TOLD = (setup_files.VARIABLE, server_files.VARIABLE)
"""Environment variables that name what this server has opened."""


@dataclass(frozen=True)
class _SameServer:
    """Opens in an engine's worker what this server offers: its library, and what the environment names."""

    environment: tuple[tuple[str, str], ...]

    def __call__(self) -> None:
        """Open it."""
        os.environ.update(self.environment)
        follow()


def passes(card: ModelCard, open_model: Callable[[], Network], data: Dataset, limit: int | None) -> Passes:
    """Return a pass's network and inputs, and what opens the executor of the config file.

    Networks and data of a running program are in no other process, so that they run in this server's own.
    """
    name, address, source = config().engine, config().address, Source.here(card, open_model, data)
    if not name or workers.alone():
        return source, Here
    environment = tuple((variable, os.environ[variable]) for variable in _TOLD if variable in os.environ)
    return replace(source, limit=limit, prepare=_SameServer(environment), live=None), partial(_open, name, address)


def _open(name: str, address: str) -> Executor:
    return EXECUTORS[name].open(address)


def follow() -> None:
    """Bring the lists of networks and data to what the server's are."""
    from idc_core import library

    library.enter_all()
    if os.environ.get("IDC_FILES"):
        server_files.open_once()
    if os.environ.get("IDC_SETUP"):
        setup_files.watch()
        if setup_files.changed():
            setup_files.refresh()
