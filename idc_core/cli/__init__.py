"""The command line: one module a command, one line in `COMMANDS`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from idc_core import __version__
from idc_core.base import devices
from idc_core.base.files import COMMAND, cache_folder, sweep
from idc_core.base.own_code import explained
from idc_core.base.threads import one_thread, settle
from idc_core.cli import (
    analyze,
    benchmark,
    check,
    check_network,
    confusion,
    differential,
    experiment,
    fill_grid,
    import_run,
    inspect,
    listing,
    own_options,
    report,
    runs,
    studio,
    train,
    verify,
)
from idc_core.cli.arguments import DEVICE, FileToRead, Parser
from idc_core.cli.console import Subparsers

_FAILED = 2
_OF_THE_WHOLE = ("-h", "--help", "--version")
_INTERRUPTED = 130  # 128 + SIGINT, what shells report for a program that Ctrl-C ended


class Command(Protocol):
    """What a command's module offers. It imports torch only inside `run`, so that help stays instant."""

    def add_parser(self, subparsers: Subparsers, /) -> None:
        """Add the command's own parser, under the name it has in `COMMANDS`."""

    def run(self, arguments: argparse.Namespace, /) -> int:
        """Do the work and return the exit status."""


COMMANDS: dict[str, Command] = {
    "analyze": analyze,
    "benchmark": benchmark,
    "check": check,
    "check-network": check_network,
    "confusion": confusion,
    "differential": differential,
    "experiment": experiment,
    "fill-grid": fill_grid,
    "import-run": import_run,
    "inspect": inspect,
    "list": listing,
    "report": report,
    "runs": runs,
    "studio": studio,
    "train": train,
    "verify": verify,
}


def _make_parser() -> Parser:
    """Return the parser of the whole command line, with a sub-parser for every command."""
    parser = Parser(
        prog=COMMAND,
        description="Shows which behaviour of a neural network its tests have not exercised. Without a command, opens "
        "the dashboard.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"IDC Studio {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS.values():
        command.add_parser(subparsers)
    _add_setup(parser)
    for name, subparser in subparsers.choices.items():
        _add_setup(subparser)
        if name not in ("import-run", "list", "runs", "train"):
            _add_device(subparser)
        if name not in ("check", "import-run", "list", "runs", "train"):
            own_options.add_options(subparser, name)
    return parser


def _add_setup(parser: argparse.ArgumentParser) -> None:
    help = "a file with your own networks and data, as docs/OWN-NETWORK.md explains; may be given several times"
    parser.add_argument(
        "--setup", type=FileToRead(), action="append", metavar="FILE", default=argparse.SUPPRESS, help=help
    )


def _add_device(parser: argparse.ArgumentParser) -> None:
    help = f"where networks run: {DEVICE.example}; auto is the first GPU if there is one (the config file's, else cpu)"
    parser.add_argument("--device", type=DEVICE, metavar="NAME", help=help)


def _take_setups(argv: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the setup files named anywhere on a command line, and the command line without them."""
    first = Parser(add_help=False, allow_abbrev=False, prog=COMMAND)
    _add_setup(first)
    arguments, others = first.parse_known_args(list(argv))
    return getattr(arguments, "setup", []), others


def _as_workers(arguments: argparse.Namespace) -> AbstractContextManager[None]:
    """Compute as the workers of a Ray cluster do, where the command runs on one."""
    return one_thread() if getattr(arguments, "engine", None) == "ray" else nullcontext()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the dashboard's, `studio`, where none is named.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after `idc-studio`, which is `python -m idc_core`; those of this process unless given.

    Returns
    -------
    int
        The exit status: 0 for success, 2 for a mistake (explained in a sentence on stderr), 130 for Ctrl-C.
    """
    try:
        settle()
        setups, others = _take_setups(sys.argv[1:] if argv is None else argv)
        for setup in setups:
            from idc_core.opening.setup_files import open_setup  # it needs the registries, which help does not

            open_setup(setup)
        if not others or (others[0].startswith("-") and others[0] not in _OF_THE_WHOLE):
            others.insert(0, "studio")
        arguments = _make_parser().parse_args(others)
        arguments.setup, arguments.words = setups, others
        cache_folder()  # refused before the work, even where a command may not come to need it
        sweep()
        with devices.using(getattr(arguments, "device", None)), _as_workers(arguments):
            own_options.open_paths(arguments)
            for sentence in arguments.renamed:
                print(sentence, file=sys.stderr)
            status = COMMANDS[arguments.command].run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("\nStopped by Ctrl-C before the work was finished.", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has enough (`| head`). Python flushes stdout once more at exit: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except BaseException as error:
        if not (why := explained(error)):  # a mistake of ours, or the end of a help text
            raise
        print(why, file=sys.stderr)
        return _FAILED
