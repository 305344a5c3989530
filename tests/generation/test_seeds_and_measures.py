"""Seeds, votes, distances, copies, guidance by name, and inputs told while a search runs."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.analysis.analysis import analyze
from idc_core.coverage.cell_table import tabulate
from idc_core.datasets import load_dataset
from idc_core.errors import SettingError, UnsupportedOperationError
from idc_core.generation import (
    SEEDS,
    Pool,
    choose_seeds,
    differential_search,
    distances,
    guides,
    majority,
    make_guidance,
    outvoted,
    rounded,
)
from idc_core.generation.measures import _NO_MAJORITY
from idc_core.generation.seeds import uncovered_beside, uncovered_neighbours
from idc_core.models import load_model

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits", "test")


@pytest.fixture(scope="module")
def analysis(digits):
    return analyze(load_model("lenet5-digits"), load_dataset("digits", "train"), digits, "fc2", 6)


@pytest.fixture(scope="module")
def table(analysis):
    return tabulate(analysis.assignments, [one.k for one in analysis.clusters])


@pytest.fixture
def pool(digits, analysis, table):
    scores = np.random.default_rng(1).normal(size=(len(digits), 10))
    return Pool(digits.targets, scores, analysis, cell=uncovered_beside(table))


@pytest.mark.parametrize("how", SEEDS)
def test_seeds_are_different_tests_and_the_same_for_the_same_seed(how, pool):
    found = choose_seeds(pool, how, 40, seed=3)
    assert len(np.unique(found)) == 40
    assert found.min() >= 0
    assert found.max() < len(pool)
    np.testing.assert_array_equal(found, choose_seeds(pool, how, 40, seed=3))
    assert (choose_seeds(pool, how, 40, seed=4) != found).any() == (how in ("random", "classes"))
    assert len(choose_seeds(pool, how, 10_000)) == len(pool)


def test_as_many_of_each_class(pool):
    found = choose_seeds(pool, "classes", 35)
    assert set(np.bincount(pool.targets[found], minlength=10)) == {3, 4}


def test_least_certain_first(pool):
    top = np.sort(np.exp(pool.scores) / np.exp(pool.scores).sum(1, keepdims=True), axis=1)
    margin = top[:, -1] - top[:, -2]
    np.testing.assert_array_equal(choose_seeds(pool, "uncertain", 5), np.argsort(margin)[:5])


def test_closest_to_a_cell_is_by_distance_to_its_centroids(pool, analysis):
    goal = np.array([values[i] for values, i in zip(analysis.centroids, pool.cell, strict=True)])
    away = (((analysis.test_activations - goal) / analysis.train_activations.std(0)) ** 2).sum(1)
    np.testing.assert_array_equal(choose_seeds(pool, "cell", 8), np.argsort(away, kind="stable")[:8])
    rows = np.arange(100, 200)
    part = Pool(pool.targets[rows], pool.scores[rows], analysis, rows, pool.cell)
    np.testing.assert_array_equal(choose_seeds(part, "cell", 8), np.argsort(away[rows], kind="stable")[:8])


def test_seeds_refused(pool):
    with pytest.raises(SettingError, match="way to choose seeds"):
        choose_seeds(pool, "luck")
    with pytest.raises(SettingError, match="at least 1"):
        choose_seeds(pool, count=0)
    with pytest.raises(SettingError, match="one number"):
        choose_seeds(Pool(pool.targets, pool.scores[:, :1]), "uncertain")
    with pytest.raises(SettingError, match="an analysis and a cell"):
        choose_seeds(Pool(pool.targets, pool.scores), "cell")


def test_uncovered_cells_lie_one_step_from_a_covered_one(table):
    covered = {tuple(cell) for cell in table.cells.tolist()}
    found = uncovered_neighbours(table, 20, seed=1)
    assert len(set(found)) == 20
    for cell in (*found, uncovered_beside(table)):
        assert cell not in covered
        steps = [np.abs(np.array(cell) - other).sum() for other in covered]
        assert min(steps) == 1
    assert found == uncovered_neighbours(table, 20, seed=1) != uncovered_neighbours(table, 20, seed=2)


def test_uncovered_cell_lies_beside_the_fullest():
    one = tabulate(np.array([[0, 0], [0, 0], [1, 1]], np.uint8), (2, 2))
    assert uncovered_beside(one) in {(0, 1), (1, 0)}
    every = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.uint8)
    assert uncovered_beside(tabulate(every, (2, 2))) is None
    assert uncovered_neighbours(tabulate(every, (2, 2)), 3) == []


def test_majority_is_more_than_half():
    votes = np.array([[3, 3, 5], [3, 4, 5], [1, 1, 1], [0, 2, 2]])
    assert majority(votes).tolist() == [3, _NO_MAJORITY, 1, 2]
    assert majority(votes[:, :2]).tolist() == [3, _NO_MAJORITY, 1, _NO_MAJORITY]
    assert majority(np.array([[1, 1, 2, 2], [1, 1, 1, 2]])).tolist() == [_NO_MAJORITY, 1]
    assert outvoted(votes).tolist() == [1, 0, 1]
    assert majority(np.zeros((0, 3), np.int64)).shape == (0,)


def test_majority_of_angles_is_those_close_to_the_middle():
    angles = np.float32([[0.0, 0.1, 0.9], [0.0, 0.5, 1.0]])
    label = majority(angles, bound=0.2)
    assert label[0] == pytest.approx(0.05)
    assert np.isnan(label[1])
    assert np.isnan(majority(np.float32([[0.0, 0.5]]), bound=0.2)[0])
    assert outvoted(angles, bound=0.2).tolist() == [0, 0, 1]


def test_distances_by_hand():
    seeds = np.zeros((2, 1, 2, 2), np.float32)
    inputs = np.array([[[[0.3, 0], [0, 0.4]]], [[[1, 1], [1, 1]]]], np.float32)
    found = distances(inputs, seeds)
    np.testing.assert_allclose(found.l1, [0.7, 4])
    np.testing.assert_allclose(found.l2, [0.5, 2])
    np.testing.assert_allclose(found.linf, [0.4, 1], rtol=1e-6)
    assert found.diversity == pytest.approx(2.35)
    assert np.isnan(distances(inputs[:0], seeds[:0]).diversity)
    with pytest.raises(SettingError, match="one seed per input"):
        distances(inputs, seeds[:1])


def test_rounded_weights_have_few_values_and_the_network_stays():
    model = load_model("lenet1-digits").train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    other = rounded(model, 3)
    assert model.training
    assert not other.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for name, weight in other.named_parameters():
        if weight.dim() > 1:
            assert len(weight.unique()) <= 7
            assert (weight - before[name]).abs().max() <= before[name].abs().max() / 6 + 1e-6
        else:
            assert torch.equal(weight, before[name])
    blank = torch.zeros(1, 1, 28, 28)
    assert torch.allclose(rounded(model, 16)(blank), model.eval()(blank), atol=1e-2)
    with pytest.raises(SettingError, match="from 2 to 16"):
        rounded(model, 1)


@pytest.mark.parametrize("name", guides())
def test_guidance_by_name(name, digits):
    models = [load_model("lenet1-digits"), load_model("lenet4-digits")]
    seeds = digits.inputs[:20]
    guidance = make_guidance(name, models, digits, seeds, m=20)
    assert [one.model for one in guidance] == models
    assert all((one.score > 0) == (name not in ("snac", "nbc")) for one in guidance)  # tests rarely leave the range
    assert all(one.score <= 1 for one in guidance)
    inputs = differential_search(models, seeds, "linf", weight_coverage=1.0, iterations=5, guidance=guidance)
    assert inputs.settings["guidance"] == (name, name)
    assert len(inputs) > 0


def test_guidance_refused(digits):
    model = load_model("lenet1-digits")
    with pytest.raises(SettingError, match="one of nc"):
        make_guidance("tknp", [model], digits)
    with pytest.raises(UnsupportedOperationError, match="no convolution or dense layer"):
        make_guidance("nc", [nn.Flatten()], digits)
    assert len(make_guidance("nc", [model, model], digits)) == 1


def test_disagreements_are_told_while_the_search_runs(digits):
    models = [load_model(f"lenet{number}-digits") for number in (1, 4, 5)]
    told = []
    inputs = differential_search(models, digits.inputs[:40], "linf", iterations=12, on_disagreements=told.append)
    counts = [len(one) for one in told]
    assert counts == sorted(set(counts))
    assert len(told) > 2
    assert counts[-1] == len(inputs)
    assert all(one.stopped for one in told)
    early = told[0]
    kept = np.isin(inputs.seed_index, early.seed_index)
    np.testing.assert_array_equal(inputs.inputs[kept], early.inputs)
    assert inputs.iterations[kept].max() < inputs.iterations[~kept].max()
