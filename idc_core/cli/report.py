"""`report`: one web page on what the tests reach and miss, for a reviewer who has no studio; also as JSON."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from idc_core.cli.analyze import add_options, open_setup, planned, sources_of
from idc_core.cli.arguments import FileToWrite, Text, Word
from idc_core.cli.console import ProgressLine, Subparsers, write_whole
from idc_core.cli.executors import add_engine, executor_of

if TYPE_CHECKING:
    from idc_core.analysis.filtering import Conditions

_PREDICTIONS = {"correct": True, "misclassified": False}

_SUSPECTS = ("label", "outside", "ambiguous")

_RANGE = r"\d(\.\d+)?to\d(\.\d+)?"


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `report`."""
    parser = subparsers.add_parser(
        "report",
        help="write a report for a reviewer: one web page that needs no network, and JSON",
        description="Analyses a network and its tests as `analyze` does, and writes what was found to one web page: "
        "finding, coverage grid, histograms, uncovered cells with the closest tests, class errors, scores of criteria, "
        "notes, settings, and how to make it again.",
        allow_abbrev=False,
    )
    add_options(parser)
    add = parser.add_argument
    for option, name, which in (("--class", "classes", "true"), ("--predicted", "predicted", "predicted")):
        help = f"look only at tests of this {which} class; can be given several times"
        add(option, dest=name, type=Text(), action="append", default=[], metavar="NAME", help=help)
    words = "{" + ",".join(_PREDICTIONS) + "}"
    help = "look only at tests whose prediction is so"
    add("--predictions", type=Word(tuple(_PREDICTIONS)), metavar=words, help=help)
    help = "look only at tests whose softmax probability of the predicted class is in this range, such as 0.5to0.9"
    add("--confidence", type=Text(_RANGE, "a range such as 0.5to0.9"), metavar="LOWtoHIGH", help=help)
    suspects = tuple(_SUSPECTS)
    help = "leave out misclassified tests that most likely are so, not the network's error; can be given several times"
    listed = "{" + ",".join(suspects) + "}"
    add("--without", type=Word(suspects), action="append", default=[], metavar=listed, help=help)
    help = "look only at tests in this cell: one cluster per important neuron, such as 0-2-1"
    add("--cell", type=Text(r"\d{1,3}(-\d{1,3})*", "a cell such as 0-2-1"), metavar="CELL", help=help)
    add("--out", type=FileToWrite(), default="report.html", metavar="FILE", help="the web page (%(default)s)")
    add("--json", type=FileToWrite(), metavar="FILE", help="also write the same as JSON to FILE")
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Analyse, write the report, and return the exit status."""
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS
    from idc_core.report.making import command_of
    from idc_core.report.material import check_classes, gather
    from idc_core.report.neuron_cards import best_hypotheses
    from idc_core.report.remarks import notes_on
    from idc_core.report.writing import make_files
    from idc_core.runs import find_runs
    from idc_core.store.notes import kept_notes

    open_executor, own = executor_of(arguments), MODELS[arguments.model].dataset
    check_classes(arguments.classes, DATASETS[arguments.data or own].class_names)
    check_classes(arguments.predicted, DATASETS[own].class_names)
    with ProgressLine() as progress:
        model, train, test, layer = open_setup(arguments, {}, progress)
        plan = planned(arguments, model.card, train, test, layer)
        sources = sources_of(arguments, model, train, test)
        material = gather(plan, sources, _conditions(arguments), open_executor, progress)
        files = make_files(
            material,
            date=datetime.now(UTC).date().isoformat(),
            command=command_of(arguments.words, arguments.setup),
            notes=notes_on(kept_notes(), model.card.name, test.name, layer),
            hypotheses=best_hypotheses(material, find_runs("inspections", model.card.name), model.card.fingerprint),
            on_progress=progress,
        )
    write_whole(arguments.out, files.page, "--out")
    print(f"written to {arguments.out}")
    if arguments.json is not None:
        write_whole(arguments.json, files.json, "--json")
        print(f"written to {arguments.json}")
    return 0


def _conditions(arguments: argparse.Namespace) -> Conditions:
    """Return what a test must meet to be looked at."""
    from idc_core.analysis.filtering import ALL_CONFIDENCES, Conditions
    from idc_core.evidence.mistakes import Reason

    low, _, high = (arguments.confidence or "").partition("to")
    return Conditions(
        tuple(dict.fromkeys(arguments.classes)),
        tuple(dict.fromkeys(arguments.predicted)),
        _PREDICTIONS.get(arguments.predictions),
        (float(low), float(high)) if high else ALL_CONFIDENCES,
        tuple(int(part) for part in (arguments.cell or "").split("-") if part),
        tuple(Reason[name.upper()] for name in _SUSPECTS if name in arguments.without),
    )
