"""Minima found for all problems together are those SciPy finds one at a time, from near and from far."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax

from idc_core.inspection.solver import YES_NO, Problem, Scale, Stop, minimise, of_classes

ROWS, UNITS, L2 = 600, 7, 0.01


@pytest.fixture(scope="module")
def units():
    """Units of very different sizes, many of which nearly follow each other."""
    random = np.random.default_rng(7)
    hidden = random.normal(size=(ROWS, 4))
    mixed = hidden @ random.normal(size=(4, UNITS)) + 0.05 * random.normal(size=(ROWS, UNITS))
    return mixed * 10.0 ** random.uniform(-3, 3, UNITS) + random.normal(size=UNITS)


def answers(units, classes):
    """One question of a single row, one that a line answers, one of chance; all of `classes` answers."""
    random = np.random.default_rng(8)
    rare = np.zeros(ROWS)
    rare[:classes] = np.arange(classes)
    split = np.digitize(units[:, 0], np.quantile(units[:, 0], np.arange(1, classes) / classes))
    return np.stack([rare, split, random.integers(0, classes, ROWS)], 1).astype(float)


def loss_of(problem, weights, standardised, wanted, classes):
    """The loss from its definition, float64."""
    columns = weights.reshape(-1, UNITS + 1)
    scores = standardised @ columns[:, :-1].T + columns[:, -1]
    if classes == 2:
        scores = np.concatenate([np.zeros((ROWS, 1)), scores], 1)
    told = log_softmax(scores, 1)[np.arange(ROWS), wanted[:, problem].astype(int)]
    return -told.mean() + L2 / 2 / ROWS * (columns[:, :-1] ** 2).sum()


@pytest.fixture(scope="module", params=[2, 3])
def known(request, units):
    """The number of classes, its questions, and what SciPy gets the loss of each of them down to."""
    classes = request.param
    wanted, standardised = answers(units, classes), (units - units.mean(0)) / units.std(0)
    columns = (YES_NO if classes == 2 else of_classes(classes)).columns

    def least(each):
        return minimize(
            lambda weights: loss_of(each, weights, standardised, wanted, classes),
            np.zeros(columns * (UNITS + 1)),
            method="BFGS",
            options={"gtol": 1e-6, "maxiter": 2000},
        ).fun

    return classes, wanted, [least(each) for each in range(3)]


@pytest.mark.parametrize("far", [pytest.param(0.0, marks=pytest.mark.slow), 30.0])
def test_minimum_is_scipys(units, known, far):
    classes, wanted, least = known
    pieces = [
        (torch.from_numpy(units[at : at + 170]), torch.from_numpy(wanted[at : at + 170])) for at in range(0, ROWS, 170)
    ]
    scale = Scale.of(lambda: pieces)
    loss = YES_NO if classes == 2 else of_classes(classes)
    columns = loss.columns
    problem = Problem(lambda: pieces, torch.arange(3), scale, loss, L2, 0.0, double=True)
    random = torch.Generator().manual_seed(9)
    start = far * torch.randn(3, columns, UNITS + 1, dtype=torch.float64, generator=random)

    found = minimise(problem, start, Stop(1e-9, 20_000))

    assert problem.slope(found, torch.arange(3)).abs().max() < 1e-9
    standardised = (units - units.mean(0)) / units.std(0)
    for each in range(3):
        ours = loss_of(each, found[each].numpy(), standardised, wanted, classes)
        assert ours <= least[each] + 1e-9


def test_slope_is_that_of_the_loss(units):
    wanted = answers(units, 4)
    pieces = [(torch.from_numpy(units), torch.from_numpy(wanted))]
    problem = Problem(lambda: pieces, torch.arange(3), Scale.of(lambda: pieces), of_classes(4), L2, 0.0, double=True)
    weights = torch.randn(1, 4, UNITS + 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    slope = problem.slope(weights, torch.tensor([1]))[0].numpy().ravel()
    standardised = (units - units.mean(0)) / units.std(0)
    flat = weights[0].numpy().ravel()
    for at in range(0, flat.size, 5):
        aside = np.eye(flat.size)[at] * 1e-6
        up, down = (loss_of(1, flat + sign * aside, standardised, wanted, 4) for sign in (1, -1))
        assert slope[at] == pytest.approx((up - down) / 2e-6, abs=1e-7)
