"""`check-network`: what a network and its data are, whether relevance passes, and likely mistakes."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from idc_core.base import files
from idc_core.cli.arguments import FileToWrite, Name
from idc_core.cli.console import ProgressLine, Subparsers, table

if TYPE_CHECKING:
    from idc_core.analysis.network_check import LayerCheck, NetworkCheck, Trial


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `check-network`."""
    parser = subparsers.add_parser(
        "check-network",
        help="check a network and its data: layers, relevance, trial predictions, likely mistakes",
        description="Checks a network and its data before any work: inputs, classes, every layer with the shape of its "
        "output and whether relevance passes behind it, predictions for twelve tests, accuracy, and likely mistakes.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--model", type=Name("models"), metavar="NAME", help="the network (the first one of the setup files)"
    )
    parser.add_argument("--json", type=FileToWrite(), metavar="FILE", help="write all that was found to this file, too")


def run(arguments: argparse.Namespace) -> int:
    """Check, print what was found, and return the exit status: 0 also where mistakes are likely."""
    from idc_core.analysis.network_check import check_network
    from idc_core.opening.setup_files import opened

    own = [name for setup in opened() for name in setup.models]
    name = arguments.model or next(iter(own), "lenet5-digits")
    with ProgressLine() as progress:
        check = check_network(name, on_progress=progress)
    print("\n\n".join(_parts(check)))
    if arguments.json:
        text = json.dumps(asdict(check), indent=2, ensure_ascii=False) + "\n"
        files.write_whole(arguments.json, text.encode())
    return 0


def _parts(found: NetworkCheck) -> list[str]:
    """Return the tables and lists that are printed."""
    (_, name), *facts = found.facts()
    none = "" if found.mistakes else "\n- none"
    stopped = list(dict.fromkeys(row.stopped for row in found.layers if row.stopped))
    return [
        table([("NETWORK", name), *facts], "<<"),
        table([("LAYER", "OUTPUT", "RELEVANCE"), *(_layer(row, stopped) for row in found.layers)], "<<<"),
        *(f"({number}) {sentence}" for number, sentence in enumerate(stopped, start=1)),
        table([("TEST", "TARGET", "PREDICTION", "CONFIDENCE", ""), *(_trial(row) for row in found.trials)], "><<><"),
        "\n".join(("LIKELY MISTAKES", *(f"- {row.seen}\n  {row.remedy}" for row in found.mistakes))) + none,
    ]


def _layer(one: LayerCheck, stopped: list[str]) -> tuple[str, str, str]:
    from idc_core.analysis.checking.findings import said_shape

    return one.name, said_shape(one.shape), f"no ({stopped.index(one.stopped) + 1})" if one.stopped else "yes"


def _trial(one: Trial) -> tuple[str, ...]:
    confidence = "" if one.confidence is None else f"{100 * one.confidence:.1f} %"
    return f"{one.position:,}", one.target, one.prediction, confidence, "wrong" if one.correct is False else ""
