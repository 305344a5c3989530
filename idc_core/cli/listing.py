"""`list`: the names that other commands take, with a line on each, straight from the registries."""

from __future__ import annotations

import argparse

from idc_core.cli.arguments import Word
from idc_core.cli.console import Subparsers, table
from idc_core.cli.library_names import enter_library
from idc_core.cli.registries import KINDS


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `list`."""
    parser = subparsers.add_parser(
        "list",
        help="list models with their layers, data sets, criteria, attacks and all else that has a name",
        description="Lists the names that the other commands and the engine take, with a line on each.",
        allow_abbrev=False,
    )
    kinds = Word(tuple(KINDS))
    parser.add_argument("kind", nargs="?", type=kinds, metavar="KIND", help=f"only these: {', '.join(KINDS)}")


def run(arguments: argparse.Namespace) -> int:
    """Print a table per kind and return the exit status."""
    for kind in KINDS if arguments.kind is None else (arguments.kind,):
        enter_library(kind)
    chosen = KINDS if arguments.kind is None else {arguments.kind: KINDS[arguments.kind]}
    print("\n\n".join(table([(name.upper(), *kind.columns), *kind.rows], "<<<") for name, kind in chosen.items()))
    return 0
