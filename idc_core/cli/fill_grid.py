"""`fill-grid`: inputs for all cells that no test reaches, as text, as a saved suite, as npz and as CSV."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from idc_core.cli import analyze
from idc_core.cli.arguments import FileToWrite, Text
from idc_core.cli.console import ProgressLine, Subparsers, comma_separated, table, write_whole
from idc_core.cli.options import add_fields, options_of
from idc_core.filling.settings import FILL, FillSettings

if TYPE_CHECKING:
    from idc_core.evidence.validity import Validity
    from idc_core.filling import Filling


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `fill-grid`."""
    parser = subparsers.add_parser(
        "fill-grid",
        help="make inputs for the cells that no test reaches, and judge whether they are valid",
        description="Makes pictures for all cells that no test reaches: transforms, noise and blends of tests first, "
        "then one directed search for all cells that are left. A detector and other networks judge each picture. "
        "Stopped by Ctrl-C, the same command goes on.",
        allow_abbrev=False,
    )
    analyze.add_options(parser)
    add_fields(parser.add_argument, FILL)
    add = parser.add_argument
    add("--save", type=Text(), metavar="NAME", help="save valid pictures that have a class as a suite of this name")
    add("--out", type=FileToWrite(), metavar="FILE", help="write pictures, cells and judgements to FILE as npz")
    add("--csv", type=FileToWrite(), metavar="FILE", help="write one row per picture to FILE")


def run(arguments: argparse.Namespace) -> int:
    """Fill the grid, print the result, write it where asked, and return the exit status."""
    from idc_core.filling.result import packed, records, suite_of
    from idc_core.models.registry import companions
    from idc_core.runs import planned_filling
    from idc_core.suites import save_suite

    with ProgressLine() as progress:
        model, train, test, layer = analyze.open_setup(arguments, {}, progress)
        plan = analyze.planned(arguments, model.card, train, test, layer)
        analysis = plan.planned(analyze.sources_of(arguments, model, train, test))
        settings = FillSettings(**options_of(arguments, FILL))
        alike = bool(train.class_names) and train.class_names == test.class_names
        voters = companions(arguments.model)[1:] if alike else ()
        filling = planned_filling(plan, lambda: model, analysis.kept, settings, voters).kept(progress)
    print(_render(filling))
    print(f"{filling.seconds:.1f} s", file=sys.stderr)
    if arguments.save is not None:
        path = save_suite(arguments.save, suite_of(filling, test))
        print(f"\nsaved as the suite {path.stem}")
    if arguments.csv is not None:
        write_whole(arguments.csv, comma_separated(records(filling), ["cell"]), "--csv")
        print(f"\nwritten to {arguments.csv}")
    if arguments.out is not None:
        write_whole(arguments.out, packed(filling), "--out")
        print(f"\nwritten to {arguments.out}")
    return 0


def _render(filling: Filling) -> str:
    """Return the result as the text that the command prints."""
    if not len(filling.cells):
        return f"The tests reach all {len(filling.covered):,} cells."
    reached, valid = int(filling.reached.sum()), int(filling.reached_validly.sum())
    states = [
        ("reached by tests", f"{len(filling.covered):,}"),
        ("reached by valid generated inputs", f"{valid:,}"),
        ("reached by generated inputs that are not valid", f"{reached - valid:,}"),
        ("not reached within the budget", f"{len(filling.cells) - reached:,}"),
        ("not tried", f"{filling.left_out:,}"),
    ]
    parts = [
        filling.validity.finding(int(filling.valid.sum()), len(filling)).sentence,
        table([("CELLS", ""), *states], "<>"),
        table([("WAY", "INPUTS", "VALID"), *_ways(filling)], "<>>"),
        _detectors((filling.validity, *filling.other_detectors)),
        f"budget: {filling.settings.words}; {filling.passes:,} passes through the network",
    ]
    if filling.voters:
        agreed = int((filling.votes == filling.targets).sum())
        others = int(((filling.votes != filling.targets) & (filling.votes >= 0)).sum())
        parts.append(
            f"labels by the vote of {', '.join(filling.voters)}: that of the test for {agreed:,} inputs, another for "
            f"{others:,}, none for {len(filling) - agreed - others:,}"
        )
    common = filling.common_words()
    if common:
        parts.append("\n".join(["In common among cells that were not reached:", *(f"- {words}" for words in common)]))
    return "\n\n".join(parts)


def _ways(filling: Filling) -> list[tuple[str, str, str]]:
    rows = []
    for place, step in enumerate(filling.ways):
        mine = filling.way == place
        if mine.any():
            rows.append((step.label, f"{int(mine.sum()):,}", f"{int(filling.valid[mine].sum()):,}"))
    return rows


def _detectors(all_of_them: tuple[Validity, ...]) -> str:
    """Return what every detector accepts, the one that was chosen first."""
    kinds = [kind.what for kind in all_of_them[0].known_bad]
    rows = [
        (one.detector, *(f"{100 * kind.share:.1f} %" for kind in (one.natural, *one.known_bad))) for one in all_of_them
    ]
    heading = ("ACCEPTED BY (the first is used)", "natural", *kinds)
    return table([heading, *rows], "<" + ">" * (len(kinds) + 1))
