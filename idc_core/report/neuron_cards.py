"""What the cards of neurons show of an analysed network, for the dashboard and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.overview import shares
from idc_core.base.progress import Progress
from idc_core.figures import input_images
from idc_core.figures.card_parts import Activations, Card, Classes, Tiles
from idc_core.figures.cards import cropped, draw_card
from idc_core.figures.input_texts import amount, glue, is_series, words_of
from idc_core.figures.wording import signed
from idc_core.importance.ranking import group_inputs, group_means, spread_evenly
from idc_core.report.bounds import LONGEST_NAME, NEURONS, cut
from idc_core.runs import Planned, digest
from idc_core.store import ENDING, MISSING, find, results_folder

if TYPE_CHECKING:
    from torch import nn

    from idc_core.analysis.result import Analysis
    from idc_core.coverage.cell_table import CellTable
    from idc_core.datasets import Dataset
    from idc_core.experiments.ablation import SilencedClasses
    from idc_core.importance.examples import NeuronExamples
    from idc_core.importance.maximisation import Measure
    from idc_core.report.material import Material
    from idc_core.runs import Run
    from idc_core.runs.planned import Fingerprints
    from idc_core.tracing.traces import Traces

TESTS = 500
"""Tests at most on which neurons are silenced."""

OTHERS = 40
"""Neurons at most that each is compared with; where it is one of them, 39 are left."""


HYPOTHESES = 2
"""Hypotheses of a neuron at most."""

Best: TypeAlias = Mapping[int, Sequence[tuple[str, str]]]
"""The best hypotheses of neurons, by their numbers: names, and scores as they are written."""


class Analysed(Protocol):
    """An analysed network and its tests, of which `chosen` are looked at; `table` holds their covered cells."""

    @property
    def train(self) -> Dataset: ...  # noqa: D102
    @property
    def test(self) -> Dataset: ...  # noqa: D102
    @property
    def train_traces(self) -> Traces: ...  # noqa: D102
    @property
    def test_traces(self) -> Traces: ...  # noqa: D102
    @property
    def analysis(self) -> Analysis: ...  # noqa: D102
    @property
    def chosen(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def table(self) -> CellTable: ...  # noqa: D102


def examples_of(
    of: Analysed, model: nn.Module, neurons: NDArray[np.int64], by: Measure, on_progress: Progress | None = None
) -> NeuronExamples:
    """Find the chosen tests in which neurons (m,) of the layer mattered most, and where in them."""
    from idc_core.importance.examples import find_examples

    return find_examples(
        model,
        of.test.inputs,
        of.test_traces,
        of.analysis.layer,
        neurons,
        of.chosen,
        by=by,
        padding=of.test.padding,
        on_progress=on_progress,
    )


def silenced_of(
    of: Analysed, model: nn.Module, neurons: NDArray[np.int64], on_progress: Progress | None = None
) -> SilencedClasses:
    """Measure what silencing each of some neurons (m,) changes for each class, on some of the chosen tests."""
    from idc_core.experiments.ablation import silence_each

    places = of.chosen[spread_evenly(len(of.chosen), TESTS)]
    groups, labels = group_inputs(of.test)
    inputs, targets = of.test.inputs[places], of.test.targets[places]
    return silence_each(
        model,
        inputs,
        targets,
        of.analysis.layer,
        neurons,
        groups[places],
        len(labels),
        task=of.test.task,
        on_progress=on_progress,
    )


def others_of(of: Analysed) -> NDArray[np.int64]:
    """Return the neurons of the layer, drawn at random, whose silencing that of each neuron is compared with."""
    from idc_core.experiments.random_neurons import some_neurons

    return some_neurons(len(of.analysis.importance), OTHERS)


def make_cards(
    of: Analysed,
    examples: NeuronExamples,
    silenced: tuple[SilencedClasses, SilencedClasses] | None = None,
    *,
    names: Mapping[int, str] | None = None,
    hypotheses: Best | None = None,
    whole: bool = False,
    small: bool = False,
) -> list[Card]:
    """Put together the cards of neurons.

    Parameters
    ----------
    of : Analysed
    examples : NeuronExamples
        Of the neurons, in their order.
    silenced : pair of SilencedClasses, optional
        Of at least these neurons, and of `others_of`; without it the change per class is left empty.
    names, hypotheses : mapping, optional
        What a person calls neurons, and the best hypotheses where some were tested, by number.
    whole : bool
        Show inputs whole, not cropped.
    small : bool
        Leave out activations and classes.

    Returns
    -------
    list of Card
    """
    classes = _classes(of, examples.neurons, silenced) if not small else lambda neuron: None
    return [
        Card(
            neuron=neuron,
            share=shares(of.analysis.importance, np.array([neuron]))[0],
            tiles=_tiles(of, examples, column, whole),
            name=(names or {}).get(neuron, ""),
            activations=None if small else _activations(of, neuron),
            classes=classes(neuron),
            hypotheses=() if hypotheses is None else hypotheses.get(neuron, (("none is significant", ""),)),
        )
        for column, neuron in enumerate(examples.neurons.tolist())
    ]


def _tiles(of: Analysed, examples: NeuronExamples, column: int, whole: bool) -> Tiles:
    """Return the tests of a neuron in which it mattered, cropped to what it looks at."""
    rows = examples.shown(column)
    positions, boxes = examples.positions[rows, column], examples.boxes[rows, column]
    test = of.test
    said = [
        _said(of, int(place), float(value))
        for place, value in zip(positions, examples.values[rows, column], strict=True)
    ]
    numbers = test.ids[positions].tolist()
    if not len(rows):
        return Tiles((), ())
    inputs = np.asarray(test.inputs[positions])
    if inputs.ndim == 4:
        return Tiles(numbers, said, cropped(inputs, boxes, whole=whole))
    if inputs.ndim == 5:
        return Tiles(numbers, said, input_images.pictures(input_images.still(inputs)))
    if is_series(test):
        cut = [one if whole else one[:, box[2] : box[3]] for one, box in zip(inputs, boxes, strict=True)]
        return Tiles(numbers, said, input_images.lines(np.stack(cut)))
    marks = examples.marks[rows, column]
    texts = [_text(test, one, int(box[2]), own) for one, box, own in zip(inputs, boxes, marks, strict=True)]
    return Tiles(numbers, said, texts=texts)


def _text(
    test: Dataset, tokens: NDArray[np.generic], first: int, marks: NDArray[np.bool_]
) -> tuple[str, list[tuple[int, int]]]:
    """Return a text, and which of its letters a neuron looks at; those of the word that is `first` come first."""
    between = glue(test)
    words = [" ".join(word.split()) if between == " " else word for word in words_of(test, tokens)]
    ends = np.cumsum([len(word) + len(between) for word in words]) - len(between)
    marked = marks[tokens != test.padding] if tokens.dtype.kind in "iu" else marks.reshape(-1)
    steps = np.flatnonzero(np.diff(marked, prepend=False, append=False)).reshape(-1, 2).tolist()
    runs = sorted(steps, key=lambda run: not run[0] <= first < run[1])
    return between.join(words), [(int(ends[begin]) - len(words[begin]), int(ends[end - 1])) for begin, end in runs]


def _said(of: Analysed, position: int, value: float) -> str:
    """Say what a test is, what the network says of it, and how much it matters to the neuron."""
    test, analysis = of.test, of.analysis
    if test.class_names:
        true, predicted = (
            test.class_names[int(test.targets[position])],
            of.train.class_names[analysis.predictions[position]],
        )
    else:
        true = amount(test, float(test.targets[position]), unit=False)
        predicted = amount(test, float(analysis.confidence[position]))
    return (
        f"Test {test.ids[position]}: {cut(true, LONGEST_NAME)}, predicted {cut(predicted, LONGEST_NAME)}; {value:.3g}"
    )


def _activations(of: Analysed, neuron: int) -> Activations:
    """Return a neuron's activations, with its clusters where it is important."""
    analysis = of.analysis
    values = of.train_traces.activations[analysis.layer][:, neuron]
    ranks = np.flatnonzero(analysis.important == neuron)
    if not len(ranks):
        return Activations(values, np.zeros(0), None, ())
    rank, clusters = int(ranks[0]), analysis.clusters[int(ranks[0])]
    cells = np.bincount(of.table.cells[:, rank], minlength=clusters.k)
    return Activations(values, clusters.boundaries, clusters.silhouettes.get(clusters.k), tuple(cells.tolist()))


def _classes(
    of: Analysed, neurons: NDArray[np.int64], silenced: tuple[SilencedClasses, SilencedClasses] | None
) -> Callable[[int], Classes]:
    """Return what gives a neuron's relevance, and the change when it is silenced, for every class."""
    groups, labels = group_inputs(of.train)
    names = [cut(label, LONGEST_NAME) for label in labels]
    relevance = group_means(of.train_traces.relevance[of.analysis.layer][:, neurons], groups, len(labels))
    is_classifier = of.test.task == "classification"
    measure = "accuracy without it, \u00b1%" if is_classifier else "error without it, \u00b1%"

    def of_neuron(neuron: int) -> Classes:
        change = low = high = np.full(len(labels), np.nan)
        count = 0
        if silenced is not None and len(silenced[0].before) == len(labels):
            own, others = silenced[0], silenced[1].without(neuron)
            unit = 100.0 if is_classifier else 100.0 / own.before
            change, count = unit * own.change[int(np.flatnonzero(own.neurons == neuron)[0])], len(others.neurons)
            if count:
                low, high = (unit * end for end in others.range)
        shown = relevance[int(np.flatnonzero(neurons == neuron)[0])]
        return Classes(names, shown, change, measure, low, high, count)

    return of_neuron


def best_hypotheses(of: Analysed, runs: Iterable[Run], fingerprint: str) -> Best | None:
    """Return the strongest significant hypotheses of each neuron that has any, with their scores, by its number.

    `runs` are inspections that are kept, of which the first one of this network, by its `fingerprint`, these tests and
    this layer counts; None where there is none.
    """
    from idc_core.inspection.result import grid

    layer = of.analysis.layer
    for run in runs:
        told = run.facts.settings
        prints = told.get("network_fingerprint"), told.get("tests_fingerprint")
        inspected = told.get("inspected")
        if prints != (fingerprint, of.test.fingerprint) or not isinstance(inspected, list) or layer not in inspected:
            continue
        found = find(results_folder() / f"{run.id}{ENDING}")
        if found is MISSING or not run.is_current:
            continue
        table = grid(found, found.table["measure"][0], run.said("network"), layer)
        strength = np.where(table.passes, table.strength, 0)
        best = np.argsort(-strength, axis=0, kind="stable")[:HYPOTHESES]
        return {
            unit: tuple(
                (cut(table.names[row], LONGEST_NAME), signed(float(table.score[row, unit]), ".2f"))
                for row in rows
                if strength[row, unit] > 0
            )
            for unit, rows in enumerate(best.T.tolist())
            if strength[rows[0], unit] > 0
        }
    return None


def card_key(fingerprints: Fingerprints, layer: str, chosen: str, neurons: NDArray[np.int64]) -> tuple[object, ...]:
    """Return the key under which page and report keep what cards show of neurons; `chosen` is the tests' digest."""
    return *fingerprints, layer, chosen, tuple(neurons.tolist())


def drawn_cards(
    material: Material, names: Mapping[int, str], hypotheses: Best | None, on_progress: Progress | None
) -> list[str]:
    """Draw the cards of the important neurons for print, at most as many as a report lists.

    What they show is kept, and is what the dashboard keeps of the same neurons.
    """
    neurons = material.analysis.important[:NEURONS]

    def key(some: NDArray[np.int64]) -> tuple[object, ...]:
        return card_key(material.fingerprints, material.analysis.layer, digest(material.chosen), some)

    def silenced(some: NDArray[np.int64]) -> SilencedClasses:
        def make(report: Progress | None) -> SilencedClasses:
            return silenced_of(material, material.open_model(), some, report)

        return Planned("neurons-silenced", key(some), make).kept(on_progress)

    examples = Planned(
        "neuron-examples",
        (*key(neurons), "relevance"),
        lambda report: examples_of(material, material.open_model(), neurons, "relevance", report),
    ).kept(on_progress)
    both = silenced(neurons), silenced(others_of(material))
    return [
        draw_card(card, clickable=False)
        for card in make_cards(material, examples, both, names=names, hypotheses=hypotheses)
    ]
