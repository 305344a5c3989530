"""The command line that makes the report of a setup again."""

from __future__ import annotations

from pathlib import Path

from idc_core.coverage.idc_settings import CONTROLS, OPTIONS
from studio.jobs.results import View
from studio.state.setup import SAVED, Setup


def command_line(view: View) -> str:
    """Return the command that makes a setup's report; empty where none can, as only this program knows its network."""
    from idc_core.datasets import DATASETS
    from idc_core.report.making import command_of

    setup, files = view.setup, _setup_files(view.setup)
    named = _named(setup, files)
    if not named:
        return ""
    words = ["report", *named, "--layer", setup.layer, "--m", str(view.analysis.m)]
    options = {choice.name: choice for choice in OPTIONS}
    for name, text in setup.unusual.items():
        choice = options[CONTROLS[name].option]
        words += [choice.flag] if isinstance(choice.default, bool) else [choice.flag, text]
    if DATASETS[view.train.name].learns_from:
        words += ["--limit-train", str(len(view.train))]
    for option, names in (("--class", setup.classes), ("--predicted", setup.predicted)):
        for name in names:
            words += [option, name]
    predictions = {"": "", "right": "correct", "wrong": "misclassified"}[setup.answers]
    for option, word in (("--predictions", predictions), ("--confidence", setup.confidence), ("--cell", setup.within)):
        words += [option, word] if word else []
    return command_of(words, files)


def _setup_files(setup: Setup) -> list[Path]:
    """Return the setup files that register a setup's network or tests."""
    from idc_core.opening import setup_files

    names = {setup.model, setup.data}
    return [file.path for file in setup_files.opened() if names & {*file.models, *file.datasets}]


def _named(setup: Setup, files: list[Path]) -> list[str]:
    """Return the words that name a setup's network and tests; none where words cannot."""
    from idc_core import library
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS
    from idc_core.opening import server_files

    entry = MODELS[setup.model]
    opened, _ = server_files.open_once()
    if setup.model in opened and setup.data == entry.dataset:
        path = f"{getattr(entry.build, 'architecture', '')}={getattr(entry.build, 'path', '')}".removeprefix("=")
        return ["--model", path, *server_files.named().words]
    entered = library.owners()
    editions = ((setup.model, entry.edition), (setup.data, DATASETS[setup.data].edition))
    # The project's own are no edition; a setup file enters its own again.
    known = all(not edition or name in entered or files for name, edition in editions)
    return ["--model", setup.model, "--data", setup.data] if known and not setup.data.startswith(SAVED) else []
