"""What no input changes is a constant to relevance: what a pass before has kept, and bounds."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from idc_core.tracing.trace import collect
from tests.lrp.networks import ROWS, Written, numbers, settle


class Keeping(nn.Module):
    """Looks a bias per feature up once and keeps it, as LeViT, TinyViT and EfficientFormer keep those of attention."""

    def __init__(self, use):
        super().__init__()
        self.a, self.out = nn.Linear(6, 6), nn.Linear(6, 3)
        self.biases = nn.Parameter(numbers(9))
        self.use, self.kept = use, {}

    def forward(self, x):
        if "bias" not in self.kept:
            self.kept["bias"] = self.biases[torch.arange(6)]
        return self.out(torch.relu(self.use(self.a(x), self.kept["bias"])))


USES = {
    "added": lambda x, kept: x + kept,
    "multiplied": lambda x, kept: x * kept,
    "a bound": torch.maximum,
    "a weight": lambda x, kept: F.linear(x, torch.diag(kept)),
    "written into": lambda x, kept: torch.cat([kept[None, :3].expand(len(x), 3), x[:, 3:]], 1),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("before", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
def test_what_a_pass_before_has_kept_is_a_constant(use, before, bias):
    network = settle(Keeping(USES[use]))
    expected = relevance(copy.deepcopy(network), ROWS, ["input", "a"], bias=bias)
    with before():
        scores = network(ROWS)
        if before is torch.enable_grad:
            scores.sum().backward()  # its graph is gone, which nothing goes back through
    kept = network.kept["bias"]
    assert kept.requires_grad == (before is torch.enable_grad)
    for _ in range(2):
        found = relevance(network, ROWS, ["input", "a"], bias=bias)
        for layer, values in expected.items():
            np.testing.assert_array_equal(found[layer], values)
    assert network.kept["bias"] is kept
    np.testing.assert_allclose(collect(network, ROWS, ["a"]).scores, scores.detach(), rtol=1e-6)


def test_a_bound_by_a_constant_is_an_activation_function():
    torch.manual_seed(0)
    layers = {"a": nn.Linear(6, 8, False), "b": nn.Linear(8, 8, False), "out": nn.Linear(8, 3, False)}
    zero = torch.zeros(8, dtype=torch.float64)
    bounds = (
        lambda x: torch.maximum(x, zero),
        lambda x: torch.max(zero.new_zeros(()), x),
        lambda x: -torch.minimum(-x, zero),
        lambda x: x.clamp_min(zero),
        lambda x: torch.fmax(x, nn.Parameter(zero)),
    )
    for bound in bounds:
        network = settle(Written(lambda net, x, bound=bound: net.out(bound(net.b(bound(net.a(x))))), **layers))
        x = ROWS.clone().requires_grad_()
        scores = network(x)
        (gradient,) = torch.autograd.grad(scores[:, 1].sum(), x)
        found = relevance(network, ROWS, ["input"], "z", target=1)["input"]
        np.testing.assert_allclose(found, gradient * ROWS, rtol=1e-9, atol=1e-12)


def test_a_sparse_matrix_is_as_the_dense_one():
    weights = torch.triu(numbers(4, 4))  # of a graph whose nodes are the inputs
    mixed = {
        kind: settle(
            Written(lambda net, x, by=by: net.out((by @ net.a(x).t()).t()), a=nn.Linear(6, 4), out=nn.Linear(4, 3))
        )
        for kind, by in (("dense", weights), ("sparse", weights.to_sparse()))
    }
    found, expected = (relevance(mixed[kind], ROWS, ["a"])["a"] for kind in ("sparse", "dense"))
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("scale", [lambda x: x * 0.5, lambda x: x / 127.5 - 1, lambda x: (1 / 255) * x])
@pytest.mark.parametrize("rule", ["epsilon", "gamma", "attnlrp"])
def test_constants_beside_whole_numbers_stay_as_they_are(scale, rule):
    class Scale(nn.Module):
        def forward(self, x):
            return scale(x)

    whole = torch.randint(0, 255, (5, 6), generator=torch.Generator().manual_seed(0))
    network = settle(nn.Sequential(Scale(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))).float()
    found = relevance(network, whole.to(torch.uint8), ["0"], rule=rule)["0"]
    expected = relevance(network, whole.float(), ["0"], rule=rule)["0"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_all_embeddings_of_the_words_are_the_input():
    ids = torch.randint(0, 9, (4, 5), generator=torch.Generator().manual_seed(0))
    both = settle(
        Written(
            lambda net, x: net.out(net.deep(x).mean(1)) + net.wide(x).mean(1),
            deep=nn.Embedding(9, 6),
            wide=nn.Embedding(9, 3),
            out=nn.Linear(6, 3),
        )
    )
    found = relevance(both, ids, ["input", "deep", "wide"])
    np.testing.assert_allclose(found["input"], found["deep"].sum(2) + found["wide"].sum(2))


@pytest.mark.filterwarnings("ignore:Implicit dimension")
def test_a_softmax_without_an_axis_is_over_the_classes():
    named, unnamed = (settle(nn.Sequential(nn.Linear(6, 3), nn.Softmax(dim))) for dim in (1, None))
    for rule in ("epsilon", "attnlrp"):
        found, expected = (relevance(net, ROWS, ["input"], rule=rule)["input"] for net in (unnamed, named))
        np.testing.assert_array_equal(found, expected)
