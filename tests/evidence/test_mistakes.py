"""What misclassified tests most likely are, by planted faults of each kind and against slow ways."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier

import idc_core as idc
from idc_core.analysis.mistakes import _numbers_of
from idc_core.errors import DataError
from idc_core.evidence.finding import Verdict
from idc_core.evidence.mistakes import NEIGHBOURS, Reason, confident_classes, judge_mistakes


def slow_confident(probabilities, labels):
    classes = range(probabilities.shape[1])
    own = [[p[c] for p, label in zip(probabilities, labels, strict=True) if label == c] for c in classes]
    found = []
    for row in probabilities:
        reached = [c for c in classes if own[c] and row[c] >= sum(own[c]) / len(own[c]) - 1e-9]
        found.append(max(reached, key=lambda c: row[c], default=-1))
    return found


def slow_votes(tests, train, labels, classes):
    votes = []
    for test in tests:
        order = sorted(range(len(train)), key=lambda i: float(((train[i] - test) ** 2).sum()))[:NEIGHBOURS]
        votes.append([sum(labels[i] == c for i in order) / NEIGHBOURS for c in range(classes)])
    return np.array(votes)


@pytest.fixture(scope="module")
def digits():
    """Probabilities, labels, tests, training inputs and their labels."""
    train, test = idc.load_dataset("digits", "train"), idc.load_dataset("digits", "test")
    with torch.no_grad():
        scores = idc.load_model("lenet5-digits")(torch.tensor(test.inputs))
    return torch.softmax(scores.double(), 1).numpy(), test.targets, test.inputs, train.inputs, train.targets


@pytest.fixture(scope="module")
def table():
    rows, classes = load_breast_cancer(return_X_y=True)
    rows = (rows - rows.mean(0)) / rows.std(0)
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = order[:300], order[300:]
    network = MLPClassifier((16,), max_iter=80, early_stopping=True, random_state=0).fit(rows[train], classes[train])
    return network.predict_proba(rows[test]), classes[test], rows[test], rows[train], classes[train]


def flipped(labels, classes, seed, share=0.02):
    """Return labels of which some are wrong, and which are."""
    random = np.random.default_rng(seed)
    at = random.choice(len(labels), round(share * len(labels)), replace=False)
    given = labels.copy()
    given[at] = (labels[at] + random.integers(1, classes, len(at))) % classes
    return given, np.isin(np.arange(len(labels)), at)


def test_confident_classes_are_those_of_the_slow_way():
    random = np.random.default_rng(0)
    for classes in (2, 5):
        probabilities = random.dirichlet(np.ones(classes), 60)
        labels = random.integers(0, classes - (classes > 2), 60)  # one class without inputs
        assert confident_classes(probabilities, labels).tolist() == slow_confident(probabilities, labels)


def test_votes_are_those_of_the_slow_way(digits):
    probabilities, labels, tests, train, train_labels = digits
    found = judge_mistakes(probabilities, labels, tests, train, train_labels)
    assert found.tests.tolist() == np.flatnonzero(probabilities.argmax(1) != labels).tolist()
    votes = slow_votes(tests[found.tests], train, train_labels, 10)
    rows = np.arange(len(found.tests))
    np.testing.assert_allclose(found.for_label, votes[rows, labels[found.tests]])
    np.testing.assert_allclose(found.for_prediction, votes[rows, probabilities.argmax(1)[found.tests]])


@pytest.mark.parametrize("data", ["digits", "table"])
def test_wrong_labels_are_told_more_precisely_than_by_confident_learning_alone(data, request):
    probabilities, labels, *inputs = request.getfixturevalue(data)
    ours, alone, recall = [], [], []
    for seed in range(10):
        given, wrong = flipped(labels, probabilities.shape[1], seed)
        suspects = judge_mistakes(probabilities, given, *inputs).of(Reason.LABEL)
        sure = confident_classes(probabilities, given)
        ours.append(wrong[suspects].mean())
        recall.append(wrong[suspects].sum() / wrong.sum())
        doubted = (sure >= 0) & (sure != given)
        alone.append((wrong[doubted].mean(), wrong[doubted].sum() / wrong.sum()))
    precision, found = np.mean(alone, 0)
    assert np.mean(ours) >= precision
    assert np.mean(recall) >= 0.9 * found > 0.4


def test_no_label_is_called_wrong_where_chance_explains_the_doubts(digits):
    probabilities, labels, tests, train, train_labels = digits
    given, wrong = flipped(labels, 10, 0)
    found = judge_mistakes(probabilities, given, tests, train, train_labels)
    assert found.doubted == len(found.of(Reason.LABEL)) >= wrong.sum()
    assert found.by_chance < 1
    assert found.finding.verdict is Verdict.STANDS_OUT
    # A network that is sure of many wrong answers, and training inputs that tell nothing of classes.
    random = np.random.default_rng(0)
    guessed = np.eye(10)[np.where(random.random(len(labels)) < 0.4, random.integers(0, 10, len(labels)), labels)]
    noise = random.random(train.shape, np.float32)
    found = judge_mistakes(0.9 * guessed + 0.01, labels, tests, noise, train_labels)
    assert found.doubted > 20
    assert abs(found.by_chance - found.doubted) < 3 * found.doubted**0.5
    assert found.finding.verdict is Verdict.AS_EXPECTED
    assert not len(found.of(Reason.LABEL))


def test_noise_is_outside_the_domain_and_rare_among_real_mistakes(digits):
    probabilities, labels, tests, train, train_labels = digits
    random = np.random.default_rng(0)
    noisy, given = tests.copy(), labels.copy()
    at = random.choice(len(tests), 20, replace=False)
    noisy[at] = random.random((20, *tests.shape[1:]), np.float32)
    unsure = probabilities.copy()
    unsure[at] = 0.08
    given[at], unsure[at, 3] = 5, 0.28
    found = judge_mistakes(unsure, given, noisy, train, train_labels)
    assert np.isin(at, found.of(Reason.OUTSIDE)).sum() >= 19
    assert len(judge_mistakes(probabilities, labels, tests, train, train_labels).of(Reason.OUTSIDE)) <= 1


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="a label per input"):
        confident_classes(np.ones((3, 2)), np.zeros(2, int))
    with pytest.raises(DataError, match=r"0\.\.1, these in 0\.\.2"):
        confident_classes(np.ones((3, 2)), np.array([0, 1, 2]))


def test_few_tests_are_made_numbers_at_a_time(digits):
    probabilities, labels, tests, train, train_labels = digits
    taken = []

    def numbers(some):
        taken.append(len(some))
        return some

    given = flipped(labels, 10, 0)[0]
    found = judge_mistakes(probabilities, given, tests, train, train_labels, numbers)
    assert found.reasons == judge_mistakes(probabilities, given, tests, train, train_labels).reasons
    assert max(taken) < len(tests)


def test_words_that_training_does_not_have_are_like_no_others():
    numbers = _numbers_of(np.array([[5, 5, 2], [3, 4, 0]]), 6, (0,))
    found = numbers(np.array([[900, 901, 0], [5, 5, 2], [900, 5, 5]]))
    assert not found[0].any()
    np.testing.assert_allclose((found**2).sum(1), [0, 1, 1])
    assert found[2].argmax() == 5
