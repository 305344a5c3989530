"""Relevance is neither lost nor made: every layer through which all of it passes sums to the start score."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from tests.lrp.cases import CASES
from tests.lrp.networks import ROWS, Written, settle, total

RULES = {
    "z": {"rule": "z"},
    "epsilon": {"rule": "epsilon"},
    "big epsilon": {"rule": "epsilon", "epsilon": 0.1},
    "gamma": {"rule": "gamma"},
    "alpha-beta": {"rule": "alpha-beta", "alpha": 2.0},
    "alpha 1": {"rule": "alpha-beta", "alpha": 1.0},
    "composite": {"rule": "composite", "epsilon": 0.1, "gamma": 0.5},
    "flat and plus": {"rule": "epsilon-plus-flat"},
    "squares": {"rule": {"first": "w2", "last": "flat", "other": "gamma", "norm": "pass"}},
}
SLOW = ("big epsilon", "gamma", "flat and plus", "squares")
"""Rules that the others are made of."""
RARE = ("z", "epsilon", "alpha 1")
"""Rules that are in the other tests with another setting: without or with a smaller epsilon, without negative parts."""


def some(rules, slow, rare=()):
    """Rules as parameters, some of which are slow or rare tests."""
    marks = {**dict.fromkeys(rare, pytest.mark.rare), **dict.fromkeys(slow, pytest.mark.slow)}
    return [pytest.param(rule, marks=marks.get(rule, ())) for rule in rules]


def start_scores(network, inputs):
    with torch.no_grad():
        return network(inputs.clone()).amax(1)


def check(network, inputs, layers, tolerance=1e-9, **settings):
    start = start_scores(network, inputs)
    found = relevance(network, inputs, layers, **settings)
    assert list(found) == list(layers)
    for name, values in found.items():
        assert np.isfinite(values).all()
        np.testing.assert_allclose(total(values), start, rtol=tolerance, err_msg=name)
    return found


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rule", some(RULES, SLOW, RARE))
@pytest.mark.parametrize("name", CASES)
def test_biases_redistributed(name, rule):
    case = CASES[name]
    check(case.network(), case.inputs, case.layers, bias="redistribute", **RULES[rule])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rule", some(["z", "epsilon", "gamma", "alpha-beta"], ["alpha-beta"], ["z", "gamma"]))
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.free])
def test_no_biases(name, rule):
    case = CASES[name]
    check(case.network(bias=False), case.inputs, case.layers, 1e-7, bias="absorb", rule=rule, epsilon=1e-12)


@pytest.mark.parametrize("rule", ["epsilon", "gamma", "alpha-beta", "composite"])
@pytest.mark.parametrize("name", ["convolutional block", "nested containers", "lstm both ways", "text convolution"])
def test_single_precision(name, rule):
    case = CASES[name]
    inputs = case.inputs.float() if case.inputs.is_floating_point() else case.inputs
    check(case.network().float(), inputs, case.layers, 1e-4, bias="redistribute", rule=rule)


def attention_by_hand(net, x, sinks, mask, shift):
    """Attention in steps: a mask of the causal order and of padding, sinks beside the keys, the maximum subtracted."""
    x = net.first(x.unflatten(1, (5, 6)))
    queries, keys, values = (
        one.unflatten(2, (2, 3)).transpose(1, 2) for one in (net.queries(x), net.keys(x), net.values(x))
    )
    weights = queries @ keys.transpose(2, 3) * 0.5
    if mask:
        hidden = torch.full((len(x), 1, 5, 5), torch.finfo(x.dtype).min, dtype=x.dtype).triu(1)
        hidden[::2, ..., -1] = torch.finfo(x.dtype).min
        weights = weights + hidden
    if sinks:
        weights = torch.cat([weights, net.sinks.weight[:, :1, None].expand(len(x), 2, 5, 1)], -1)
    if shift:
        weights = weights - weights.max(-1, keepdim=True).values
    weights = weights.softmax(-1)[..., :5]
    return net.out((weights @ values).transpose(1, 2).flatten(2).mean(1))


@pytest.mark.usefixtures("kept_together")
@pytest.mark.parametrize("rule", ["z", "epsilon"])
@pytest.mark.parametrize("form", list(itertools.product((False, True), repeat=3)), ids=str)
def test_attention_in_steps_with_sinks_masks_and_the_maximum_subtracted(form, rule):
    parts = {name: nn.Linear(6, 6) for name in ("first", "queries", "keys", "values")}
    network = settle(
        Written(lambda net, x: attention_by_hand(net, x, *form), **parts, sinks=nn.Linear(2, 2), out=nn.Linear(6, 3))
    )
    inputs = torch.randn(4, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    check(network, inputs, ["first"], 1e-9, bias="redistribute", rule=rule)
    check(network.float(), inputs.float(), ["first"], 1e-3, bias="redistribute", rule=rule)


CANCELLED = {
    "detached": lambda x: x - x.detach().amax(-1, keepdim=True),
    "number": lambda x: x.clamp(max=1.0) - 1.0,
    "added": lambda x: torch.add(x.clamp(max=1.0), -1.0),
    "tensor": lambda x: x.clamp(max=1.0) - torch.ones(6, dtype=x.dtype),
}
"""What takes constants from values that are often the same."""


@pytest.mark.parametrize("rule", ["z", "epsilon", "gamma", "alpha-beta"])
@pytest.mark.parametrize("name", CANCELLED)
def test_a_constant_that_cancels_a_value_before_a_softmax(name, rule):
    network = settle(
        Written(lambda net, x: net.out(CANCELLED[name](net.a(x)).softmax(-1)), a=nn.Linear(6, 6), out=nn.Linear(6, 3))
    )
    check(network, 3 * ROWS, ["a"], 1e-9, bias="redistribute", rule=rule)
    check(network.float(), 3 * ROWS.float(), ["a"], 1e-3, bias="redistribute", rule=rule)


@pytest.mark.parametrize("rule", ["z", "epsilon", "gamma", "alpha-beta"])
def test_what_rounding_leaves_of_a_sum_is_not_shared_out(rule):
    def forward(net, x):
        h = net.a(x)
        return net.out(torch.cat([h, (h - h.mean(-1, keepdim=True)).mean(-1, keepdim=True)], -1))

    network = settle(Written(forward, a=nn.Linear(6, 6), out=nn.Linear(7, 3)))
    check(network, ROWS, ["a"], 1e-9, bias="redistribute", rule=rule)
    found = relevance(network, ROWS, ["a"], bias="redistribute", rule=rule)["a"]
    assert np.abs(found).max() < 100


@pytest.mark.parametrize("target", [1, np.array([2, 0, 1, 0])])
def test_another_class_than_the_predicted_one(target):
    case = CASES["convolutional block"]
    network = case.network()
    with torch.no_grad():
        start = network(case.inputs)[range(4), target]
    found = relevance(network, case.inputs, case.layers, bias="redistribute", target=target)
    for values in found.values():
        np.testing.assert_allclose(total(values), start, rtol=1e-9)


def test_branches_share_the_start_score():
    network = settle(
        Written(
            lambda net, x: net.out(F.relu(net.a(x)) + net.c(F.relu(net.b(x)))),
            a=nn.Linear(6, 5),
            b=nn.Linear(6, 4),
            c=nn.Linear(4, 5),
            out=nn.Linear(5, 3),
        )
    )
    found = relevance(network, ROWS, ["a", "b", "c", "out"], bias="redistribute")
    for one, other in (("a", "b"), ("a", "c")):
        np.testing.assert_allclose(total(found[one]) + total(found[other]), total(found["out"]), rtol=1e-9)
    assert total(found["a"]).abs().min() > 0 < total(found["b"]).abs().min()


def test_a_layer_used_twice_in_a_row_carries_the_relevance_twice():
    network = settle(
        Written(lambda net, x: net.out(net.a(net.a(x).tanh()).tanh()), a=nn.Linear(6, 6), out=nn.Linear(6, 3))
    )
    found = relevance(network, ROWS, ["input", "a", "out"], bias="redistribute")
    np.testing.assert_allclose(total(found["a"]), 2 * total(found["out"]), rtol=1e-9)
    np.testing.assert_allclose(total(found["input"]), total(found["out"]), rtol=1e-9)


def test_a_bias_that_absorbs_keeps_its_share():
    network = settle(nn.Sequential(nn.Linear(6, 3)))
    with torch.no_grad():
        scores, predicted = network(ROWS).max(1)
    found = relevance(network, ROWS, ["input"], "z", bias="absorb")["input"]
    np.testing.assert_allclose(total(found), scores - network[0].bias[predicted].detach(), rtol=1e-9)
