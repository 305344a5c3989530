"""What the Overview says of tests: nothing where nothing is there, the defect first where one was planted.

`docs/results/evidence.md` has the counts of the slow tests.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import idc_core as idc
from idc_core.analysis.filtering import Conditions
from idc_core.analysis.findings_of_tests import Labelled, Looked, find
from idc_core.analysis.overview import overview_of
from idc_core.evidence import of_tests
from idc_core.evidence.finding import most_telling
from idc_core.lrp.rules import RelevanceSettings
from idc_core.report import sentences
from idc_core.tracing.trace import collect

SEEDS, CHOSEN = 50, 400


@pytest.fixture(scope="module")
def digits():
    """LeNet-5 on digits at m = 6: clusters, classes and predictions of training inputs and tests."""
    model = idc.load_model("lenet5-digits")
    train, test = (idc.load_dataset("digits", split) for split in ("train", "test"))
    traces = tuple(collect(model, data.inputs, ["fc2"], RelevanceSettings()) for data in (train, test))
    analysis = idc.analyze(model, train, test, "fc2", 6, traces=traces)
    turned = collect(model, np.ascontiguousarray(np.rot90(test.inputs, axes=(2, 3))), ["fc2"], RelevanceSettings())
    return SimpleNamespace(
        train=train,
        test=test,
        analysis=analysis,
        activations=traces[0].activations["fc2"],
        sizes=[one.k for one in analysis.clusters],
        learnt=analysis.assign(traces[0].activations["fc2"]),
        turned=(analysis.assign(turned.activations["fc2"]), turned.predictions),
    )


def told(digits, tests, true, predicted, training=None, learnt=None):
    """What stands out of tests, beside training inputs of the network or others."""
    training = digits.learnt if training is None else training
    classes = Labelled(digits.test.class_names, true, predicted, digits.train.targets if learnt is None else learnt)
    found = find(Looked(tests, training, true == predicted, classes), digits.analysis.important, digits.sizes)
    assert {one.subject for one in found} >= {"recall", "class-share", "cluster", "untested"}
    return most_telling(found)


def some(digits, rng):
    """Some of the tests: clusters, true and predicted classes."""
    chosen = rng.permutation(len(digits.test))[:CHOSEN]
    analysis = digits.analysis
    return chosen, analysis.assignments[chosen], digits.test.targets[chosen], analysis.predictions[chosen].copy()


def shuffled(digits, rng):
    _, tests, true, predicted = some(digits, rng)
    return told(digits, tests, rng.permutation(true), predicted)


def without_defect(digits, rng):
    _, *parts = some(digits, rng)
    return told(digits, *parts)


def from_training(digits, rng):
    """Training inputs as tests beside the others, with errors that are the same for all classes."""
    tests, others = np.split(rng.permutation(len(digits.train)), [540])
    true = digits.train.targets[tests]
    predicted = np.where(rng.random(540) < 0.03, (true + rng.integers(1, 10, 540)) % 10, true)
    return told(digits, digits.learnt[tests], true, predicted, digits.learnt[others], digits.train.targets[others])


def without_a_class(digits, rng):
    _, tests, true, predicted = some(digits, rng)
    return told(digits, tests[true != 7], true[true != 7], predicted[true != 7]), ["Tests of class 7:"]


def with_a_turned_class(digits, rng):
    """Turned digits are classified as 4, so that a turned 4 is none the worse."""
    chosen, tests, true, predicted = some(digits, rng)
    digit = rng.choice([0, 1, 2, 3, 5, 6, 7, 8, 9])
    turned, said = (part[chosen] for part in digits.turned)
    here = true == digit
    found = told(digits, np.where(here[:, None], turned, tests), true, np.where(here, said, predicted))
    return found, [f"Recall of class {digit}:", f"Tests of class {digit} classified as "]


def with_a_confused_pair(digits, rng):
    """Of the tests of one class, 30 % are classified as another."""
    _, tests, true, predicted = some(digits, rng)
    one, other = rng.choice(10, 2, replace=False)
    predicted[(true == one) & (rng.random(len(true)) < 0.3)] = other
    return told(digits, tests, true, predicted), [f"Tests of class {one} classified as {other}:"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [shuffled, without_defect, from_training])
def test_nothing_stands_out_where_nothing_is_there(digits, make, monkeypatch):
    monkeypatch.setattr(of_tests, "_MOST_NUMBERS", 150_000)
    found = [make(digits, np.random.default_rng(seed)) for seed in range(SEEDS)]
    number = sum(bool(one) for one in found)
    assert number <= 0.05 * SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("plant", [without_a_class, with_a_turned_class, with_a_confused_pair])
def test_a_planted_defect_is_said_first(digits, plant, monkeypatch):
    monkeypatch.setattr(of_tests, "_MOST_NUMBERS", 150_000)
    first = 0
    for seed in range(SEEDS):
        found, claims = plant(digits, np.random.default_rng(seed))
        first += bool(found) and found[0].sentence.startswith(tuple(claims))
    assert first >= 45


CONDITIONS = [
    Conditions(),
    Conditions(classes=("3",)),
    Conditions(classes=("3", "8")),
    Conditions(predicted=("3",)),
    Conditions(correct=False),
    Conditions(correct=True),
    Conditions(confidence=(0.0, 0.9)),
    Conditions(cell=(1, 0, 0, 0, 3, 0)),
]


@pytest.mark.parametrize("conditions", CONDITIONS, ids=lambda one: one.words or "all")
@pytest.mark.parametrize("compare", [True, False])
def test_every_sentence_carries_its_control(digits, conditions, compare):
    test = digits.test if compare else replace(digits.test, class_names=tuple("abcdefghij"))
    conditions = conditions if compare else replace(conditions, classes=(), predicted=())
    chosen = conditions.positions(test, digits.analysis, digits.train.class_names)
    result = overview_of(digits.analysis, "0" * 16, (digits.train, test), conditions, chosen, digits.activations)
    for one in result.findings:
        assert one.control.what in one.sentence
        assert one.write(one.control.value) in one.sentence
        assert one.subject in ("untested", "errors-only") or one.low <= one.number - one.control.value <= one.high
    assert (result.training is None) == bool(conditions.words and not conditions.classes)
    by_subject = {sentences.about(result, one.subject) for one in result.findings}
    measured = {sentences.reach(result), sentences.nothing(result)}
    said = {one.sentence for one in sentences.told(result)}
    assert set(sentences.summary(result)) <= by_subject | measured | said


def test_one_test_and_a_network_that_is_always_right_are_no_trouble(digits):
    analysis = digits.analysis
    looked = Looked(analysis.assignments[:1], digits.learnt, np.array([True]))
    assert {one.subject for one in find(looked, analysis.important, digits.sizes)} == {"cluster", "untested"}
    true = digits.test.targets
    classes = Labelled(digits.test.class_names, true, true, digits.train.targets)
    looked = Looked(analysis.assignments, digits.learnt, true == true, classes)
    found = {one.subject: one for one in find(looked, analysis.important, digits.sizes)}
    assert set(found) == {"recall", "class-share", "cluster", "untested"}
    assert found["recall"].p == 1
    empty = Looked(analysis.assignments[:0], digits.learnt, np.zeros(0, bool))
    assert find(empty, analysis.important, digits.sizes) == ()
