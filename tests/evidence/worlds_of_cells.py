"""Worlds of Coverage, Layers, Test sets and Adversarial: what reaches cells, and what the misclassified tests are."""

from functools import cache
from types import SimpleNamespace

import numpy as np

import idc_core as idc
from idc_core.analysis.layer_sweep import count_assigned, highest_chance
from idc_core.coverage.cell_table import tabulate
from idc_core.coverage.discovery import second_half
from idc_core.evidence.additions import addition
from idc_core.evidence.mistakes import judge_mistakes
from idc_core.evidence.of_tests import confused_pair
from idc_core.evidence.validity import Accepted, Validity
from idc_core.filling.accepted import change_by
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect

FC2, M = "fc2", 6


@cache
def digits():
    """What all worlds share: network, inputs, activations, clusters."""
    model = idc.load_model("lenet5-digits")
    train, test = (idc.load_dataset("digits", split) for split in ("train", "test"))
    traces = tuple(collect(model, data.inputs, [FC2], RelevanceSettings()) for data in (train, test))
    analysis = idc.analyze(model, train, test, FC2, M, traces=traces)
    learnt = analysis.assign(traces[0].activations[FC2])
    scores = traces[1].scores.astype(np.float64)
    odds = np.exp(scores - scores.max(1, keepdims=True))
    return SimpleNamespace(
        model=model,
        train=train,
        test=test,
        traces=traces,
        analysis=analysis,
        sizes=[one.k for one in analysis.clusters],
        cells=np.concatenate([learnt, analysis.assignments]),
        probabilities=odds / odds.sum(1, keepdims=True),
        right=analysis.predictions == test.targets,
    )


def counts(cells):
    """How many inputs lie in each of their cells (n, m)."""
    return np.unique(cells, axis=0, return_counts=True)[1]


def new_cells(cells, others):
    """Cells that inputs reach and others do not."""
    return len(np.unique(np.concatenate([cells, others]), axis=0)) - len(np.unique(others, axis=0))


def drawn(rng, number):
    """Cells of inputs that are drawn with replacement from all that there are, so that any two draws are alike."""
    cells = digits().cells
    return cells[rng.integers(0, len(cells), number)]


def added(cells, tests, looks=1):
    """What inputs (n, m) add to tests, or the mean of several such sets (s, n, m)."""
    several = cells if cells.ndim == 3 else cells[None]
    gains = [new_cells(one, tests) for one in several]
    return addition("New cells", gains, counts(tests), digits().analysis.total, several.shape[1], looks=looks)


def errors_at_one_rate(rng, true, share):
    """Predictions that are wrong at one rate, and as any other class."""
    return np.where(rng.random(len(true)) < share, (true + rng.integers(1, 10, len(true))) % 10, true)


def growth(rng):
    return [second_half(rng.permutation(digits().analysis.codes))]


def _judged(probabilities, labels):
    tests, train = digits().test, digits().train
    found = judge_mistakes(probabilities, labels, tests.inputs, train.inputs, train.targets)
    return [found.finding] if found.doubted else []


def mistakes(rng):
    """The network is confident of a wrong class for some tests, whatever they look like; all labels are right."""
    probabilities, labels = digits().probabilities.copy(), digits().test.targets
    predicted = errors_at_one_rate(rng, labels, 0.03)
    probabilities[np.arange(len(labels))] = np.where(
        (predicted != labels)[:, None], np.eye(10)[predicted], np.eye(10)[labels]
    )
    return _judged(probabilities, labels)


def wrong_labels(rng):
    labels = errors_at_one_rate(rng, digits().test.targets, 0.02)
    return _judged(digits().probabilities, labels)


def accepted(rng):
    """Accepted inputs that are natural tests, classified correctly as often as the others."""
    order, data = rng.permutation(540), digits()
    some, rest = order[:40], order[40:]
    right = data.right
    table = tabulate(data.analysis.assignments[rest], data.sizes, correct=right[rest])
    return change_by(table, data.analysis.assignments[some], right[some]).findings


def validity(made):
    """What a detector accepts of made inputs that are made inputs of its `known-bad` kinds, or natural ones."""

    def world(rng):
        bad = tuple(Accepted(what, int(rng.binomial(100, 0.3)), 100) for what in ("noise", "shuffled pixels"))
        known = Validity("a detector", Accepted("natural", int(rng.binomial(200, 0.95)), 200), bad)
        return [known.finding(int(rng.binomial(60, made)), 60)]

    return world


def layers(rng):
    """Layers of one chance of a new cell, each with tests of its own."""
    cells = [drawn(rng, 540) for _ in range(5)]
    counted = [count_assigned(f"layer {at}", "tests", one, digits().sizes, [M])[0] for at, one in enumerate(cells)]
    return [highest_chance(counted)]


def layers_of_unequal_chance(rng):
    """As before, but a fifth of one layer's tests have a cell each."""
    cells = [drawn(rng, 540) for _ in range(5)]
    every = np.stack(np.unravel_index(rng.permutation(digits().analysis.total)[:108], digits().sizes), 1)
    cells[0][:108] = every
    counted = [count_assigned(f"layer {at}", "tests", one, digits().sizes, [M])[0] for at, one in enumerate(cells)]
    return [highest_chance(counted)]


def suites(rng):
    """Two suites of as many inputs as there are tests, ten seeds each, drawn as the tests are."""
    tests = drawn(rng, 540)
    return [added(np.stack([drawn(rng, 540) for _ in range(10)]), tests, looks=2) for _ in range(2)]


def attack(rng):
    """As many tests as are attacked, set aside."""
    cells = rng.permutation(digits().analysis.assignments)
    return [added(cells[:64], cells[64:])]


@cache
def _turned():
    """Cells of the tests turned by 90 degrees."""
    data = digits()
    inputs = np.ascontiguousarray(np.rot90(data.test.inputs, axes=(2, 3)))
    return data.analysis.assign(collect(data.model, inputs, [FC2], RelevanceSettings()).activations[FC2])


def turned(rng):
    chosen = rng.permutation(540)
    return [added(_turned()[chosen[:64]], digits().analysis.assignments[chosen[64:]])]


def suites_of_turned(rng):
    chosen = [rng.permutation(540)[:120] for _ in range(10)]
    tests = digits().analysis.assignments
    return [added(_turned()[np.stack(chosen)], tests, looks=2), added(drawn(rng, 540), tests, looks=2)]


def confusions(rng):
    """Half of the attacked tests are misclassified, as any class."""
    true = rng.choice(digits().test.targets, 64)
    found = confused_pair(digits().test.class_names, true, errors_at_one_rate(rng, true, 0.5), lambda *_: ())
    return [found] if found else []


def one_confusion(rng):
    """The same, but that what is misclassified of one class becomes one other."""
    true = np.arange(64) % 10
    predicted = errors_at_one_rate(rng, true, 0.5)
    one, other = rng.permutation(10)[:2]
    predicted[true == one] = other
    return [confused_pair(digits().test.class_names, true, predicted, lambda *_: ())]
