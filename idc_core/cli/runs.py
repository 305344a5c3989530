"""`runs`: the results that are kept, the newest first, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from idc_core.base.files import COMMAND
from idc_core.cli.arguments import Name, Text
from idc_core.cli.console import Subparsers, table

if TYPE_CHECKING:
    from idc_core.runs import Run

_HEADING = ("MADE (UTC)", "KIND", "NETWORK", "TESTS", "LAYER", "M", "RESULT", "SECONDS", "NAME", "ID")


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `runs`."""
    parser = subparsers.add_parser(
        "runs",
        help="list finished analyses, comparisons, attacks, searches and inspections",
        description="Lists the runs that are kept, the newest first: those of the dashboard and of this command line. "
        "Runs whose numbers are of another version are marked by *; opened, they are computed again.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--kind", type=Name("runs"), metavar="KIND", help="only of this kind, for example analysis")
    add("--text", type=Text(), metavar="WORDS", help="only runs whose names and settings hold these words")
    add("--json", action="store_true", help="print JSON: everything that is known of each run")


def run(arguments: argparse.Namespace) -> int:
    """List the runs and return the exit status."""
    from idc_core.runs import find_runs

    runs = find_runs(arguments.kind or "", text=arguments.text or "")
    if arguments.json:
        print(json.dumps([{**asdict(run), "current": run.is_current} for run in runs], indent=2))
    elif runs:
        print(table([_HEADING, *map(_row, runs)], "<<<<<><><<"))
    else:
        print(f"No runs are kept that fit. `{COMMAND} analyze` makes one, and so does the dashboard.")
    return 0


def _row(one: Run) -> tuple[str, ...]:
    from idc_core.runs import main_text

    made = one.facts.made[:16].replace("T", " ") + ("" if one.is_current else " *")
    of = (one.kind, one.said("network"), one.said("tests"), one.said("layer"), one.said("m"), main_text(one))
    return made, *of, f"{one.facts.seconds:.1f}", f"{one.name}{' (pinned)' if one.pinned else ''}", one.id
