"""Operations that are linear in their input, against their weights written out; functions of a network's own."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from idc_core.errors import ModelError, UnsupportedOperationError
from tests.lrp.networks import ROWS, SEQUENCES, Written, numbers, settle
from tests.lrp.test_equation import share

WINDOW = torch.hann_window(6, dtype=torch.float64)
GRID = 1.5 * numbers(1, 4, 5, 2, seed=5).clamp(-1, 1)
A, B = numbers(4, 5, seed=1), numbers(5, 2, seed=2)
TURNS = torch.polar(torch.ones(3, 2), torch.arange(6.0).reshape(3, 2)).to(torch.complex128)


def parts(z):
    return torch.view_as_real(z.resolve_conj())


def turned(x):
    return torch.view_as_real(torch.view_as_complex(x.unflatten(2, (2, 2))) * TURNS).flatten(2)


def sampled(mode, padding, corners):
    return lambda x: F.grid_sample(x, GRID.expand(len(x), -1, -1, -1), mode, padding, corners)


# name: shape of an input, function; each is one linear operation, with what only moves numbers.
LINEAR = {
    "rfft": ((9,), lambda x: parts(torch.fft.rfft(x))),
    "fft of a size": ((6,), lambda x: torch.fft.fft(x, n=8, norm="ortho").imag[:, 1:4]),
    "fft2": ((1, 3, 4), lambda x: torch.fft.fft2(x).real),
    "stft": ((16,), lambda x: parts(x.stft(6, 4, window=WINDOW, center=False, return_complex=True))),
    "rotated positions": ((3, 4), turned),
    "grid, bicubic": ((2, 5, 5), sampled("bicubic", "border", False)),
    "grid, bicubic and corners": ((2, 5, 5), sampled("bicubic", "reflection", True)),
    "bicubic": ((2, 4, 5), lambda x: F.interpolate(x, size=(7, 3), mode="bicubic")),
    "bicubic, smoothed": ((1, 6, 6), lambda x: F.interpolate(x, scale_factor=0.5, mode="bicubic", antialias=True)),
    "differences": ((7,), torch.diff),
    "differences of differences": ((3, 6), lambda x: x.diff(n=2, dim=2)),
    "chain of matrices": ((4,), lambda x: torch.linalg.multi_dot([x, A, B])),
    "sum of products of three": ((3, 4), lambda x: torch.einsum("nij,jk,kl->nil", x, A, B)),
    "sum of products by axes": ((3, 4), lambda x: torch.einsum(x, [0, 1, 2], A, [2, 3], [0, 1, 3])),
    "cross product": ((4, 3), lambda x: torch.linalg.cross(x, numbers(1, 1, 3, seed=3).expand_as(x))),
}


def written_out(function, x):
    """Return weights (inputs, outputs) by unit vectors."""
    weights = torch.stack([function(unit.reshape(x.shape)).flatten() for unit in torch.eye(x.numel()).to(x)]).numpy()
    return np.where(np.abs(weights) > 1e-9 * np.abs(weights).max(), weights, 0)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("rule", ["z", "epsilon", "gamma", "alpha-beta"])
@pytest.mark.parametrize("name", LINEAR)
def test_shares_are_those_of_the_weights_written_out(name, rule, bias):
    shape, function = LINEAR[name]
    inputs = numbers(2, *shape, seed=11)
    w = written_out(function, inputs[:1])
    network = settle(Written(lambda net, x: net.out(function(x).flatten(1)), out=nn.Linear(w.shape[1], 3)))
    behind = Written(lambda net, x: net.out(x), out=network.out).eval()
    settings = {"epsilon": 0.05, "gamma": 0.4, "alpha": 3.0, "bias": bias}
    found = relevance(network, inputs, ["input"], rule, **settings)["input"]
    for row, x in zip(found, inputs.flatten(1).numpy(), strict=True):
        above = relevance(behind, torch.as_tensor(x @ w)[None], ["input"], rule, **settings)["input"][0]
        wired = (w != 0) | ~(w != 0).any(0)  # what no input feeds goes to all of them
        expected = share(rule, bias, x, w, wired, np.zeros(w.shape[1])) @ above
        np.testing.assert_allclose(row.flatten(), expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


MOVING = {
    "kron": (ROWS, lambda x: torch.kron(x, A[:1])),
    "kron behind": (ROWS, lambda x: torch.kron(A[:1], x)),
    "broadcast_tensors": (SEQUENCES, lambda x: torch.broadcast_tensors(x, x[:, :1])[1]),
    "as_tensor": (ROWS, torch.as_tensor),
    "prod": (SEQUENCES, lambda x: x.prod(1)),
    "prod of all": (ROWS, lambda x: torch.stack([torch.prod(row) for row in x])[:, None]),
    "products of three": (ROWS, lambda x: torch.einsum("ni,nj,nk->nijk", x, x.flip(1), torch.tanh(x))),
    "similarity": (SEQUENCES, lambda x: F.cosine_similarity(x, torch.tanh(x.flip(1)), dim=2)),
    "similarity to a constant": (SEQUENCES, lambda x: torch.cosine_similarity(x, A[0, 0] + x.detach()[:1] * 0, -1)),
    "size of a spectrum": (SEQUENCES, lambda x: torch.fft.rfft(x, dim=1).abs()),
    "spectrum and back": (SEQUENCES, lambda x: torch.fft.ifft(torch.fft.fft(x, dim=1) * TURNS[0, 1], dim=1).real),
    "grid, nearest": (
        numbers(2, 2, 5, 5),
        lambda x: F.grid_sample(x, GRID.expand(2, -1, -1, -1)[: len(x)], "nearest", align_corners=True),
    ),
}


@pytest.mark.parametrize("name", MOVING)
def test_conserved(name):
    inputs, function = MOVING[name]
    width = function(inputs).flatten(1).shape[1]
    network = settle(Written(lambda net, x: net.out(function(x).flatten(1)), out=nn.Linear(width, 3)))
    score = network(inputs).amax(1).detach().numpy()
    for rule in ("epsilon", "gamma", "alpha-beta", "attnlrp"):
        found = relevance(network, inputs, ["input"], rule, bias="redistribute")["input"]
        np.testing.assert_allclose(found.reshape(len(found), -1).sum(1), score, rtol=1e-3, err_msg=rule)


def test_products_give_each_factor_the_same_part():
    network = settle(Written(lambda net, x: net.out(net.a(x).unflatten(1, (2, 3)).prod(1)),
                             a=nn.Linear(6, 6), out=nn.Linear(3, 3)))  # fmt: skip
    found = relevance(network, ROWS, ["a"], "z")["a"]
    z = network.a(ROWS).unflatten(1, (2, 3)).prod(1).detach()
    above = relevance(Written(lambda net, x: net.out(x), out=network.out).eval(), z, ["input"], "z")["input"]
    np.testing.assert_allclose(found, np.concatenate([above, above], 1) / 2, rtol=1e-9)


class Sparsemax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ordered = x.sort(-1, descending=True)[0]
        total, count = ordered.cumsum(-1) - 1, torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
        size = (count * ordered > total).sum(-1, keepdim=True)
        result = (x - total.gather(-1, size - 1) / size).clamp(min=0)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, gradient):
        seen = (ctx.saved_tensors[0] > 0).to(gradient.dtype)
        return seen * (gradient - (gradient * seen).sum(-1, keepdim=True) / seen.sum(-1, keepdim=True))


class Shifting(Sparsemax):
    """Sparsemax as TabNet has it, which writes into what it is given."""

    @staticmethod
    def forward(ctx, x):
        x -= x.max(-1, keepdim=True)[0]
        return Sparsemax.forward(ctx, x)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * torch.sigmoid(x) * (1 + x * (1 - torch.sigmoid(x)))


class OwnSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(s := torch.softmax(x, -1))
        return s

    @staticmethod
    def backward(ctx, gradient):
        (s,) = ctx.saved_tensors
        return s * (gradient - (gradient * s).sum(-1, keepdim=True))


KEPT = Swish.apply


def around(function):
    return settle(Written(lambda net, x: net.out(function(net.a(x))), a=nn.Linear(6, 8), out=nn.Linear(8, 3)))


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("rule", ["epsilon", "gamma", "alpha-beta", "attnlrp"])
def test_functions_of_a_networks_own(rule, bias):
    for function in (Swish.apply, KEPT):  # an activation function
        expected = relevance(around(F.silu), ROWS, ["input", "a"], rule, bias=bias)
        for layer, values in relevance(around(function), ROWS, ["input", "a"], rule, bias=bias).items():
            np.testing.assert_allclose(values, expected[layer], rtol=1e-6, atol=1e-9)
    network = around(Sparsemax.apply)
    found = relevance(network, ROWS, ["a"], rule, bias=bias)["a"]
    for n, row in enumerate(ROWS):
        x = network.a(row).detach()
        z = Sparsemax.apply(x)
        seen = (z > 0).double()
        w = (torch.diag(seen) - seen[:, None] * seen / seen.sum()).numpy()
        above = relevance(Written(lambda net, x: net.out(x), out=network.out).eval(), z[None], ["input"], rule,
                          bias=bias)["input"][0]  # fmt: skip
        if rule == "attnlrp" or (rule == "epsilon" and bias == "absorb"):
            expected = (x.numpy()[:, None] * w / np.where(z == 0, 1, z)) @ above
            if bias == "absorb":
                np.testing.assert_allclose(found[n], expected, rtol=1e-3, atol=1e-5)
        if bias == "redistribute":
            np.testing.assert_allclose(found[n].sum(), above.sum(), rtol=1e-6)
    assert "apply" not in vars(torch.autograd.function._SingleLevelFunction)


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
def test_an_own_function_may_write_into_what_it_is_given(bias):
    def through(function, again=False):
        def run(net, x):
            product = net.a(x) * net.b(x)
            return net.out(function(product) + product if again else function(product))

        return settle(Written(run, a=nn.Linear(6, 6), b=nn.Linear(6, 6), out=nn.Linear(6, 3)))

    found, expected = (
        relevance(through(one.apply), ROWS, ["input"], bias=bias)["input"] for one in (Shifting, Sparsemax)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(UnsupportedOperationError, match="changed in place"):
        relevance(through(Shifting.apply, again=True), ROWS, ["input"], bias=bias)


def test_a_dense_layer_of_one_output_without_an_axis():
    network = settle(Written(lambda net, x: net.out(F.linear(x, A[:, 0].repeat(2)[:6])[:, None]), out=nn.Linear(1, 3)))
    found = relevance(network, ROWS, ["input"], bias="redistribute")["input"]
    np.testing.assert_allclose(found.sum(1), network(ROWS).amax(1).detach(), rtol=1e-3)


def test_what_bends_is_refused_by_name():
    with pytest.raises(UnsupportedOperationError, match=r"'OwnSoftmax' .* neither linear"):
        relevance(around(OwnSoftmax.apply), ROWS, ["a"])


def test_a_layer_of_complex_numbers_is_refused():
    network = settle(Written(lambda net, x: net.out(net.a(x.to(torch.complex128)).real),
                             a=nn.Identity(), out=nn.Linear(6, 3)))  # fmt: skip
    with pytest.raises(ModelError, match="'a' returns complex numbers"):
        relevance(network, ROWS, ["a"])


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("rule", ["z", "epsilon", "gamma", "alpha-beta", "attnlrp"])
def test_what_minus_infinity_hides_takes_no_relevance(rule, bias):
    def gated(low):  # of two summands that both depend on the input one is minus infinity
        def forward(net, x):
            seen = torch.ones(x.shape[1], x.shape[1]).tril().bool()
            gates = F.logsigmoid(net.f(x)).cumsum(1)
            scores = torch.where(seen, gates - gates.transpose(1, 2), low) + net.i(x).transpose(1, 2)
            return net.out((torch.exp(scores - scores.amax(-1, keepdim=True)) @ net.v(x)).mean(1))

        layers = {"f": nn.Linear(6, 1), "i": nn.Linear(6, 1), "v": nn.Linear(6, 8), "out": nn.Linear(8, 3)}
        return settle(Written(forward, **layers))

    layers = ["input", "f", "i", "v"]
    expected, found = (relevance(gated(low), SEQUENCES, layers, rule, bias=bias) for low in (-1e5, -torch.inf))
    for layer in layers:
        np.testing.assert_allclose(found[layer], expected[layer], rtol=1e-9, atol=1e-12)
