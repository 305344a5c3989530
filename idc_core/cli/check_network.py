"""`check-network`: what a network and its data are, whether relevance passes, and likely mistakes."""

from __future__ import annotations

import argparse

from idc_core.cli.arguments import Name
from idc_core.cli.console import ProgressLine, Subparsers, table


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


def run(arguments: argparse.Namespace) -> int:
    """Check, print what was found, and return the exit status: 0 also where mistakes are likely."""
    from idc_core.analysis.network_check import check_network
    from idc_core.setup_files import opened

    own = [name for one in opened() for name in one.models]
    name = arguments.model or next(iter(own), "lenet5-digits")
    with ProgressLine() as progress:
        found = check_network(name, on_progress=progress)
    facts = [("NETWORK", name), *found.facts]
    layers = [("LAYER", "OUTPUT", "RELEVANCE"), *((one.name, one.shape, one.relevance) for one in found.layers)]
    trials = [("TEST", "TARGET", "PREDICTION", "CONFIDENCE"), *found.trials]
    likely = found.mistakes or ("none",)
    parts = (
        table(facts, "<<"),
        table(layers, "<<<"),
        table(trials, "><<>"),
        "\n".join(("LIKELY MISTAKES", *(f"- {one}" for one in likely))),
    )
    print("\n\n".join(parts))
    return 0
