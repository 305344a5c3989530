"""Relevance passes to what wins, and equal winners share it: extremes, bounds, medians, the smooth maximum."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from idc_core import relevance
from tests.lrp.networks import ROWS, Written, numbers, settle

TIED = numbers(3, 4, 5).round() + 3


def found_by(function, x=TIED, **settings):
    """Return the relevance of x where every number of the function's result is a part of the score, and that result."""
    network = Written(lambda net, x: function(x).flatten(1).sum(1, keepdim=True))
    return relevance(network, x, ["input"], "z", target=0, **settings)["input"], function(x)


def shared(x, value, axes):
    """Share values (axes kept) equally among the numbers of x along axes that are equal to them, one by one."""
    expected = np.zeros(x.shape)
    for place in np.ndindex(*value.shape):
        window = tuple(slice(None) if axis in axes else place[axis] for axis in range(x.dim()))
        winners = (x[window] == value[place]).numpy()
        expected[window] += winners * value[place].item() / winners.sum()
    return expected


ALONG = {
    "amax": (lambda x: x.amax((1, 2), keepdim=True), (1, 2)),
    "amax of one": (lambda x: x.amax(2, True), (2,)),
    "amin": (lambda x: torch.amin(x, (1, -1), keepdim=True), (1, 2)),
    "max": (lambda x: x.max(1, keepdim=True)[0], (1,)),
    "max with keywords": (lambda x: torch.max(x, dim=-1, keepdim=True).values, (2,)),
    "min": (lambda x: torch.min(x, 2, True)[0], (2,)),
    "median": (lambda x: x.median(2, keepdim=True)[0], (2,)),
    "median of an even number": (lambda x: x.median(1, True).values, (1,)),
    "nanmedian": (lambda x: x.nanmedian(2, keepdim=True)[0], (2,)),
    "kthvalue": (lambda x: x.kthvalue(2, 1, keepdim=True)[0], (1,)),
    "kthvalue of the last axis": (lambda x: torch.kthvalue(x, 3, keepdim=True).values, (2,)),
    "mode": (lambda x: x.mode(keepdim=True)[0], (2,)),
}


@pytest.mark.parametrize("name", ALONG)
def test_along_axes(name):
    function, axes = ALONG[name]
    found, value = found_by(function)
    np.testing.assert_allclose(found, shared(TIED, value, axes), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_of_all_numbers_of_an_input(name):
    found, _ = found_by(lambda x: getattr(x, name)().reshape(1, 1), TIED[:1])
    np.testing.assert_allclose(found, shared(TIED[:1], getattr(TIED[:1], name)().reshape(1, 1, 1), (0, 1, 2)))


@pytest.mark.parametrize("name", ["median", "nanmedian", "mode", "kthvalue", "max", "min"])
def test_places_lead_to_the_winners(name):
    # Used as an index, they take the numbers that have won.
    arguments = (2, 1) if name == "kthvalue" else (1,)

    def function(x):
        return x.gather(1, getattr(torch, name)(x, *arguments, keepdim=True)[1])

    found, value = found_by(function)
    np.testing.assert_allclose(found.sum((1, 2)), value.sum((1, 2)), rtol=1e-12)
    np.testing.assert_array_equal(value, getattr(torch, name)(TIED, *arguments, keepdim=True)[0])


PAIRS = {
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "max": torch.max,
    "min": lambda x, y: torch.min(x, other=y),
}


@pytest.mark.parametrize("name", PAIRS)
def test_of_two_values(name):
    function = PAIRS[name]
    found, z = found_by(lambda x: function(x[:, :2], x[:, 2:]))
    both = torch.stack([TIED[:, :2], TIED[:, 2:]])
    expected = shared(both, z.unsqueeze(0), (0,))
    np.testing.assert_allclose(found, np.concatenate(list(expected), 1), rtol=1e-12)
    found, z = found_by(lambda x: function(x[:, :1], x))
    np.testing.assert_allclose(found.sum((1, 2)), z.sum((1, 2)), rtol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_of_two_layers_of_scores_each(name):
    # Of (n, features) the second argument is no axis of classes.
    net = settle(Written(lambda net, x: net.out(PAIRS[name](net.a(x), net.b(x))), **{
        layer: nn.Linear(6, 6) for layer in "ab"}, out=nn.Linear(6, 3)))  # fmt: skip
    found = relevance(net, ROWS, ["a", "b", "out"], "z", bias="redistribute")
    np.testing.assert_allclose(found["a"].sum(1) + found["b"].sum(1), found["out"].sum(1), rtol=1e-6)
    won = (PAIRS[name](net.a(ROWS), net.b(ROWS)) == net.a(ROWS)).numpy()
    assert 0 < won.sum() < won.size
    assert not found["a"][~won].any()
    assert not found["b"][won].any()


def test_a_constant_that_wins_is_a_bound():
    # As of a clamp, what the bound changes hands its relevance on.
    for function in (lambda x: torch.maximum(x, torch.tensor(3.5)), lambda x: torch.max(torch.full_like(x, 3.5), x)):
        found, z = found_by(function)
        np.testing.assert_allclose(found, z)
        np.testing.assert_allclose(found, found_by(lambda x: x.clamp(min=3.5))[0])


def test_bounds_that_depend_on_the_input_win_too():
    low, high = 0.5 * TIED[:, 1:2], TIED[:, 2:3]
    found, z = found_by(lambda x: torch.clamp(x, 0.5 * x[:, 1:2], x[:, 2:3]))
    np.testing.assert_allclose(found.sum((1, 2)), z.sum((1, 2)), rtol=1e-12)
    expected, _ = found_by(lambda x: torch.minimum(torch.maximum(x, 0.5 * x[:, 1:2]), x[:, 2:3]))
    np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(z, torch.minimum(torch.maximum(TIED, low), high))
    found, _ = found_by(lambda x: torch.full_like(x, 2.5).clamp(max=x))
    np.testing.assert_allclose(found, torch.clamp(TIED, max=2.5))


def test_log_sum_exp_divides_by_softmax():
    found, z = found_by(lambda x: x.logsumexp((1, 2), keepdim=True))
    np.testing.assert_allclose(found, torch.softmax(TIED.flatten(1), 1).reshape(TIED.shape) * z, rtol=1e-12)
    sharp, z = found_by(lambda x: (1e4 * x).logsumexp(2, keepdim=True) / 1e4)
    np.testing.assert_allclose(sharp, shared(TIED, TIED.amax(2, keepdim=True), (2,)), rtol=1e-3, atol=1e-3)
    masked = TIED.clone()
    masked[:, 0] = -math.inf
    found, z = found_by(lambda x: x.logsumexp(1), masked)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum((1, 2)), z.sum(1), rtol=1e-12)


def test_of_two_smoothly():
    found, z = found_by(lambda x: torch.logaddexp(x[:, :2], x[:, 2:]))
    weights = torch.softmax(torch.stack([TIED[:, :2], TIED[:, 2:]]), 0)
    np.testing.assert_allclose(found, torch.cat(list(weights * z), 1), rtol=1e-12)
