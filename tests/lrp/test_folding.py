"""Relevance does not depend on whether a map of the channels is folded into the linear operation beside it."""

import copy
import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from idc_core.lrp.rules import RULES
from tests.lrp.networks import IMAGES, ROWS, SERIES, VOLUMES, Written, settle

BIASES = ("absorb", "redistribute")


def equal(written, folded, inputs, layers=("input",), **settings):
    """Hold relevance of a network to that of its folded form, on layers that both have."""
    for rule, bias in itertools.product(RULES, BIASES):
        found, expected = (
            relevance(network, inputs, ["input", *layers], rule, bias=bias, **settings) for network in (written, folded)
        )
        for layer in expected:
            scale = np.abs(expected[layer]).max()
            assert scale > 1e-9, layer
            np.testing.assert_allclose(
                found[layer], expected[layer], rtol=1e-9, atol=1e-9 * scale, err_msg=f"{rule} {bias} {layer}"
            )


def norm(channels, dimensions=2, **options):
    return getattr(nn, f"BatchNorm{dimensions}d")(channels, **options)


def scale_and_shift(n):
    scale = (torch.ones_like(n.running_var) if n.weight is None else n.weight) / torch.sqrt(n.running_var + n.eps)
    return scale, (0 if n.bias is None else n.bias) - n.running_mean * scale


def weights(op):
    """Yield the weights between each output channel and each input channel that it sees, as views."""
    groups, weight = getattr(op, "groups", 1), op.weight.data
    transposed = "Transpose" in type(op).__name__
    inputs, outputs = (
        (len(weight) // groups, weight.shape[1]) if transposed else (weight.shape[1], len(weight) // groups)
    )
    for g, i, o in itertools.product(range(groups), range(inputs), range(outputs)):
        view = weight[g * inputs + i, o] if transposed else weight[g * outputs + o, i]
        yield g * inputs + i, g * outputs + o, view


@torch.no_grad()
def folded_behind(op, n):
    """Return a linear operation that does what it and the normalisation behind it did."""
    scale, shift = scale_and_shift(n)
    whole = copy.deepcopy(op)
    for _, o, view in weights(whole):
        view.mul_(scale[o])
    whole.bias = nn.Parameter((0 if op.bias is None else op.bias) * scale + shift)
    return whole


@torch.no_grad()
def folded_before(n, op):
    """Return a linear operation that does what the normalisation before it and it did."""
    scale, shift = scale_and_shift(n)
    whole = copy.deepcopy(op)
    bias = torch.zeros(len(op.weight), dtype=torch.float64) if op.bias is None else op.bias.clone()
    for i, o, view in weights(whole):
        bias[o] += shift[i] * view.sum()
        view.mul_(scale[i])
    whole.bias = nn.Parameter(bias)
    return whole


def by_function(n, x):
    return F.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias, eps=n.eps)


BEHIND = {
    "conv1d": (lambda: nn.Conv1d(2, 4, 3, padding=1), SERIES, 1),
    "conv2d": (lambda: nn.Conv2d(2, 4, 3, padding=1), IMAGES, 2),
    "conv2d without bias": (lambda: nn.Conv2d(2, 4, 3, bias=False), IMAGES, 2),
    "conv2d grouped": (lambda: nn.Conv2d(2, 4, 3, 2, 1, groups=2), IMAGES, 2),
    "conv2d of one channel": (lambda: nn.Conv2d(1, 4, 3, padding=1), IMAGES[:, :1], 2),
    "conv3d": (lambda: nn.Conv3d(2, 4, 2), VOLUMES, 3),
    "conv_transpose1d": (lambda: nn.ConvTranspose1d(2, 4, 3, 2), SERIES, 1),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(2, 4, 3, 2, 1, 1, groups=2), IMAGES, 2),
    "linear": (lambda: nn.Linear(6, 4), ROWS, 1),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("affine", "run"), [(True, nn.Module.__call__), (False, by_function)], ids=["module", "function"]
)
@pytest.mark.parametrize("name", BEHIND)
def test_batch_norm_behind(name, affine, run):
    build, inputs, dimensions = BEHIND[name]
    parts = settle(nn.ModuleList([build(), norm(4, dimensions, affine=affine)]))
    whole = folded_behind(parts[0], parts[1])
    with torch.no_grad():
        features = parts[0](inputs).flatten(1).shape[1]
    last = settle(nn.Linear(features, 3), 2)
    modules = {"a": parts[0], "n": parts[1], "out": last}
    written = Written(lambda net, x: net.out(F.relu(run(net.n, net.a(x))).flatten(1)), **modules)
    folded = Written(lambda net, x: net.out(F.relu(net.a(x)).flatten(1)), a=whole, out=last)
    equal(written, folded, inputs, ["a", "out"], epsilon=0.05)


BEFORE = {
    "conv1d": (lambda: nn.Conv1d(2, 4, 3), SERIES, 1),
    "conv2d": (lambda: nn.Conv2d(2, 4, 3, bias=False), IMAGES, 2),
    "conv2d grouped": (lambda: nn.Conv2d(2, 4, 3, 2, groups=2), IMAGES, 2),
    "conv2d valid": (lambda: nn.Conv2d(2, 4, 2, padding="valid", dilation=2), IMAGES, 2),
    "conv2d of points": (lambda: nn.Conv2d(2, 4, 1, padding="same"), IMAGES, 2),
    "linear": (lambda: nn.Linear(6, 4), ROWS, 1),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BEFORE)
def test_batch_norm_before(name):
    build, inputs, dimensions = BEFORE[name]
    n, op = settle(nn.ModuleList([norm(inputs.shape[1], dimensions), build()]))
    with torch.no_grad():
        features = op(inputs).flatten(1).shape[1]
    modules = {"n": n, "a": op, "out": settle(nn.Linear(features, 3), 2)}
    folded = Written(lambda net, x: net.out(F.relu(net.a(x)).flatten(1)), a=folded_before(n, op), out=modules["out"])
    for run in (lambda net, x: net.n(x), lambda net, x: by_function(net.n, x)):
        written = Written(lambda net, x, run=run: net.out(F.relu(net.a(run(net, x))).flatten(1)), **modules)
        equal(written, folded, inputs, ["a", "out"], epsilon=0.05)
    for rule in RULES:  # the map passes on what the operation gave, whether the way back ends there or goes on
        found = relevance(written, inputs, ["input"], rule)["input"]
        behind = Written(lambda net, x: net.out(F.relu(net.a(net.n(x))).flatten(1)), **modules)
        for layers in (["input", "n"], ["n"]):
            passed = relevance(behind, inputs, layers, rule)["n"]
            np.testing.assert_allclose(passed, found, rtol=1e-9, atol=1e-12 * np.abs(found).max())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("layers", [["a"], ["n"], ["a", "n"], ["input", "a", "n"]])
@pytest.mark.parametrize("rule", RULES)
def test_a_layer_has_the_same_relevance_whatever_else_is_watched(layers, rule):
    net = settle(
        Written(
            lambda net, x: net.out(F.relu(net.n(net.a(x))).flatten(1)),
            a=nn.Conv2d(2, 3, 3),
            n=norm(3),
            out=nn.Linear(75, 3),
        )
    )
    found = relevance(net, IMAGES, layers, rule)
    expected = relevance(net, IMAGES, ["input", "n", "out"], rule)["n"]
    for layer in set(layers) - {"input"}:
        np.testing.assert_allclose(found[layer], expected, rtol=1e-12, atol=0)


def test_a_convolution_used_with_and_without_its_normalisation():
    parts = {"a": nn.Conv2d(2, 3, 3), "n": norm(3), "m": norm(3), "out": nn.Linear(75, 3)}
    net = settle(Written(lambda net, x: 0, **parts))

    def written(net, x):
        a = net.a(x)
        return net.out((F.relu(net.n(a)) + torch.tanh(a) + torch.sigmoid(net.m(a))).flatten(1))

    def unfolded(net, x):
        return net.out((F.relu(net.b(x)) + torch.tanh(net.a(x)) + torch.sigmoid(net.c(x))).flatten(1))

    folded = Written(unfolded, a=net.a, b=folded_behind(net.a, net.n), c=folded_behind(net.a, net.m), out=net.out)
    net.steps = written
    equal(net, folded, IMAGES, ["out"])


class FrozenNorm(nn.Module):
    """Scale and shift by buffers, as torchvision's FrozenBatchNorm2d."""

    def __init__(self, n):
        super().__init__()
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, getattr(n, name).detach().clone())
        self.eps = n.eps

    def forward(self, x):
        w, b, mean, var = (getattr(self, name).reshape(1, -1, 1, 1) for name in self._buffers)
        scale = w * (var + self.eps).rsqrt()
        return x * scale + (b - mean * scale)


BY_HAND = {
    "frozen": lambda net, x: net.f(x),
    "in two layers": lambda net, x: (
        (x - net.n.running_mean.view(-1, 1, 1))
        / torch.sqrt(net.n.running_var.view(-1, 1, 1) + net.n.eps)
        * net.n.weight.view(-1, 1, 1)
        + net.n.bias.view(-1, 1, 1)
    ),
    "in place": lambda net, x: net.n(x.mul_(2.0)).add_(0.0).div_(1.0),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("name", BY_HAND)
def test_scale_and_shift_by_hand(name, count):
    op, n = settle(nn.ModuleList([nn.Conv2d(2, 4, 3, padding=1), norm(4)]))
    out = settle(nn.Linear(196, 3), 2)
    run = BY_HAND[name]
    behind = Written(lambda net, x: net.out(F.relu(run(net, net.a(x))).flatten(1)), a=op, n=n, f=FrozenNorm(n), out=out)
    doubled = copy.deepcopy(op)
    for parameter in doubled.parameters():
        parameter.data.mul_(2.0 if name == "in place" else 1.0)
    folded = Written(lambda net, x: net.out(F.relu(net.a(x)).flatten(1)), a=folded_behind(doubled, n), out=out)
    equal(behind, folded, IMAGES[:count], ["a", "out"])
    n, op = settle(nn.ModuleList([norm(2), nn.Conv2d(2, 4, 3)]))
    out = settle(nn.Linear(100, 3), 2)
    before = Written(lambda net, x: net.out(F.relu(net.a(run(net, x))).flatten(1)), a=op, n=n, f=FrozenNorm(n), out=out)
    doubled = copy.deepcopy(n)
    doubled.running_mean.div_(2.0 if name == "in place" else 1.0)
    if name == "in place":
        doubled.running_var.add_(n.eps).div_(4.0).sub_(n.eps)
    equal(before, Written(folded.steps, a=folded_before(doubled, op), out=out), IMAGES[:count], ["a", "out"])


@pytest.mark.parametrize("count", [1, 4])
def test_a_factor_of_the_input_is_no_map(count):
    """A gate is the same along all axes but the channels in a batch of one; it must not be taken for a constant."""
    parts = {"a": nn.Conv2d(2, 3, 3), "out": nn.Linear(75, 3)}

    def gated(net, x):
        return net.out(F.relu(net.a(x) * x.mean((1, 2, 3), keepdim=True)).flatten(1))

    net = settle(Written(gated, **parts))
    for rule in RULES:
        whole = relevance(net, IMAGES, ["a"], rule, batch_size=4)["a"][:count]
        np.testing.assert_allclose(relevance(net, IMAGES[:count], ["a"], rule, batch_size=1)["a"], whole, rtol=1e-9)


class Dense(nn.Module):
    """A layer of a DenseNet: normalisations first."""

    def __init__(self, given, new):
        super().__init__()
        self.n1, self.c1 = norm(given), nn.Conv2d(given, 4, 1, bias=False)
        self.n2, self.c2 = norm(4), nn.Conv2d(4, new, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cat([x, self.c2(F.relu(self.n2(self.c1(F.relu(self.n1(x))))))], 1)


class Block(nn.Module):
    """A residual block, with a projection."""

    def __init__(self, given, new):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(given, new, 3, 1, 1, bias=False), norm(new)
        self.c2, self.n2 = nn.Conv2d(new, new, 3, 1, 1, bias=False), norm(new)
        self.c3, self.n3 = nn.Conv2d(given, new, 1, bias=False), norm(new)

    def forward(self, x):
        return F.relu(self.n2(self.c2(F.relu(self.n1(self.c1(x))))) + self.n3(self.c3(x)))


class Bottleneck(nn.Module):
    """An inverted residual of a MobileNet: the last normalisation is directly before the next block's convolution."""

    def __init__(self, given, new):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(given, 6, 1, bias=False), norm(6)
        self.c2, self.n2 = nn.Conv2d(6, 6, 3, 1, 1, groups=6, bias=False), norm(6)
        self.c3, self.n3 = nn.Conv2d(6, new, 1, bias=False), norm(new)

    def forward(self, x):
        return self.n3(self.c3(F.relu6(self.n2(self.c2(F.relu6(self.n1(self.c1(x))))))))


@pytest.mark.slow
@pytest.mark.parametrize("block", [Block, Dense, Bottleneck])
def test_whole_networks(block):
    widths = (3, 5, 7) if block is Dense else (3, 2, 4)

    def build():
        stem = (nn.Conv2d(2, 3, 3, bias=False), norm(3), nn.ReLU())
        blocks = [block(given, 2 if block is Dense else new) for given, new in itertools.pairwise(widths)]
        return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 3))

    written, folded = settle(build(), 2), settle(build(), 2)
    for parent in folded.modules():
        children = list(parent.named_children())
        for (before, op), (name, child) in itertools.pairwise(children):
            if isinstance(op, nn.Conv2d) and isinstance(child, nn.BatchNorm2d):
                setattr(parent, before, folded_behind(op, child))
                setattr(parent, name, nn.Identity())
    left = sum(isinstance(module, nn.BatchNorm2d) for module in folded.modules())
    assert left == (2 if block is Dense else 0)
    equal(written, folded, IMAGES, ["3", "4", "5", "7"])


@pytest.mark.parametrize("rule", ["gamma", "alpha-beta", "composite"])
def test_what_cannot_be_folded_passes_relevance_on(rule):
    padded = {"n": norm(2), "a": nn.Conv2d(2, 3, 3, padding=1), "out": nn.Linear(147, 3)}
    net = settle(Written(lambda net, x: net.out(F.relu(net.a(net.n(torch.tanh(x)))).flatten(1)), **padded))
    for bias in BIASES:
        found = relevance(net, IMAGES, ["input", "n"], rule, bias=bias)
        np.testing.assert_array_equal(found["input"], found["n"])
        rest = Written(lambda net, x: net.out(F.relu(net.a(x)).flatten(1)), a=net.a, out=net.out)
        behind = relevance(rest, net.n(torch.tanh(IMAGES)).detach(), ["input"], rule, bias=bias)["input"]
        np.testing.assert_allclose(found["input"], behind, rtol=1e-9, atol=1e-12)


PRODUCTS = {
    "matmul": lambda x, w, b: x @ w + b,
    "mm": lambda x, w, b: b + torch.mm(x, w),
    "addmm": lambda x, w, b: torch.addmm(b, x, w) * 1.0,
    "addmm scaled": lambda x, w, b: torch.addmm(b, x, w, beta=2.0) - b,
    "from the left": lambda x, w, b: (w.T @ x.T).T + b,
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_matrices(name):
    """A bias added by hand is the operation's own, where the product is one with channels at the end."""
    out = settle(nn.Linear(5, 3), 2)
    op = settle(nn.Linear(6, 5))
    holder = nn.ParameterDict({"w": op.weight.T.clone(), "b": op.bias.clone()})
    written = Written(lambda net, x: net.out(F.relu(PRODUCTS[name](x, net.p["w"], net.p["b"]))), p=holder, out=out)
    folded = Written(lambda net, x: net.out(F.relu(net.a(x))), a=op, out=out)
    if name in ("matmul", "mm", "addmm"):
        equal(written, folded, ROWS, ["out"])
    else:
        for rule in ("z", "gamma"):
            found = relevance(written, ROWS, ["input"], rule, bias="redistribute")["input"]
            np.testing.assert_allclose(found.sum(1), written(ROWS).amax(1).detach(), rtol=1e-9)
