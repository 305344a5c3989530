"""`experiment`: a research question answered for several networks, as a table and as CSV."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from idc_core.base.ranges import ATTACKED, DRAWS, INPUTS, SHARE, M
from idc_core.cli.arguments import Distinct, FileToWrite, Name, Number, Word
from idc_core.cli.console import ProgressLine, Subparsers, comma_separated, table, write_whole
from idc_core.cli.executors import add_engine
from idc_core.cli.experiments import EXPERIMENTS, Experiment, Record
from idc_core.cli.experiments.base import usual_ms
from idc_core.cli.experiments.claims import told_claims
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.base.progress import Progress

_PROTOCOLS = ("paper", "program", "studio")
_SHARE = 0.02
"""Of an input that is changed, unless the protocol says another."""

_TOLD = {
    "models": None,
    "protocol": "studio",
    "trainings": None,
    "m": None,
    "seeds": 5,
    "rule": None,
    "share": None,
    "attacked": 512,
    "cw": 64,
    "limit_train": None,
    "limit": None,
}
"""What the numbers follow from, with what is usual."""

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
    protocol = (
        "rq1 to rq5: whose settings: the paper's, its program's or the studio's own (%(default)s); the paper's "
        "redistribute biases (its footnote 1), the others absorb them"
    )
    add("--protocol", type=Word(_PROTOCOLS), default="studio", metavar="{" + ",".join(_PROTOCOLS) + "}", help=protocol)
    trainings = (
        "rq1 to rq6: also train every network anew from so many seeds, kept in IDC_HOME/trainings, and test the claims "
        "over the trainings (none: the project's own weights)"
    )
    add("--trainings", type=Number(DRAWS), metavar="N", help=trainings)
    add("--rule", type=Name("rules"), metavar="NAME", help="relevance rule (the protocol's; the studio's is epsilon)")
    add("--share", type=Number(SHARE), metavar="X", help="share of an input that is changed (the protocol's; or 0.02)")
    attacked = "rq3: how many tests slow attacks change (%(default)s)"
    add("--attacked", type=Number(ATTACKED), default=512, metavar="N", help=attacked)
    add(
        "--cw",
        type=Number(ATTACKED),
        default=64,
        metavar="N",
        help="rq3: how many tests Carlini-Wagner changes with the paper's parameters (%(default)s)",
    )
    add("--fresh", action="store_true", help="rq2 to rq5, worth: also make anew what is finished")
    publish = "worth: keep the rows in the project; write docs/results/worth.md and docs/BENCHMARK.md from them"
    add("--publish", action="store_true", help=publish)
    retrain = "worth: also mutants that are trained anew, of networks that are trained here: hundreds of trainings"
    add("--retrain", action="store_true", help=retrain)
    first = "rank neurons by only the first N training inputs"
    add("--limit-train", type=Number(INPUTS), metavar="N", help=first)
    add("--limit", type=Number(INPUTS), metavar="N", help="use only the first N tests")
    add("--out", type=FileToWrite(), metavar="FILE", help="also write everything to FILE as CSV")
    into = "with --trainings: put the tested claims into FILE (Markdown), in place of what this command put there"
    add("--into", type=FileToWrite(), metavar="FILE", help=into)
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment for every network, print the table, write it where asked, and return the exit status."""
    experiment = EXPERIMENTS[arguments.name]
    told = _told(arguments)
    _settle(arguments, experiment)
    models = tuple(arguments.models or arguments.protocol.models or experiment.models)
    networks: dict[str, list[list[Record]]] = {}
    with ProgressLine() as progress:
        if experiment.together is not None:
            records = experiment.together(arguments, models, progress)
        else:
            networks = _one_by_one(arguments, experiment, models, progress)
            records = [record for trainings in networks.values() for found in trainings for record in found]
    print(_tabulated(("training", *experiment.shown) if arguments.trainings else experiment.shown, records))
    if arguments.trainings is not None and arguments.trainings > 1:
        told_claims(experiment.name, networks, told, arguments.into)
    if arguments.out is not None:
        write_whole(arguments.out, comma_separated(records), "--out")
        print(f"\nwritten to {arguments.out}")
    return 0


def _one_by_one(
    arguments: argparse.Namespace, experiment: Experiment, models: Sequence[str], progress: ProgressLine
) -> dict[str, list[list[Record]]]:
    """Run an experiment for one network after the other, and for one training of each after the other."""
    given: list[int] | None = arguments.m
    networks: dict[str, list[list[Record]]] = {}
    for name in models:
        usual = arguments.protocol.layer_ms if experiment.name == "rq5" else experiment.ms
        arguments.m = given or usual_ms(usual, name)
        networks[name] = []
        for training in (None,) if arguments.trainings is None else range(arguments.trainings):
            arguments.training = training
            found = experiment.run(arguments, name, _named(progress, name))
            about: Record = {} if training is None else {"training": training}
            networks[name].append([about | record for record in found])
    return networks


def _settle(arguments: argparse.Namespace, experiment: Experiment) -> None:
    """Put the protocol in place of its name, and its settings where none are given."""
    from idc_core.experiments.protocol import PROTOCOLS

    name, protocol = arguments.name, PROTOCOLS[arguments.protocol]
    if experiment.together is None and (
        arguments.engine or arguments.address or arguments.publish or arguments.retrain
    ):
        raise SettingError(f"--engine, --address, --publish and --retrain are for worth; leave them out of {name}.")
    if protocol.name != "studio" and not experiment.protocols:
        raise SettingError(f"{name} has no other protocol than the studio's; leave --protocol {protocol.name} out.")
    if arguments.trainings is not None and not experiment.trainings:
        raise SettingError(f"{name} is of the project's own weights; leave --trainings out.")
    if arguments.into is not None and (arguments.trainings or 1) < 2:
        raise SettingError("--into holds claims over trainings: give --trainings 2 or more.")
    if arguments.rule is not None:
        pixels = {"rule": arguments.rule} if name == "rq1" else protocol.pixels
        protocol = replace(protocol, rule=arguments.rule, pixels=pixels)
    if arguments.share is None:
        usual = {"rq1": protocol.flipped, "rq5": protocol.layer_noise["share"]}
        arguments.share = usual.get(name, _SHARE)
    arguments.protocol, arguments.rule = protocol, protocol.rule


def _told(arguments: argparse.Namespace) -> str:
    """Return the command as it was given, but for where to write."""
    options = []
    for name, usual in _TOLD.items():
        value = getattr(arguments, name)
        if value is not None and value != usual:
            listed = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            options.append(f"--{name.replace('_', '-')} {listed}")
    return " ".join([f"experiment {arguments.name}", *options])


def _tabulated(shown: Sequence[str], records: Sequence[Record]) -> str:
    heading = tuple(field.upper().replace("_", " ") for field in shown)
    rows = [tuple(_text(record.get(field)) for field in shown) for record in records]
    numbers = {field for record in records for field, value in record.items() if isinstance(value, int | float)}
    return table([heading, *rows], "".join(">" if field in numbers else "<" for field in shown))


def _named(progress: ProgressLine, name: str) -> Progress:
    return lambda done, total, label: progress(done, total, f"{name}: {label}")


def _text(value: str | int | float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) >= _SMALL or not value else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else value
