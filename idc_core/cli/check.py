"""`check`: the limits of a file on coverage, accuracy and confusion, for continuous integration."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.cli.arguments import FileToRead, FileToWrite
from idc_core.cli.console import ProgressLine, Subparsers, table, write_whole
from idc_core.cli.executors import add_engine, executor_of
from idc_core.errors import IdcError, SettingError

if TYPE_CHECKING:
    from idc_core.gate import GateReport


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `check`."""
    parser = subparsers.add_parser(
        "check",
        help="run the checks of a file; fail where a limit on coverage, accuracy or confusion is broken",
        description="Runs the analyses that a TOML file names and compares the results with its limits and with a "
        "stored baseline; docs/CHECKS.md explains the file. Exit status: 0 all limits are kept, 1 some are broken, 2 "
        "something could not run.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", type=FileToRead(), metavar="FILE", help="the checks, such as idc.toml")
    add("--write-baseline", action="store_true", help="write the baseline from the results of this run")
    add("--junit", type=FileToWrite(), metavar="FILE", help="also write the results to FILE as JUnit XML")
    add("--summary", type=FileToWrite(), metavar="FILE", help="also write them to FILE as Markdown")
    annotated = "also print annotations for GitHub Actions (default: where GITHUB_ACTIONS is set)"
    add("--github", action="store_true", help=annotated)
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the checks, print and write the results, and return the exit status."""
    from idc_core.gate import read_gate, run_gate
    from idc_core.gate.baseline import write_baseline
    from idc_core.gate.formats import annotation, to_annotations

    open_executor = executor_of(arguments)
    annotated = arguments.github or bool(os.environ.get("GITHUB_ACTIONS"))
    try:
        gate = read_gate(arguments.file)
        with ProgressLine() as progress:
            report = run_gate(gate, renew=arguments.write_baseline, open_executor=open_executor, on_progress=progress)
    except IdcError as error:
        if annotated:
            print(annotation(str(arguments.file), "The check could not run", str(error)))
        raise
    print(render(report))
    if annotated and report.status:
        print(to_annotations(report))
    _write(report, arguments)
    stopped = (
        f"{check.name}: {verdict.sentence}" for check, verdict in report.failed() if verdict.result == "could not run"
    )
    for sentence in dict.fromkeys(stopped):  # a network that cannot be loaded stops all limits of its check
        print(sentence, file=sys.stderr)
    if arguments.write_baseline:
        write_baseline(gate.baseline, report)
        print(f"\nbaseline written to {gate.baseline}")
    return report.status


def render(report: GateReport) -> str:
    """Return the table that the command prints, and what is wrong below it."""
    rows = [("CHECK", "LIMIT", "VALUE", "WANTED", "BASELINE", "RESULT")]
    parts = []
    for check in report.checks:
        for verdict in check.verdicts:
            rows.append((check.name, verdict.limit, verdict.value, verdict.wanted, verdict.before, verdict.result))
    for check, verdict in report.failed():
        if verdict.result == "broken":
            parts.append("\n".join((f"{check.name}: {verdict.sentence}", *verdict.details)))
    return "\n\n".join((table(rows, "<<><><"), *parts, f"{report.headline} ({report.seconds:.1f} s)"))


def _write(report: GateReport, arguments: argparse.Namespace) -> None:
    """Write the results where asked; the summary of GitHub Actions gets them in any case."""
    from idc_core.gate.formats import to_junit, to_markdown

    if arguments.junit is not None:
        write_whole(arguments.junit, to_junit(report), "--junit")
    if arguments.summary is not None:
        write_whole(arguments.summary, to_markdown(report), "--summary")
    elif summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(summary).open("a", encoding="utf-8") as stream:  # other steps write there, too
                stream.write(to_markdown(report))
        except OSError as error:
            raise SettingError(
                f"{summary}, which GITHUB_STEP_SUMMARY names, cannot be written ({error.strerror}); give --summary."
            ) from error
