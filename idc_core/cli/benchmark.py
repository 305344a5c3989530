"""`benchmark`: a criterion from a file, held to the laws and to the yardsticks of worth, beside the others."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.base.ranges import INPUTS
from idc_core.cli.arguments import Distinct, FileToRead, FileToWrite, Name, Number
from idc_core.cli.console import ProgressLine, Subparsers, table, write_whole
from idc_core.cli.experiments.worth import NETWORKS, pool_of

if TYPE_CHECKING:
    from idc_core.store.cache import Record
    from idc_core.worth.bench import Bench


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `benchmark`."""
    parser = subparsers.add_parser(
        "benchmark",
        help="hold a criterion of your own to the laws and yardsticks of all criteria",
        description="Runs a file that registers one coverage criterion, asks the laws of it, selects tests of pools by "
        "it, and prints what they find beside what the other criteria's find. The file runs with all that you may do.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", type=FileToRead(), metavar="FILE", help="a Python file with a class decorated by criterion")
    help = "the networks (the kept rows' own)"
    add("--models", type=Name("models"), action=Distinct, nargs="+", metavar="NAME", help=help)
    add("--limit", type=Number(INPUTS), metavar="N", help="tests of a pool (those of the kept rows)")
    add("--limit-train", type=Number(INPUTS), metavar="N", help="training inputs (those of the kept rows)")
    add("--fresh", action="store_true", help="also make anew what is finished")
    add(
        "--card", type=FileToWrite(), metavar="FILE", help="also write the card to FILE, as Markdown or as JSON (.json)"
    )
    add("--publish", action="store_true", help="keep the rows in the project, and write docs/BENCHMARK.md from them")


def run(arguments: argparse.Namespace) -> int:
    """Bench the criterion, print its laws and rows, and return the exit status: 0 though a law is not kept."""
    from idc_core.opening.criterion_file import open_criterion
    from idc_core.worth.bench import bench
    from idc_core.worth.documents import write_documents
    from idc_core.worth.published import publish, published

    name, code = open_criterion(arguments.file)
    kept = published()
    with ProgressLine() as progress:
        models = arguments.models or list(kept) or list(NETWORKS)
        result = bench(name, models, kept, pool_of(arguments), code=code, fresh=arguments.fresh, on_progress=progress)
    if arguments.publish:
        publish(result.own)
        write_documents()
    print("\n".join(_lines(result)))
    if arguments.card is not None:
        _write(arguments.card, result)
        print(f"\nwritten to {arguments.card}")
    return 0


def _lines(result: Bench) -> list[str]:
    """Return the laws and rows for the terminal."""
    told = {True: "kept", False: "NOT KEPT", None: "not for it"}
    laws = table(
        [("LAW", ""), *((law.says, f"{told[law.kept]}{law.why and ': '}{law.why}") for law in result.laws)], "<<"
    )
    lines = [laws]
    for yardstick, rows in result.rows.items():
        heading = ("RANKING", "NETWORKS", "FOUND", "RANDOM", "MORE", "LOW", "HIGH", "P HOLM", "A12")
        cells = [
            (
                f"> {row.ranking}" if row.ranking == result.name else f"  {row.ranking}",
                str(row.more.networks),
                *(f"{value:.3f}" for value in (row.found, row.random, row.more.value, row.more.low, row.more.high)),
                f"{row.more.corrected_p:.3f}",
                f"{row.above:.2f}",
            )
            for row in rows
        ]
        lines += ["", f"{yardstick}, {result.budget} of the pool selected", table([heading, *cells], "<>>>>>>>>")]
    lines += [f"\nleft out: {why}" for why in result.missing]
    return lines


def _write(file: Path, result: Bench) -> None:
    if file.suffix == ".json":
        card: Record = result.card()
        write_whole(file, json.dumps(card, indent=1) + "\n", "--card")
    else:
        write_whole(file, result.markdown(), "--card")
