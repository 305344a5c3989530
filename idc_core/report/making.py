"""The content of a report, gathered from an analysed network."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from idc_core import __version__
from idc_core.analysis.overview import shares
from idc_core.base.progress import Progress, report
from idc_core.clustering.kmeans import sketch_sentence
from idc_core.coverage.cell_table import state_counts
from idc_core.coverage.discovery import FEWEST, second_half
from idc_core.datasets import DATASETS, Dataset
from idc_core.evidence.discovery import Discovery
from idc_core.figures.wording import cell_name
from idc_core.report.bounds import CELLS, LONGEST_NAME, LONGEST_TEXT, NEURONS, cut
from idc_core.report.class_errors import find_class_errors
from idc_core.report.content import FORMAT, Cell, Coverage, Data, Left, Network, Neuron, Report, Statement
from idc_core.report.criterion_scores import score_criteria
from idc_core.report.material import Material
from idc_core.report.remarks import remarks
from idc_core.report.sentences import chance_of_new, every, more_tests, summary
from idc_core.report.uncovered_cells import find_uncovered
from idc_core.store.notes import Note


def make_report(
    material: Material, *, date: str, command: str = "", notes: Sequence[Note] = (), on_progress: Progress | None = None
) -> Report:
    """Gather what a report says; equal material, date, command and notes give an equal report.

    Parameters
    ----------
    material : Material
        The analysed network and its tests.
    date : str
        When the report is made, as it is to be written there.
    command : str
        The command line that makes the report again.
    notes : sequence of Note
        A person's notes on this setup; the first `NOTES` are shown.
    on_progress : Progress, optional

    Returns
    -------
    Report

    Raises
    ------
    CancelledError
        If the callback asks to stop.
    """
    report(on_progress, 0, 1, "finding the tests closest to uncovered cells")
    uncovered = find_uncovered(material)
    criteria = score_criteria(material, on_progress)
    card, analysis = material.card, material.analysis
    shown = remarks(notes)
    return Report(
        format=FORMAT,
        date=cut(date, LONGEST_NAME),
        title=cut(f"{card.label}, layer {analysis.layer}", 2 * LONGEST_NAME),
        summary=tuple(cut(sentence, 2 * LONGEST_TEXT) for sentence in summary(material.overview)),
        findings=tuple(map(Statement.of, every(material.overview))),
        network=Network(
            name=card.name,
            label=cut(card.label, LONGEST_NAME),
            fingerprint=card.fingerprint,
            parameters=card.parameters,
            task=card.task,
            layer=cut(analysis.layer, LONGEST_NAME),
        ),
        training=_data(material.train),
        tests=_data(material.test),
        chosen=len(material.chosen),
        classes=tuple(cut(name, LONGEST_NAME) for name in material.conditions.classes),
        filter=cut(material.conditions.words, LONGEST_TEXT),
        coverage=_coverage(material),
        left=_left(material),
        neurons=_neurons(material),
        sketch=sketch_sentence([neuron.sketch for neuron in analysis.clusters], len(analysis.train_activations)),
        uncovered=uncovered,
        class_errors=find_class_errors(material),
        criteria=criteria,
        notes=shown,
        notes_left_out=len(notes) - len(shown),
        settings={"m": str(analysis.m)} | {name: _written(value) for name, value in analysis.settings.items()},
        versions={
            "IDC Studio": __version__,
            "Python": platform.python_version(),
            "torch": torch.__version__,
            "NumPy": np.__version__,
        },
        command=command,
    )


def _data(data: Dataset) -> Data:
    label = DATASETS[data.name].label if data.name in DATASETS else data.name
    return Data(
        name=data.name,
        label=cut(label, LONGEST_NAME),
        inputs=len(data),
        classes=len(data.class_names),
        fingerprint=data.fingerprint,
        notes=tuple(cut(note, LONGEST_TEXT) for note in data.notes[:10]),
    )


def _coverage(material: Material) -> Coverage:
    table, result = material.table, material.overview
    rows = zip(table.cells[:CELLS].tolist(), table.counts.tolist(), table.wrong.tolist(), strict=False)
    return Coverage(
        covered=table.covered,
        total=table.total,
        idc=table.covered / table.total,
        reachable=result.reachable,
        accuracy=result.accuracy,
        rmse=result.rmse,
        only_errors=None if result.accuracy is None else int(result.errors_only.sum()),
        cells=tuple(Cell(cell_name(cell), tests, wrong) for cell, tests, wrong in rows),
        left_out=max(0, table.covered - CELLS),
    )


def _left(material: Material) -> Left | None:
    if len(material.chosen) < FEWEST or material.table.covered == material.table.total:
        return None
    found = Discovery.of_counts(material.table.counts, material.table.total)
    expected, low, high = found.new(found.inputs)
    check = second_half(material.analysis.codes[material.chosen])
    return Left(
        chance=found.chance,
        low=found.low,
        high=found.high,
        more=found.inputs,
        expected=expected,
        expected_low=low,
        expected_high=high,
        at_least=found.at_least,
        sentences=(chance_of_new(found), more_tests(found)),
        halves=Statement.of(check),
    )


def _neurons(material: Material) -> tuple[Neuron, ...]:
    analysis = material.analysis
    tests = state_counts(analysis.assignments[material.chosen], material.sizes)
    return tuple(
        Neuron(
            rank=rank + 1,
            neuron=int(analysis.important[rank]),
            share=shares(analysis.importance, analysis.important[rank : rank + 1])[0],
            centroids=tuple(analysis.centroids[rank].tolist()),
            boundaries=tuple(analysis.clusters[rank].boundaries.tolist()),
            training_inputs=tuple(analysis.clusters[rank].counts.tolist()),
            tests=tuple(tests[rank].tolist()),
        )
        for rank in range(min(analysis.m, NEURONS))
    )


def _written(value: object) -> str:
    """Write a setting as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return cut(f"{value:g}" if isinstance(value, float) else str(value), LONGEST_NAME)


def command_of(words: Sequence[str], setups: Sequence[object]) -> str:
    """Return the command line that makes a report again, from the words of one, here and with the usual file."""
    setup = [part for file in setups for part in ("--setup", str(file))]
    return shlex.join(["python", "-m", "idc_core", *_decisive(words), *setup, "--out", "report.html"])


def _decisive(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command line that say neither which files are written nor where it runs."""
    skipped = False
    for word in words:
        name, equals, _ = word.partition("=")
        if skipped or name in ("--out", "--json", "--engine", "--address"):
            skipped = not skipped and not equals
            continue
        yield word
