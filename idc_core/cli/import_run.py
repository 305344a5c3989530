"""`import-run`: take results that were copied from another computer."""

from __future__ import annotations

import argparse
import sys

from idc_core.cli.arguments import Distinct, FileOrFolder
from idc_core.cli.console import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `import-run`."""
    parser = subparsers.add_parser(
        "import-run",
        help="take runs copied from another computer",
        description="Takes files of results, or folders of them, such as IDC_HOME/results of another computer. Each "
        "is looked through before it is taken; a damaged or foreign file is refused in a sentence. Of a network and "
        "data that are here too, the dashboard opens a run without computing it again.",
        allow_abbrev=False,
    )
    help = "a file or a folder of results"
    parser.add_argument("files", nargs="+", type=FileOrFolder(), action=Distinct, metavar="PATH", help=help)


def run(arguments: argparse.Namespace) -> int:
    """Import, say what came of it, and return the exit status: 2 where a file was refused."""
    from idc_core.runs.importing import import_runs

    result = import_runs(arguments.files)
    counts = {"taken": len(result.taken), "here already": len(result.known), "refused": len(result.refused)}
    counts["left out, as they are parts of results and no runs"] = result.left_out
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    for sentence in result.refused:
        print(sentence, file=sys.stderr)
    return 2 if result.refused else 0
