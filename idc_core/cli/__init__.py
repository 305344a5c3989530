"""The command line: one module a command, one line in `COMMANDS`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from idc_core.cli import (
    analyze,
    check_network,
    confusion,
    differential,
    experiment,
    inspect,
    listing,
    studio,
    train,
    verify,
)
from idc_core.cli.arguments import FileToRead, Parser
from idc_core.cli.console import Subparsers
from idc_core.errors import IdcError
from idc_core.files import cache_folder, sweep

FAILED = 2
INTERRUPTED = 130  # 128 + SIGINT, what shells report for a program that Ctrl-C ended


class Command(Protocol):
    """What a command's module offers. It imports torch only inside `run`, so that help stays instant."""

    def add_parser(self, subparsers: Subparsers, /) -> None:
        """Add the command's own parser, under the name it has in `COMMANDS`."""

    def run(self, arguments: argparse.Namespace, /) -> int:
        """Do the work and return the exit status."""


COMMANDS: dict[str, Command] = {
    "analyze": analyze,
    "check-network": check_network,
    "confusion": confusion,
    "differential": differential,
    "experiment": experiment,
    "inspect": inspect,
    "list": listing,
    "studio": studio,
    "train": train,
    "verify": verify,
}


def make_parser() -> Parser:
    """Return the parser of the whole command line, with a sub-parser for every command."""
    parser = Parser(
        prog="python -m idc_core",
        description="Shows which behaviour of a neural network its tests have not exercised.",
        allow_abbrev=False,
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS.values():
        command.add_parser(subparsers)
    _add_setup(parser)
    for one in subparsers.choices.values():
        _add_setup(one)
    return parser


def _add_setup(parser: argparse.ArgumentParser) -> None:
    told = "a file with your own networks and data, as docs/OWN-NETWORK.md explains; may be given several times"
    parser.add_argument(
        "--setup", type=FileToRead(), action="append", metavar="FILE", default=argparse.SUPPRESS, help=told
    )


def _take_setups(argv: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the setup files named anywhere on a command line, and the command line without them."""
    first = Parser(add_help=False, allow_abbrev=False, prog="python -m idc_core")
    _add_setup(first)
    found, others = first.parse_known_args(list(argv))
    return getattr(found, "setup", []), others


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after `python -m idc_core`; those of this process unless given.

    Returns
    -------
    int
        The exit status: 0 for success, 2 for a mistake (explained in a sentence on stderr), 130 for Ctrl-C.
    """
    # Read once, when torch is imported: OpenMP threads that spin make two busy processes six times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        setups, others = _take_setups(sys.argv[1:] if argv is None else argv)
        for setup in setups:
            from idc_core.setup_files import open_setup  # it needs the registries, which help does not

            open_setup(setup)
        arguments = make_parser().parse_args(others)
        arguments.setup = setups
        cache_folder()  # refused before the work, even where a command may not come to need it
        sweep()
        status = COMMANDS[arguments.command].run(arguments)
        sys.stdout.flush()
        return status
    except IdcError as error:
        print(error, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("\nStopped by Ctrl-C before the work was finished.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has enough (`| head`). Python flushes stdout once more at exit: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
