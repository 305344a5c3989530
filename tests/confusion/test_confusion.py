"""The engine against the definitions, written down slowly; what merges, what is undefined, what is refused."""

import itertools
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from idc_core.confusion import (
    ActivationCounts,
    activation_probability,
    average_bias,
    average_disparity,
    class_distance,
    collect_statistics,
    cost_effectiveness,
    count_again,
    evaluate,
    most_biased,
    near_cutoff,
    pair_confusion,
    suspects,
    third_classes,
    type1_confusion,
    type2_confusion,
)
from idc_core.errors import CancelledError, DataError, ModelError, SettingError, UnsupportedOperationError
from tests.confusion import slow_confusion as slow

CLASSES = 4


class Small(nn.Module):
    """A convolution, batch norm and in-place ReLU behind it, a layer used twice, and scores."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 5, 3)
        self.norm = nn.BatchNorm2d(5)
        self.relu = nn.ReLU(inplace=True)
        self.twice = nn.Conv2d(5, 5, 3, padding=1)
        self.last = nn.Linear(5 * 4 * 4, CLASSES)

    def forward(self, inputs):
        hidden = self.relu(self.norm(self.conv(inputs)))
        hidden = torch.relu(self.twice(torch.relu(self.twice(hidden))))
        return self.last(hidden.flatten(1))


@pytest.fixture
def model():
    torch.manual_seed(3)
    return Small().train()


@pytest.fixture
def inputs():
    return np.random.default_rng(0).random((70, 2, 6, 6), dtype=np.float32)


def test_statistics_of_half_precision_are_summed_in_full(inputs):
    torch.manual_seed(0)
    half = nn.Sequential(nn.Conv2d(2, 5, 3), nn.Flatten(), nn.Linear(80, 3)).eval().bfloat16()
    found = collect_statistics(half, inputs, ["0"])
    with torch.no_grad():
        raw = half[0](torch.as_tensor(inputs).bfloat16()).float().numpy()
    np.testing.assert_allclose(found.values, [slow.statistic(one, True) for one in raw], atol=1e-6)


def test_statistics_by_hand(model, inputs):
    """What counts is the output before batch norm and ReLU, also where the ReLU overwrites it."""
    found = collect_statistics(model, inputs, ["conv", "last"], batch_size=32)
    with torch.no_grad():
        raw = model.conv(torch.as_tensor(inputs)).numpy()
        model.eval()
        scores = model(torch.as_tensor(inputs)).numpy()
    assert found.sizes == (5, CLASSES)
    wanted = np.array([slow.statistic(one, True) for one in raw])
    np.testing.assert_allclose(found.values[:, :5], wanted, atol=1e-6)
    wanted = np.array([slow.statistic(one, True) for one in scores])
    np.testing.assert_allclose(found.values[:, 5:], wanted, atol=1e-5)
    np.testing.assert_allclose(found.scores, scores, atol=1e-5)
    assert (found.values >= 0).all()
    assert (found.values <= 1).all()


def test_uses_of_a_layer_are_like_positions(model, inputs):
    found = collect_statistics(model, inputs, ["twice"])
    outputs = []
    hook = model.twice.register_forward_hook(lambda module, args, output: outputs.append(output.detach().clone()))
    with torch.no_grad():
        model.eval()(torch.as_tensor(inputs))
    hook.remove()
    both = np.concatenate([one.numpy() for one in outputs], axis=3)
    np.testing.assert_allclose(found.values, [slow.statistic(one, True) for one in both], atol=1e-5)


def test_a_constant_output_scales_to_zeros():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    nn.init.zeros_(model[0].weight)
    nn.init.constant_(model[0].bias, 0.75)
    assert not collect_statistics(model, np.ones((5, 3), np.float32), "0").values.any()


def test_model_is_left_as_it_was(model, inputs):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    activation_probability(model, inputs, ["conv", "last"])
    with pytest.raises(CancelledError):
        activation_probability(model, inputs, ["conv"], on_progress=lambda *_: False)
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("batch_size", [1, 7, None])
@pytest.mark.parametrize("threshold", [0.2, 0.5])
def test_probability_against_its_definition(model, inputs, batch_size, threshold):
    found = activation_probability(model, inputs, ["conv", "last"], threshold=threshold, batch_size=batch_size)
    kept = collect_statistics(model, inputs, ["conv", "last"], batch_size=batch_size)
    wanted = slow.probability(kept.values, [{c} for c in kept.predictions], CLASSES, np.float32(threshold))
    np.testing.assert_array_equal(found, wanted)
    again = count_again(kept.values, kept.predictions, CLASSES, threshold)
    np.testing.assert_array_equal(again.probability, wanted)


def test_several_labels_an_input(model, inputs):
    random = np.random.default_rng(1)
    labels = random.random((len(inputs), CLASSES)) < 0.4
    labels[:, 2] = False
    labels[0] = False
    found = activation_probability(model, inputs, ["conv"], labels)
    kept = collect_statistics(model, inputs, ["conv"])
    wanted = slow.probability(kept.values, [set(np.flatnonzero(row)) for row in labels], CLASSES, 0.5)
    np.testing.assert_array_equal(found, wanted)
    assert np.isnan(found[:, 2]).all()
    own = activation_probability(model, inputs, ["conv"], multi_label=True)
    np.testing.assert_array_equal(own, activation_probability(model, inputs, ["conv"], kept.scores > 0))


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_merged_halves_equal_the_whole(seed, cut):
    random = np.random.default_rng(seed)
    values, labels = random.random((12, 5), dtype=np.float32), random.integers(0, CLASSES, 12)
    whole = count_again(values, labels, CLASSES)
    parts = [ActivationCounts(CLASSES) for _ in range(2)]
    for part, rows in zip(parts, (slice(None, cut), slice(cut, None)), strict=True):
        if len(values[rows]):
            part.update(values[rows], labels[rows])
    for one, other in (parts, parts[::-1]):
        merged = ActivationCounts(CLASSES).merge(one).merge(other)
        np.testing.assert_array_equal(merged.active, whole.active)
        np.testing.assert_array_equal(merged.images, whole.images)


def test_a_class_that_is_never_predicted_is_undefined():
    values = np.random.default_rng(0).random((9, 6), dtype=np.float32)
    counts = count_again(values, np.array([0, 1, 3, 0, 1, 3, 0, 4, 4]), 5)
    assert counts.unseen.tolist() == [2]
    assert np.isnan(counts.probability[:, 2]).all()
    distance = class_distance(counts.probability)
    assert np.isnan(distance[2]).all()
    assert np.isnan(distance[:, 2]).all()
    others = [0, 1, 3, 4]
    kept = np.ix_(others, others)
    np.testing.assert_array_equal(distance[kept], class_distance(counts.probability[:, others]))
    np.testing.assert_allclose(average_bias(distance)[kept], average_bias(distance[kept]), rtol=1e-14)
    assert np.isnan(average_bias(distance)[2]).all()
    assert 2 not in suspects(distance)
    truth = np.random.default_rng(1).random((5, 5))
    assert evaluate(distance, truth + truth.T).undefined == 4


@given(st.integers(0, 2**32 - 1), st.sampled_from([True, False]), st.integers(1, 40))
def test_distances_against_their_definition(seed, normalise, neurons):
    random = np.random.default_rng(seed)
    matrix = random.integers(0, 4, (neurons, 6)) / 3
    matrix[:, 1] = matrix[:, 0]
    matrix[:, 2] = np.clip(matrix[:, 0] + 1e-9, 0, 1)
    matrix[:, 5] = np.nan
    found = class_distance(matrix, normalise)
    np.testing.assert_allclose(found, slow.distance(matrix, normalise), rtol=1e-12, atol=1e-15)
    assert found[0, 1] == 0
    np.testing.assert_array_equal(found, found.T)


def test_distances_over_several_blocks():
    random = np.random.default_rng(0)
    matrix = random.random((5000, 12)) * (random.random((5000, 12)) < 0.3)
    matrix[:, 1] = matrix[:, 0]
    matrix[4999, 1] += 1e-6
    for normalise in (False, True):
        np.testing.assert_allclose(
            class_distance(matrix, normalise), slow.distance(matrix, normalise), rtol=1e-12, atol=1e-15
        )


def test_distances_need_little_memory_beside_the_matrix():
    matrix = np.random.default_rng(0).random((20_000, 100))
    tracemalloc.start()
    class_distance(matrix, True)
    beside = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert beside < matrix.nbytes / 2


def test_no_neuron_active_is_no_distance():
    np.testing.assert_array_equal(class_distance(np.zeros((3, 2)), True), np.zeros((2, 2)))


@given(st.integers(0, 2**32 - 1))
def test_confusion_against_its_definition(seed):
    random = np.random.default_rng(seed)
    true, said = random.integers(0, 5, (2, 40))
    np.testing.assert_array_equal(type1_confusion(true, said, 6), slow.type1(true, said, 6))
    both = random.random((2, 40, 5)) < 0.4
    for fewest in (0, 12):
        np.testing.assert_array_equal(type1_confusion(*both, 5, fewest=fewest), slow.multi(*both, "type1", fewest))
        np.testing.assert_array_equal(type2_confusion(*both, fewest=fewest), slow.multi(*both, "type2", fewest))


@given(st.integers(0, 2**32 - 1))
def test_disparity_against_its_definition(seed):
    random = np.random.default_rng(seed)
    directional = random.random((6, 6))
    directional[random.random((6, 6)) < 0.2] = np.nan
    np.fill_diagonal(directional, np.nan)
    np.testing.assert_array_equal(pair_confusion(directional), slow.pair(directional))
    np.testing.assert_allclose(average_disparity(directional), slow.disparity(directional), rtol=1e-12)


def distances(seed, classes=7, undefined=True):
    random = np.random.default_rng(seed)
    found = np.triu(random.integers(0, 6, (classes, classes)) / 5, 1)
    found = found + found.T
    if undefined:
        found[3] = found[:, 3] = np.nan
    return found


@given(st.integers(0, 2**32 - 1), st.sampled_from([True, False]))
def test_bias_against_its_definition(seed, filtered):
    found = distances(seed)
    np.testing.assert_allclose(
        average_bias(found, filtered=filtered), slow.bias(found, filtered), rtol=1e-12, atol=1e-15
    )


@given(st.integers(0, 2**32 - 1), st.sampled_from([True, False]), st.integers(1, 30))
def test_most_biased_triplets(seed, filtered, most):
    found = distances(seed)
    values, _ = slow.triplets(found, filtered)
    wanted = sorted({(v, frozenset((a, b)), c) for (a, b, c), v in values.items() if v > 0}, key=lambda t: -t[0])
    told = most_biased(found, most, filtered=filtered)
    assert len(told) == min(most, len(wanted))
    np.testing.assert_allclose([one.bias for one in told], [one[0] for one in wanted[: len(told)]], rtol=1e-12)
    for one in told:
        assert one.bias == pytest.approx(values[one.near, one.far, one.third], rel=1e-12)
        assert found[one.third, one.near] < found[one.third, one.far]
    assert len({(frozenset((one.near, one.far)), one.third) for one in told}) == len(told)


def test_third_classes_of_a_pair():
    found = distances(5)
    values, _ = slow.triplets(found, True)
    signed = third_classes(found, 0, 1)
    for c in (2, 4, 5, 6):
        assert abs(signed[c]) == pytest.approx(values[0, 1, c])
        assert signed[c] == 0 or (signed[c] > 0) == (found[c, 0] < found[c, 1])
    assert np.isnan(signed[[0, 1, 3]]).all()
    known = [0, 1, 2, 4, 5, 6]
    assert near_cutoff(found) == near_cutoff(found[np.ix_(known, known)])


def symmetric(random, classes=8):
    values = np.triu(random.random((classes, classes)), 1)
    return values + values.T


@given(st.integers(0, 2**32 - 1), st.sampled_from(["low", "high"]))
def test_evaluation_against_its_definition(seed, errors):
    random = np.random.default_rng(seed)
    score, truth = symmetric(random), symmetric(random)
    truth[2, 5] = truth[5, 2] = np.nan
    pairs, true, reported = slow.counts(score, truth, errors == "low")
    found = evaluate(score, truth, errors)
    assert (found.pairs, found.true_pairs, found.undefined) == (len(pairs), len(true), 1)
    assert found.at_deviations.reported == len(reported)
    assert found.at_deviations.true_positives == len(true & reported)
    assert found.at_deviations.false_positives == len(reported - true)
    assert found.at_share.reported == (1 if errors == "high" else 0)
    order = [tuple(pair) for pair in suspects(score, errors).tolist() if tuple(pair) in set(pairs)]
    recall = [len(true & set(order[:k])) / len(true) for k in range(len(order) + 1)]
    area = sum((a + b) / 2 for a, b in itertools.pairwise(recall)) / len(order)
    assert found.gain == pytest.approx(area / 0.5 - 1)
    assert found.gain <= found.optimal_gain + 1e-12
    curve = cost_effectiveness(score, truth, errors)
    np.testing.assert_allclose(curve.found, recall)
    assert (curve.optimal >= curve.found - 1e-12).all()


def test_nothing_true_has_no_gain():
    score = symmetric(np.random.default_rng(0))
    found = evaluate(score, np.zeros_like(score))
    assert found.true_pairs == 0
    assert np.isnan([found.gain, found.spearman, found.at_deviations.recall]).all()


LABELS = np.array([0, 1, 2, 1])


@pytest.mark.parametrize(
    ("work", "error", "words"),
    [
        (lambda: type1_confusion(LABELS, [0, 1, 4, 1], 4), DataError, "must lie in 0..3.*input 2"),
        (lambda: type1_confusion([0, -1, 2, 1], LABELS, 4), DataError, "must lie in 0..3"),
        (lambda: type1_confusion(LABELS, LABELS[:3], 4), DataError, "4 true labels and 3 predictions"),
        (lambda: type1_confusion(LABELS, np.eye(4), 4), DataError, "one form"),
        (lambda: type1_confusion(LABELS / 2, LABELS, 4), DataError, "whole numbers"),
        (lambda: type1_confusion([], [], 4), DataError, "must be whole|There are no"),
        (lambda: type2_confusion(LABELS, LABELS), DataError, "several labels"),
        (lambda: type2_confusion(np.full((3, 2), 0.5), np.eye(3, 2)), DataError, "other values than 0 and 1"),
        (lambda: count_again(np.zeros((3, 2)), LABELS, 4), DataError, "activations of 3 inputs and predictions of 4"),
        (lambda: count_again(np.zeros((4, 2)), LABELS, 2), DataError, "must lie in 0..1"),
        (lambda: ActivationCounts(3, 1.5), SettingError, "threshold in 0..1"),
        (lambda: ActivationCounts(3).active, SettingError, "Nothing is counted"),
        (lambda: class_distance(np.array([[0.5, 1.2]])), DataError, "outside"),
        (lambda: class_distance(np.array([[0.5, np.nan], [0.1, 0.2]])), DataError, "1 of 2 neurons"),
        (lambda: class_distance(np.zeros(4)), DataError, "probability matrix"),
        (lambda: average_bias(np.zeros((2, 2))), DataError, "three or more"),
        (lambda: average_bias(-np.ones((3, 3))), DataError, "symmetric distances"),
        (lambda: average_bias(np.zeros((3, 3)), directional=np.zeros((3, 3))), SettingError, "use no labels"),
        (lambda: average_bias(np.zeros((3, 3)), "paper"), SettingError, "'equation' or 'artefact'"),
        (lambda: average_disparity(np.zeros((2, 2))), DataError, "three or more"),
        (lambda: evaluate(np.zeros((3, 3)), np.zeros((4, 4))), DataError, "shapes"),
        (lambda: evaluate(np.full((3, 3), np.nan), np.zeros((3, 3))), DataError, "No pair"),
        (lambda: evaluate(np.zeros((3, 3)), np.zeros((3, 3)), "none"), SettingError, "'low' or 'high'"),
    ],
)
def test_bad_input_is_refused(work, error, words):
    with pytest.raises(error, match=words):
        work()


@pytest.mark.parametrize("labels", [np.zeros(69, int), np.zeros(71, int), np.zeros((80, CLASSES), int)])
def test_predictions_of_other_images_are_refused(model, inputs, labels):
    with pytest.raises(DataError, match=r"predictions for"):
        activation_probability(model, inputs, ["conv"], labels)


def test_layers_that_cannot_be_counted_are_refused(model, inputs):
    with pytest.raises(ModelError, match="no layer 'nowhere'"):
        activation_probability(model, inputs, ["nowhere"])
    with pytest.raises(ModelError, match="at least one layer"):
        activation_probability(model, inputs, [])
    with pytest.raises(UnsupportedOperationError, match="gives tuple"):
        collect_statistics(Recurrent(), inputs[:, 0], ["lstm"])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 4, batch_first=True)
        self.last = nn.Linear(4, 2)

    def forward(self, inputs):
        return self.last(self.lstm(inputs)[0][:, -1])


def test_outputs_that_are_not_finite_are_refused(model, inputs):
    inputs[3, 0, 0, 0] = np.inf
    with pytest.raises(DataError, match="'conv' gives outputs that are not finite"):
        activation_probability(model, inputs, ["conv"])


def test_counts_of_other_neurons_do_not_merge():
    one, other = (count_again(np.zeros((2, n)), [0, 1], 2) for n in (3, 4))
    with pytest.raises(SettingError, match="same neurons"):
        one.merge(other)
    with pytest.raises(SettingError, match="same classes and threshold"):
        one.merge(ActivationCounts(2, 0.4))
    with pytest.raises(DataError, match="expected 3 as before"):
        one.update(np.zeros((2, 4)), [0, 1])
