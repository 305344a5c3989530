"""`--engine` and `--address`: where a command's work runs, and how its workers open what the command has opened."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from idc_core.cli.arguments import Name, Text
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.models import Network
    from idc_core.work import Source
    from idc_core.work.executor import OpenExecutor


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command whose work can run on an engine."""
    add = parser.add_argument_group("several machines, see docs/CLUSTER.md").add_argument
    add("--engine", type=Name("engines"), metavar="NAME", help="run block by block: local or ray (in one piece, here)")
    address = Text(r"auto|[\w.\-\[\]:]*\w\]?:\d{1,5}", "auto or HOST:PORT, such as 10.0.0.1:6379")
    add("--address", type=address, metavar="HOST:PORT", help="of a Ray cluster; without it, the cores of this machine")


def executor_of(arguments: argparse.Namespace) -> OpenExecutor:
    """Return what opens the executor that the options name; where they name none, that of this process."""
    from idc_core.work import EXECUTORS, Here

    if arguments.engine is not None:
        return partial(EXECUTORS[arguments.engine].open, arguments.address or "")
    if arguments.address is not None:
        raise SettingError("--address is for a cluster: add --engine ray, or leave it out.")
    return Here


def source_of(arguments: argparse.Namespace, model: Network, data: Dataset, limit: int | None) -> Source:
    """Return network and data as they were opened here, and how workers open them: setup files and paths first."""
    from idc_core.work import Source

    setups = tuple(str(path.absolute()) for path in arguments.setup)
    own = arguments.own_files.to_json() if arguments.own_files else ""
    return replace(
        Source.here(model.card, lambda: model, data),
        limit=limit,
        prepare=_SameFiles(setups, own) if setups or own else None,
    )


@dataclass(frozen=True)
class _SameFiles:
    """Opens in a worker the setup files of a command line, and what it names by a path, as `OwnFiles.to_json` says."""

    setups: tuple[str, ...]
    own: str

    def __call__(self) -> None:
        """Open them."""
        from idc_core.opening.files import OwnFiles
        from idc_core.opening.setup_files import open_setup

        for path in self.setups:
            open_setup(path)
        if self.own:
            OwnFiles.from_json(self.own, "What a command has opened").enter()
