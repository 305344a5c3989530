"""Two networks small enough to work relevance out on paper."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core import relevance


def weighted(module, weight, bias):
    module.weight.data = torch.tensor(weight, dtype=torch.float64).reshape(module.weight.shape)
    module.bias.data = torch.tensor(bias, dtype=torch.float64)
    return module


def check(network, inputs, expected, **settings):
    found = relevance(network, torch.tensor(inputs, dtype=torch.float64), list(expected), **settings)
    for layer, values in expected.items():
        np.testing.assert_allclose(found[layer].reshape(-1), np.ravel(values), rtol=1e-12, atol=1e-12, err_msg=layer)


@pytest.fixture
def dense():
    """x = (1, 2, -1); hidden z = (1 + 2 - 1 + 1, 2 - 2 + 1 + 1) = (3, 2), both pass the ReLU;

    scores y = (2 * 3 - 2 + 1, 3 + 2 - 1) = (5, 4): class 0 is predicted, relevance starts at (5, 0).
    Contributions: to y_0 6 and -2, bias 1; to h_1 1, 2 and -1, bias 1; to h_2 2, -2 and 1, bias 1.
    """
    return nn.Sequential(
        weighted(nn.Linear(3, 2), [[1, 1, 1], [2, -1, -1]], [1, 1]),
        nn.ReLU(),
        weighted(nn.Linear(2, 2), [[2, -1], [1, 1]], [1, -1]),
    )


X = [[1.0, 2.0, -1.0]]


class TestDense:
    def test_z(self, dense):
        # h: 5/5 (6, -2). x: 6/3 (1, 2, -1) + -2/2 (2, -2, 1) = (2, 4, -2) + (-2, 2, -1).
        check(dense, X, {"2": [5, 0], "1": [6, -2], "0": [6, -2], "input": [0, 6, -3]}, rule="z")

    def test_z_with_biases_redistributed(self, dense):
        # The bias's 1 goes to h in halves: (6.5, -1.5). x: from h_1, 6.5/3 (1, 2, -1) and the bias's 6.5/3 in thirds,
        # 6.5/9 each; from h_2, -1.5/2 (2, -2, 1) and the bias's -0.75 in thirds, -0.25 each. The sum stays 5.
        from_first = np.array([1, 2, -1]) * 6.5 / 3 + 6.5 / 9
        from_second = np.array([2, -2, 1]) * -0.75 - 0.25
        expected = {"1": [6.5, -1.5], "input": from_first + from_second}
        assert sum(expected["input"]) == pytest.approx(5)
        check(dense, X, expected, rule="z", bias="redistribute")

    def test_epsilon(self, dense):
        # epsilon = 1: 5/(5 + 1) (6, -2) = (5, -5/3); 5/(3 + 1) (1, 2, -1); -5/3 / (2 + 1) (2, -2, 1).
        expected = np.array([1, 2, -1]) * 5 / 4 + np.array([2, -2, 1]) * -5 / 9
        check(dense, X, {"1": [5, -5 / 3], "input": expected}, rule="epsilon", epsilon=1.0)

    def test_epsilon_of_another_class(self, dense):
        # y_1 = 4: 4/(4 + 1) (3, 2) = (2.4, 1.6).
        expected = np.array([1, 2, -1]) * 2.4 / 4 + np.array([2, -2, 1]) * 1.6 / 3
        check(dense, X, {"2": [0, 4], "1": [2.4, 1.6], "input": expected}, rule="epsilon", epsilon=1.0, target=1)

    def test_alpha_beta(self, dense):
        # alpha = 2, beta = 1. y_0: supporting 6 + bias 1 = 7, opposing -2: h = (2 * 6/7 * 5, -1 * 5) = (60/7, -5).
        # h_1: supporting 1 + 2 + bias 1 = 4, opposing -1: 60/7 (2 * 1/4, 2 * 2/4, -1) = (30/7, 60/7, -60/7).
        # h_2: supporting 2 + 1 + bias 1 = 4, opposing -2: -5 (2 * 2/4, -1, 2 * 1/4) = (-5, 5, -5/2).
        expected = [30 / 7 - 5, 60 / 7 + 5, -60 / 7 - 5 / 2]
        check(dense, X, {"1": [60 / 7, -5], "input": expected}, rule="alpha-beta", alpha=2.0)

    def test_alpha_one_is_the_supporting_part_alone(self, dense):
        # h = (6/7 * 5, 0); x = 30/7 (1/4, 2/4, 0).
        check(dense, X, {"1": [30 / 7, 0], "input": [30 / 28, 60 / 28, 0]}, rule="alpha-beta", alpha=1.0)

    def test_gamma(self, dense):
        # gamma = 1; all outputs are positive, so positive contributions count twice.
        # y_0: (12, -2) of 5 + 7 = 12: h = (5, -5/6). h_1: (2, 4, -1) of 3 + 4. h_2: (4, -2, 2) of 2 + 4.
        expected = np.array([2, 4, -1]) * 5 / 7 + np.array([4, -2, 2]) * (-5 / 6) / 6
        check(dense, X, {"1": [5, -5 / 6], "input": expected}, rule="gamma", gamma=1.0)


@pytest.fixture
def tied():
    """The kernel adds a pixel and its neighbour one to the right and one down, and takes 1 off:

        1 2 0        1 + 1 - 1   2 + 3 - 1        1 4
        3 1 3   ->   3 + 2 - 1   1 + 1 - 1   =    4 1   ->  the maximum 4 is met twice;
        2 2 1

    scores y = (2 * 4 + 2, 4) = (10, 4): relevance starts at 10.
    """
    return nn.Sequential(
        weighted(nn.Conv2d(1, 1, 2), [1, 0, 0, 1], [-1]),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        weighted(nn.Linear(1, 2), [2, 1], [2, 0]),
    )


PICTURE = [[[[1.0, 2.0, 0.0], [3.0, 1.0, 3.0], [2.0, 2.0, 1.0]]]]


def on_diagonals(two, three):
    """Both winners saw a 2 and a 3: (0, 1) and (1, 2); (1, 0) and (2, 1)."""
    return [[0, two, 0], [three, 0, three], [0, two, 0]]


class TestConvolutionAndTie:
    def test_z(self, tied):
        # The pool gets 10 * 8/10 = 8, each winner half. A pixel gets 4 * (2 or 3) / 4; the negative bias has its -1.
        expected = {"2": [8], "0": [0, 4, 4, 0], "input": on_diagonals(2, 3)}
        check(tied, PICTURE, expected, rule="z")

    def test_z_with_biases_redistributed(self, tied):
        # The pool gets all 10; the bias's -1 * 5/4 is taken off four pixels a winner, 5/16 each.
        two, three, other = 5 / 2 - 5 / 16, 15 / 4 - 5 / 16, -5 / 16
        # Every window holds four pixels: the corner (0, 2) is in the first, (2, 0) in the second, (1, 1) in both.
        expected = [[0, two, other], [three, 2 * other, three], [other, two, 0]]
        expected[0][2] = expected[2][0] = other
        check(tied, PICTURE, {"2": [10], "0": [0, 5, 5, 0], "input": expected}, rule="z", bias="redistribute")

    def test_epsilon(self, tied):
        # epsilon = 2: 10 * 8/12 = 20/3, each winner 10/3; a pixel 10/3 * (2 or 3) / 6.
        expected = {"2": [20 / 3], "0": [0, 10 / 3, 10 / 3, 0], "input": on_diagonals(10 / 9, 15 / 9)}
        check(tied, PICTURE, expected, rule="epsilon", epsilon=2.0)

    def test_alpha_beta(self, tied):
        # alpha = 3: nothing opposes y_0; the pool gets 3 * 8/10 * 10 = 24. A pixel gets 3 * (2 or 3)/5 * 12; what the
        # bias -1 opposes stays with it.
        expected = {"2": [24], "0": [0, 12, 12, 0], "input": on_diagonals(14.4, 21.6)}
        check(tied, PICTURE, expected, rule="alpha-beta", alpha=3.0)

    def test_composite(self, tied):
        # epsilon = 2 above the convolution: 10/3 a winner. gamma = 1 in it: (4 or 6) of 4 + 5, the bias opposes.
        expected = {"0": [0, 10 / 3, 10 / 3, 0], "input": on_diagonals(10 / 3 * 4 / 9, 10 / 3 * 6 / 9)}
        check(tied, PICTURE, expected, rule="composite", epsilon=2.0, gamma=1.0)
