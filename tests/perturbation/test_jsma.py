import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import idc_core as idc
from idc_core.errors import SettingError
from idc_core.perturbation.attacks.jsma import _best_pairs
from tests.perturbation.slow_jsma import slow_jsma, slow_pair


@pytest.fixture
def small():
    """A network of 24 values and four classes, small enough for every pair."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(24, 16), nn.Tanh(), nn.Linear(16, 4)).eval()


def worth(toward, away, pair):
    return -(toward[list(pair)].sum() * away[list(pair)].sum())


@given(st.integers(0, 10**6), st.integers(2, 40), st.floats(-1, 1))
def test_the_best_pair_is_the_best_of_all_pairs(seed, values, together):
    """Also where both gradients are almost one line, so that no value beats another."""
    random = np.random.default_rng(seed)
    toward = random.normal(size=(5, values)).astype(np.float32)
    away = (together * toward + (1 - abs(together)) * random.normal(size=toward.shape)).astype(np.float32)
    free = random.random(toward.shape) < random.choice([0.1, 0.7, 1.0])
    pairs, helps = _best_pairs(*(torch.tensor(one) for one in (toward, away, free)))
    for row in range(5):
        expected = slow_pair(toward[row], away[row], np.flatnonzero(free[row]).tolist())
        assert bool(helps[row]) == (expected is not None)
        if expected is not None:
            pair = pairs[row].tolist()
            assert len(set(pair)) == 2
            assert free[row][pair].all()
            largest = worth(toward[row], away[row], expected)
            assert worth(toward[row], away[row], pair) == pytest.approx(largest, rel=1e-5)


@given(st.integers(0, 10**6))
def test_the_best_pair_is_found_among_equal_values(seed):
    random = np.random.default_rng(seed)
    toward, away = (random.integers(-2, 3, (4, 9)).astype(np.float32) for _ in range(2))
    pairs, helps = _best_pairs(torch.tensor(toward), torch.tensor(away), torch.ones(4, 9, dtype=torch.bool))
    for row in range(4):
        expected = slow_pair(toward[row], away[row], range(9))
        assert bool(helps[row]) == (expected is not None)
        if expected is not None:
            assert worth(toward[row], away[row], pairs[row].tolist()) == worth(toward[row], away[row], expected)


@given(st.integers(0, 10**6))
def test_where_scores_sum_to_zero_the_pair_is_the_two_largest_gradients(seed):
    """There the paper's saliency is the rule of the adversarial-robustness-toolbox, which looks at `toward` alone."""
    toward = torch.tensor(np.random.default_rng(seed).normal(size=(3, 30)).astype(np.float32))
    pairs, helps = _best_pairs(toward, -toward, torch.ones(3, 30, dtype=torch.bool))
    assert helps.all()
    np.testing.assert_array_equal(pairs.sort(1).values, toward.topk(2, 1).indices.sort(1).values)


@pytest.mark.parametrize(("theta", "gamma"), [(1.0, 1.0), (0.3, 1.0), (-1.0, 1.0), (-0.4, 0.5), (1.0, 0.2)])
def test_jsma_is_the_papers_algorithm(small, theta, gamma):
    pictures = np.random.default_rng(0).uniform(0.1, 0.9, (8, 1, 4, 6)).astype(np.float32)
    labels = small(torch.tensor(pictures)).argmax(1).numpy()
    goal = (labels + 1) % 4
    result = idc.attack(small, pictures, labels, "jsma", goal=goal, theta=theta, gamma=gamma)
    for row, picture in enumerate(pictures):
        expected = slow_jsma(small, picture, int(goal[row]), theta, gamma)
        np.testing.assert_allclose(result.inputs[row], expected, atol=1e-6)
    assert result.l0.max() <= 24 * gamma


def test_jsma_on_digits_is_the_papers_algorithm(lenet, digits):
    """On a convolutional network, for its first pairs; all pairs of 784 values are too many for the slow version."""
    goal = (digits.targets[:2] + 3) % 10
    result = idc.attack(lenet, digits.inputs[:2], digits.targets[:2], "jsma", goal=goal, gamma=4 / 784)
    for row in range(2):
        expected = slow_jsma(lenet, digits.inputs[row], int(goal[row]), gamma=4 / 784)
        np.testing.assert_allclose(result.inputs[row], expected, atol=1e-6)
    assert (result.l0 <= 4).all()


def test_random_goals_depend_on_seed_and_number_alone(lenet, digits):
    whole = idc.attack(lenet, digits, name="jsma", gamma=0.05, seed=4)
    part = idc.attack(lenet, digits.inputs[5:7], digits.targets[5:7], "jsma", gamma=0.05, seed=4, numbers=[5, 6])
    np.testing.assert_allclose(whole.inputs[5:7], part.inputs, atol=1e-6)
    other = idc.attack(lenet, digits, name="jsma", gamma=0.05, seed=5)
    assert (other.inputs != whole.inputs).any()


def test_jsma_changes_values_fully(lenet, digits):
    result = idc.attack(lenet, digits, name="jsma")
    moved = result.inputs != digits.inputs
    assert (result.inputs[moved] == 1).all()
    assert result.success_rate == 1


def test_theta_of_zero_is_refused(lenet, digits):
    with pytest.raises(SettingError, match="theta"):
        idc.attack(lenet, digits, name="jsma", theta=0.0)
