"""`experiment`: a research question answered for several networks, as a table and as CSV."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from idc_core.base.ranges import ATTACKED, DRAWS, INPUTS, SHARE, M
from idc_core.cli.arguments import Distinct, FileToWrite, Name, Number, Word
from idc_core.cli.console import ProgressLine, Subparsers, comma_separated, table, write_whole
from idc_core.cli.experiments import EXPERIMENTS, Record
from idc_core.cli.experiments.base import usual_ms

if TYPE_CHECKING:
    from idc_core.base.progress import Progress

_SMALL = 0.01
"""Numbers closer to zero are told to three digits instead of three places."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `experiment`."""
    parser = subparsers.add_parser(
        "experiment",
        help="answer a research question for several networks",
        description="Answers a research question of the literature for several networks. "
        + " ".join(f"{entry.name}: {entry.help}" for entry in EXPERIMENTS.values()),
        allow_abbrev=False,
    )
    add = parser.add_argument
    names = tuple(EXPERIMENTS)
    add("name", type=Word(names), metavar="{" + ",".join(names) + "}", help="the experiment")
    models = "the networks (the experiment's own)"
    add("--models", type=Name("models"), action=Distinct, nargs="+", metavar="NAME", help=models)
    others = "; ".join(
        f"{experiment.name}: {' '.join(map(str, experiment.ms))}"
        for experiment in EXPERIMENTS.values()
        if experiment.ms != (6,)
    )
    ms = f"numbers of important neurons (6; {others}; or all of fewer)"
    add("--m", type=Number(M), action=Distinct, nargs="+", metavar="N", help=ms)
    seeds = "repetitions with other random choices (%(default)s)"
    add("--seeds", type=Number(DRAWS), default=5, metavar="N", help=seeds)
    add("--rule", type=Name("rules"), default="epsilon", metavar="NAME", help="relevance rule (%(default)s)")
    share = "share of an input that is changed (%(default)s)"
    add("--share", type=Number(SHARE), default=0.02, metavar="X", help=share)
    attacked = "rq3: how many tests slow attacks change (%(default)s)"
    add("--attacked", type=Number(ATTACKED), default=512, metavar="N", help=attacked)
    add(
        "--cw",
        type=Number(ATTACKED),
        default=64,
        metavar="N",
        help="rq3: how many tests Carlini-Wagner changes with the paper's parameters (%(default)s)",
    )
    add("--fresh", action="store_true", help="rq2 to rq5: also make anew what is finished")
    first = "rank neurons by only the first N training inputs"
    add("--limit-train", type=Number(INPUTS), metavar="N", help=first)
    add("--limit", type=Number(INPUTS), metavar="N", help="use only the first N tests")
    add("--out", type=FileToWrite(), metavar="FILE", help="also write everything to FILE as CSV")


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment for every network, print the table, write it where asked, and return the exit status."""
    experiment = EXPERIMENTS[arguments.name]
    given = arguments.m
    models = tuple(arguments.models or experiment.models)
    records: list[Record] = []
    with ProgressLine() as progress:
        for name in models:
            arguments.m = given or usual_ms(experiment.ms, name)
            records += experiment.run(arguments, name, _named(progress, name))
    heading = tuple(field.upper().replace("_", " ") for field in experiment.shown)
    rows = [tuple(_text(record.get(field)) for field in experiment.shown) for record in records]
    numbers = {field for record in records for field, value in record.items() if isinstance(value, int | float)}
    align = "".join(">" if field in numbers else "<" for field in experiment.shown)
    print(table([heading, *rows], align))
    if arguments.out is not None:
        write_whole(arguments.out, comma_separated(records), "--out")
        print(f"\nwritten to {arguments.out}")
    return 0


def _named(progress: ProgressLine, name: str) -> Progress:
    return lambda done, total, label: progress(done, total, f"{name}: {label}")


def _text(value: str | int | float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) >= _SMALL or not value else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else value
