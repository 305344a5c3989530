"""`--engine` and `--address`: where a command's work runs, and how its workers open what the command has opened."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from idc_core.cli.arguments import Name, Text
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.datasets.dataset import Split
    from idc_core.engines import Engine, Source
    from idc_core.models import Network


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command whose work can run on an engine."""
    add = parser.add_argument_group("several machines, see docs/CLUSTER.md").add_argument
    add("--engine", type=Name("engines"), metavar="NAME", help="run block by block: local or ray (in one piece, here)")
    address = Text(r"auto|[\w.\-\[\]:]*\w\]?:\d{1,5}", "auto or HOST:PORT, such as 10.0.0.1:6379")
    add("--address", type=address, metavar="HOST:PORT", help="of a Ray cluster; without it, the cores of this machine")


def engine_of(arguments: argparse.Namespace) -> Callable[[], Engine] | None:
    """Return what opens the engine that the options name; None where they name none."""
    if arguments.engine is None:
        if arguments.address is not None:
            raise SettingError("--address is for a cluster: add --engine ray, or leave it out.")
        return None
    from idc_core.engines import ENGINES

    return partial(ENGINES[arguments.engine].open, arguments.address or "")


def source_of(arguments: argparse.Namespace, model: Network, data: Dataset, split: Split, limit: int | None) -> Source:
    """Return what the workers open, with the setup files and paths of this command line: what was opened here."""
    from idc_core.engines import Source

    setups, words = tuple(str(path.absolute()) for path in arguments.setup), tuple(arguments.paths)
    prepare = SameFiles(setups, words) if setups or words else None
    return Source(model.card.name, data.name, split, limit, prepare, (model.card.fingerprint, data.fingerprint))


@dataclass(frozen=True)
class SameFiles:
    """Opens in a worker the setup files and the paths that a command line names."""

    setups: tuple[str, ...]
    words: tuple[str, ...]

    def __call__(self) -> None:
        """Open them."""
        from idc_core import setup_files
        from idc_core.cli import make_parser
        from idc_core.cli.own_paths import open_paths

        for path in self.setups:
            setup_files.open_setup(path)
        if self.words:
            open_paths(make_parser().parse_args(["studio", *self.words]))
