"""`experiment`: a research question answered for several networks, as a table and as CSV."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.cli.console import ProgressLine, Subparsers, check_folder, comma_separated, table, write_whole
from idc_core.cli.experiments import EXPERIMENTS, Record
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.progress import Progress

SMALL = 0.01
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
    add("name", choices=tuple(EXPERIMENTS), help="the experiment")
    add("--models", nargs="+", metavar="NAME", help="the networks (the experiment's own)")
    others = "; ".join(f"{one.name}: {' '.join(map(str, one.ms))}" for one in EXPERIMENTS.values() if one.ms != (6,))
    add("--m", type=int, nargs="+", metavar="N", help=f"numbers of important neurons (6; {others})")
    add("--seeds", type=int, default=5, metavar="N", help="repetitions with other random choices (%(default)s)")
    add("--rule", default="epsilon", metavar="NAME", help="relevance rule (%(default)s)")
    add("--share", type=float, default=0.02, metavar="X", help="share of an input that is changed (%(default)s)")
    add("--attacked", type=int, default=512, metavar="N", help="rq3: how many tests slow attacks change (%(default)s)")
    add(
        "--cw",
        type=int,
        default=64,
        metavar="N",
        help="rq3: how many tests Carlini-Wagner changes with the paper's parameters (%(default)s)",
    )
    add("--fresh", action="store_true", help="rq2 to rq5: also make anew what is finished")
    add("--limit-train", type=int, metavar="N", help="rank neurons by only the first N training inputs")
    add("--limit", type=int, metavar="N", help="use only the first N tests")
    add("--out", type=Path, metavar="FILE", help="also write everything to FILE as CSV")


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment for every network, print the table, write it where asked, and return the exit status."""
    experiment = EXPERIMENTS[arguments.name]
    check_folder(arguments.out, "--out")
    arguments.m = arguments.m or list(experiment.ms)
    models = tuple(dict.fromkeys(arguments.models or experiment.models))
    _check_models(models)
    records: list[Record] = []
    with ProgressLine() as progress:
        for name in models:
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


def _check_models(models: tuple[str, ...]) -> None:
    """Refuse an unknown name before the work on the known ones."""
    from idc_core.models import MODELS

    unknown = [name for name in models if name not in MODELS]
    if unknown:
        raise SettingError(f"There is no model {unknown[0]!r}; the models are {', '.join(MODELS)}.")


def _named(progress: ProgressLine, name: str) -> Progress:
    return lambda done, total, label: progress(done, total, f"{name}: {label}")


def _text(value: str | int | float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) >= SMALL or not value else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else value
