"""Rankings against slow and obvious versions of themselves, and what a method that refuses leaves behind."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from idc_core.attribution import gradients
from idc_core.attribution.methods import METHODS, attribute
from idc_core.base.statistics import spearman
from idc_core.datasets.dataset import Dataset
from idc_core.errors import CancelledError, SettingError, UnsupportedOperationError
from idc_core.evidence.finding import Verdict
from idc_core.importance.ranking import (
    _ROWS,
    Ranking,
    by_group,
    by_method,
    by_relevance,
    carrying,
    count_shared,
    extremes,
    group_inputs,
    group_means,
    sample_inputs,
    shared_finding,
    spread_evenly,
)


def dataset(targets, names=("a", "b", "c"), task="classification"):
    n = len(targets)
    return Dataset(
        "own",
        "train",
        np.zeros((n, 1, 2, 2), np.float32),
        np.asarray(targets),
        tuple(names),
        task,
        (),
        (),
        np.arange(n),
        "0" * 16,
    )


def slow_spearman(first, second):
    """From the definition: Pearson's correlation of the ranks, where equal values share their mean rank."""

    def ranks(values):
        return np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])

    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


@pytest.fixture
def network():
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 5), nn.ReLU(), nn.Linear(5, 3)
    return nn.Sequential(*layers).eval()


@pytest.fixture
def images():
    return np.random.default_rng(0).random((11, 1, 6, 6)).astype(np.float32)


def test_cumulative_relevance_orders_like_algorithm_1():
    relevance = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    found = {ranking.name: ranking for ranking in by_relevance(relevance)}
    assert next(iter(found)) == "sum"
    for neuron in range(6):
        column = [float(value) for value in relevance[:, neuron]]
        assert found["sum"].values[neuron] == pytest.approx(sum(column) / 40)
        assert found["absolute"].values[neuron] == pytest.approx(sum(map(abs, column)) / 40)
    assert all(ranking.inputs == 40 for ranking in found.values())


def test_order_and_places_take_the_lower_neuron_first_where_values_are_equal():
    ranking = Ranking("x", "x", np.array([1.0, 3.0, 1.0, 3.0]), 1)
    assert ranking.order.tolist() == [1, 3, 0, 2]
    assert ranking.places.tolist() == [2, 0, 3, 1]


def test_class_means_are_means_over_the_inputs_of_a_class():
    rng = np.random.default_rng(1)
    relevance, groups = rng.normal(size=(50, 4)).astype(np.float32), rng.integers(0, 3, 50)
    found = group_means(relevance, groups, 5)
    assert found.shape == (4, 5)
    for neuron in range(4):
        for one in range(3):
            values = [relevance[i, neuron] for i in range(50) if groups[i] == one]
            assert found[neuron, one] == pytest.approx(float(np.mean(values)), rel=1e-5)
    assert np.isnan(found[:, 3:]).all()


def test_classes_without_inputs_have_no_ranking():
    relevance = np.array([[1.0, 2.0], [3.0, 0.0], [5.0, 0.0]])
    found = by_group(relevance, np.array([0, 2, 2]), ("a", "b", "c"))
    assert [(ranking.label, ranking.inputs) for ranking in found] == [("a", 1), ("c", 2)]
    assert found[0].order.tolist() == [1, 0]
    assert found[1].values.tolist() == [4.0, 0.0]


def test_groups_are_classes_or_ranges_that_hold_equally_many():
    groups, labels = group_inputs(dataset([2, 0, 1]))
    assert groups.tolist() == [2, 0, 1]
    assert labels == ("a", "b", "c")
    angles = np.linspace(-1, 1, 100).astype(np.float32)
    groups, labels = group_inputs(dataset(angles, (), "regression"))
    assert np.bincount(groups).tolist() == [20] * 5
    assert labels[0].startswith("\u22121.00 to ")
    assert (np.diff(groups) >= 0).all()


@pytest.mark.parametrize("angles", [np.zeros(9), np.array([0.0] * 30 + [1.0]), np.array([-1.0] + [0.0] * 30 + [1.0])])
def test_groups_of_numbers_that_are_mostly_equal_have_a_name_each(angles):
    groups, labels = group_inputs(dataset(angles.astype(np.float32), (), "regression"))
    assert groups.min() >= 0
    assert groups.max() < len(labels)


def test_sample_takes_equally_many_of_every_class():
    targets = np.array([0] * 100 + [1] * 50 + [2] * 3)
    chosen = sample_inputs(dataset(targets), 33)
    assert len(chosen) == len(set(chosen.tolist())) == 33
    assert (np.diff(chosen) > 0).all()
    assert np.bincount(targets[chosen]).tolist() == [15, 15, 3]
    assert sample_inputs(dataset(targets), 33).tolist() == chosen.tolist()
    assert sample_inputs(dataset(targets), 33, seed=1).tolist() != chosen.tolist()
    assert len(sample_inputs(dataset(targets), 10_000)) == 153


def test_sample_of_a_drive_lies_at_even_distances():
    assert sample_inputs(dataset(np.zeros(101, np.float32), (), "regression"), 5).tolist() == [0, 25, 50, 75, 100]
    assert len(sample_inputs(dataset(np.zeros(3, np.float32), (), "regression"), 5)) == 3


def test_spread_reaches_both_ends():
    assert spread_evenly(11, 3).tolist() == [0, 5, 10]
    assert spread_evenly(2, 5).tolist() == [0, 1]


def test_empty_samples_are_refused():
    with pytest.raises(SettingError, match="at least 1, not 0"):
        sample_inputs(dataset([0, 1]), 0)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("layer", ["0", "3"])
@pytest.mark.parametrize("method", [name for name, entry in METHODS.items() if entry.inside])
def test_methods_rank_by_their_mean_over_inputs(network, images, layer, method):
    found = by_method(network, images, layer, method)
    values = attribute(network, images, method, layer)
    for neuron in range(values.shape[1]):
        expected = np.mean([float(one[neuron].sum()) for one in values])
        assert found.values[neuron] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert (found.name, found.label, found.inputs) == (method, METHODS[method].label, 11)


def test_result_does_not_depend_on_how_inputs_are_cut(network, monkeypatch):
    images = np.random.default_rng(0).random((_ROWS + 3, 1, 6, 6)).astype(np.float32)
    whole = by_method(network, images, "3", "deeplift")
    monkeypatch.setattr("idc_core.importance.ranking._ROWS", 7)
    assert by_method(network, images, "3", "deeplift").values == pytest.approx(whole.values, rel=1e-4)


def test_unknown_method_is_refused(network, images):
    with pytest.raises(SettingError, match="'mood': expected one of z, epsilon"):
        by_method(network, images, "3", "mood")


def test_values_that_are_not_finite_are_refused_by_name(network, images, monkeypatch):
    def broken(*args, **kwargs):
        return {"3": np.full((len(args[1]), 5), np.inf, np.float32)}

    monkeypatch.setattr("idc_core.attribution.registry.relevance", broken)
    with pytest.raises(UnsupportedOperationError, match=r"^LRP-0 \(z\) gives some neurons of layer '3' no"):
        by_method(network, images, "3", "z")


def test_a_method_reports_one_way_to_the_end_and_can_be_stopped(network, images, monkeypatch):
    monkeypatch.setattr("idc_core.importance.ranking._ROWS", 4)
    monkeypatch.setattr(gradients, "_PASS_BYTES", 1)
    seen = []
    by_method(network, images, "3", "gradient-x-input", on_progress=lambda *at: seen.append(at[:2]))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (11, 11)
    assert len(seen) > 2
    with pytest.raises(CancelledError):
        by_method(network, images, "3", "epsilon", on_progress=lambda *at: False)


def test_agreement_is_spearmans():
    rng = np.random.default_rng(2)
    values = np.stack([rng.random(20), rng.integers(0, 3, 20), rng.random(20), np.full(20, 0.3)])
    found = spearman(values)
    for row in range(3):
        for column in range(3):
            assert found[row, column] == pytest.approx(slow_spearman(values[row], values[column]))
            assert found[row, column] == pytest.approx(spearmanr(values[row], values[column]).statistic)
    assert np.isnan(found[3]).all()
    assert np.isnan(found[:, 3]).all()
    orders = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 21.0], [3.0, 2.0, 1.0]])
    assert spearman(orders) == pytest.approx(np.array([[1, 1, -1], [1, 1, -1], [-1, -1, 1]]))


def test_shared_counts_the_neurons_among_the_first_of_both():
    one = Ranking("a", "a", np.array([5.0, 4.0, 3.0, 2.0]), 1)
    other = Ranking("b", "b", np.array([2.0, 4.0, 3.0, 5.0]), 1)
    assert [count_shared(one, other, m) for m in (1, 2, 3, 4)] == [0, 1, 2, 4]


def test_shared_neurons_stand_beside_those_that_random_ones_would_share():
    random = np.random.default_rng(0)
    values, other = random.normal(size=(2, 80))
    one = Ranking("a", "a", values, 1)
    same = shared_finding(one, Ranking("b", "b", values + 0.01 * other, 1), 6, ("first", "second"))
    assert same.verdict is Verdict.STANDS_OUT
    assert same.control.value == pytest.approx(36 / 80)
    assert same.sentence.startswith("Of the first 6 neurons by first, also first by second: ")
    draws = [shared_finding(one, Ranking("c", "c", random.permutation(values), 1), 6, ("a", "c")) for _ in range(200)]
    assert np.mean([found.number for found in draws]) == pytest.approx(36 / 80, abs=0.15)
    assert sum(found.verdict is Verdict.STANDS_OUT for found in draws) <= 16
    whole = shared_finding(one, Ranking("c", "c", other, 1), 80, ("a", "c"))
    assert (whole.number, whole.verdict) == (80, Verdict.TOO_FEW)


def test_extremes_are_the_ends_of_the_sorted_inputs():
    values = np.array([0.0, 3.0, 1.0, 0.0, 3.0, 2.0])
    most, least = extremes(values, 3)
    assert most.tolist() == sorted(range(6), key=lambda i: (-values[i], i))[:3] == [1, 4, 5]
    assert least.tolist() == sorted(range(6), key=lambda i: (values[i], i))[:3] == [0, 3, 2]
    most, least = extremes(values, 50)
    assert len(most) == len(least) == 6


def test_the_fewest_neurons_that_carry_half_of_what_is_positive():
    assert carrying(np.array([1.0, -5.0, 4.0, 2.0, 1.0])).tolist() == [2]
    assert carrying(np.array([1.0, -5.0, 3.0, 2.0, 2.0])).tolist() == [2, 3]
    assert carrying(np.array([1.0, 0.0, 3.0]), 1.0).tolist() == [2, 0]
    assert carrying(np.array([-1.0, np.nan])).tolist() == []
