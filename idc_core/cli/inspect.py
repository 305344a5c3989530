"""`inspect`: which units of a network respond to properties of the inputs that can be named."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from idc_core.base.ranges import INPUTS, INSPECT, RATE, ROWS
from idc_core.base.spreadsheets import csv
from idc_core.cli.arguments import Distinct, FileToWrite, Name, Number, Text, Word
from idc_core.cli.console import ProgressLine, Subparsers, check_fit, check_layers, table, write_whole
from idc_core.cli.executors import add_engine, executor_of, source_of
from idc_core.cli.options import add_fields, options_of
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.datasets import Dataset
    from idc_core.inspection import Hypothesis, Inspection

_TOLD = ("split", "limit", "layers", "families", "measures", *(option.name for option in INSPECT))
"""Options that an inspection follows from, for the list of runs."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `inspect`."""
    parser = subparsers.add_parser(
        "inspect",
        help="find units that respond to properties of the inputs that you can name",
        description="Scores every unit of a network against hypotheses about its inputs: a character class, a keyword, "
        "a grammar rule, ink above the middle, a hole. Prints the best unit per hypothesis and measure.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("model", type=Name("models"), metavar="MODEL", help="the network, for example charlstm-sql")
    add("--data", type=Name("data"), metavar="NAME", help="the data set (the network's own)")
    add("--split", type=Word(("test", "train")), default="test", metavar="{test,train}", help="its split (%(default)s)")
    add("--limit", type=Number(INPUTS), metavar="N", help="use only the first N records")
    several = partial(add, action=Distinct, nargs="+", metavar="NAME")
    several("--layers", type=Text(), help="layers to inspect (the network's default layer)")
    several("--families", type=Name("families"), help="families of hypotheses (all with hypotheses for the data)")
    several("--measures", type=Name("measures"), default=["pearson"], help="measures (pearson)")
    add_fields(add, INSPECT)
    add("--rate", type=Number(RATE), default=0.05, metavar="X", help="false-discovery rate (%(default)s)")
    add("--most", type=Number(ROWS), default=30, metavar="N", help="rows to print (%(default)s)")
    add(
        "--epochs",
        action="store_true",
        help="instead print each hypothesis's strongest unit per epoch of training whose weights were kept",
    )
    add("--keep", type=Text(), metavar="NAME", help="keep the run in the database of inspections under this name")
    add("--out", type=FileToWrite(), metavar="FILE", help="also write every score to FILE as CSV")
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Inspect, print the strongest associations, keep and write what was asked for, and return the exit status."""
    from idc_core.datasets import load_dataset
    from idc_core.inspection import discoveries, library
    from idc_core.models import MODELS, load_model
    from idc_core.runs import Planned, settings_of
    from idc_core.work.inspections import inspect_units

    several = len(arguments.measures) > 1 or len(arguments.layers or ()) > 1
    if arguments.epochs and (several or arguments.keep is not None):
        raise SettingError(
            "--epochs takes one measure and one layer, and keeps no run: leave out the others, and --keep."
        )
    if arguments.epochs and MODELS[arguments.model].complete:
        raise SettingError(
            f"{arguments.model} comes with its weights alone, without epochs of a training: leave --epochs out."
        )
    open_executor = executor_of(arguments)
    if arguments.engine is not None and (arguments.error is not None or arguments.epochs):
        raise SettingError("--error and --epochs read records in order, in one process: leave them out, or --engine.")
    model = load_model(arguments.model)
    check_layers(model, arguments.layers or ())
    check_fit(model.card, arguments.data or model.card.dataset)
    with ProgressLine() as progress:
        data = load_dataset(
            arguments.data or model.card.dataset, arguments.split, arguments.limit, on_progress=progress
        )
        hypotheses = library(data, arguments.families)
        if arguments.epochs:
            return _follow(arguments, data, hypotheses, progress)

        source = source_of(arguments, model, data, arguments.limit)

        def measure(on_progress: Progress | None) -> Inspection:
            with open_executor() as executor:
                return inspect_units(
                    executor,
                    source,
                    arguments.families,
                    arguments.measures,
                    arguments.layers,
                    on_progress=on_progress,
                    **options_of(arguments, INSPECT),
                )

        settings = {name: getattr(arguments, name) for name in _TOLD if getattr(arguments, name) is not None}
        key = (
            "command",
            model.card.fingerprint,
            data.fingerprint,
            [hypothesis.name for hypothesis in hypotheses],
            tuple(sorted(settings.items())),
        )
        _run = settings_of(model.card, None, data, model.card.default_layer, None, **settings)
        scores = Planned("inspections", key, measure, _run).kept(progress)
    passed = discoveries(scores, arguments.rate)
    lines = _best(scores)[: arguments.most]
    heading = ("HYPOTHESIS", "MEASURE", "LAYER", "UNIT", "SCORE", "LOW", "HIGH", "RECORDS", "SIGNIFICANT")
    print(table([heading, *(_row(scores, line, bool(passed[line])) for line in lines)], "<<<>>>>><"))
    tested = int((scores.table["p_value"] >= 0).sum())
    print(
        f"\n{len(scores):,} scores of {len(hypotheses)} hypotheses; {int(passed.sum()):,} of {tested:,} tested "
        f"associations are significant at a false-discovery rate of {arguments.rate:g}."
    )
    for name, remark in _unscored(scores):
        print(f"{name}: no score ({remark}).")
    if arguments.keep is not None:
        from idc_core.inspection.database import keep, store_path

        print(f"kept as run {keep(scores, arguments.keep)} in {store_path()}")
    if arguments.out is not None:
        write_whole(arguments.out, csv(scores.frame()), "--out")
        print(f"written to {arguments.out}")
    return 0


def _follow(arguments: argparse.Namespace, data: Dataset, hypotheses: Sequence[Hypothesis], progress: Progress) -> int:
    """Print the strongest unit of every hypothesis at every kept epoch, largest gain first."""
    from idc_core.inspection import inspect
    from idc_core.inspection.epochs import scores_by_epoch
    from idc_core.inspection.result import grid
    from idc_core.models.checkpoints import all_series, whole

    name, measure = arguments.model, arguments.measures[0]
    series = whole(name, next(iter(all_series(name)), None))
    models = {str(epoch): series.open(epoch) for epoch in series.epochs}
    scores = inspect(
        models, data, hypotheses, [measure], arguments.layers, on_progress=progress, **options_of(arguments, INSPECT)
    )
    layer = scores.about["layers"][str(series.epochs[-1])][0]
    best = scores_by_epoch({epoch: grid(scores, measure, str(epoch), layer, arguments.rate) for epoch in series.epochs})
    lines = best.most_gained()[: arguments.most]
    heading = ("HYPOTHESIS", *(f"EPOCH {epoch}" for epoch in best.epochs), "GAIN", "UNIT AT LAST")
    rows = [
        (
            best.names[at],
            *(f"{value:.3f}" for value in best.strongest[:, at]),
            f"{best.gain[at]:+.3f}",
            str(best.unit[-1, at]),
        )
        for at in lines
    ]
    print(table([heading, *rows], "<" + ">" * (len(heading) - 1)))
    print(
        f"\nStrongest absolute score of any unit of {layer} by {measure}. {int(best.clear.sum())} of {len(best.names)} "
        "hypotheses differ clearly between the first epoch and the last (95 % intervals do not overlap)."
    )
    if arguments.out is not None:
        write_whole(arguments.out, csv(best.frame()), "--out")
        print(f"written to {arguments.out}")
    return 0


def _best(found: Inspection) -> list[int]:
    """Return the strongest line of each hypothesis and measure, strongest first; weights in probes are left out."""
    column = found.table
    seen: set[tuple[str, str]] = set()
    lines = []
    for line in found.where().tolist():
        key = (column["hypothesis"][line], column["measure"][line])
        weight = column["group"][line] and column["unit"][line] >= 0
        if key in seen or weight or math.isnan(column["score"][line]):
            continue
        seen.add(key)
        lines.append(line)
    return lines


def _unscored(found: Inspection) -> list[tuple[str, str]]:
    """Return the hypotheses without a score by some measure, and why."""
    column = found.table
    pairs = zip(column["hypothesis"], column["remark"], strict=True)
    return list(dict.fromkeys((name, remark) for name, remark in pairs if remark))


def _row(found: Inspection, line: int, passes: bool) -> tuple[str, ...]:
    column = {name: values[line] for name, values in found.table.items()}
    return (
        column["hypothesis"],
        column["measure"],
        column["layer"],
        column["group"] or str(column["unit"]),
        f"{column['score']:.3f}",
        f"{column['low']:.3f}",
        f"{column['high']:.3f}",
        f"{column['records']:,}",
        "" if math.isnan(column["p_value"]) else "yes" if passes else "no",
    )
