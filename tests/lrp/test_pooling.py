"""Pooling at every setting: the z rule is the gradient times the input, whichever way the relevance is computed."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from idc_core.lrp import interception, pooling  # noqa: F401 - the first enters every operation
from idc_core.lrp.operations import FASTER, OPERATIONS
from idc_core.lrp.rules import RelevanceSettings
from tests.lrp.networks import Written, numbers, settle

Z = RelevanceSettings("z")
LAYOUTS = {"plain": torch.contiguous_format, "channels last": torch.channels_last}
WINDOWS = list(itertools.product(range(1, 5), range(1, 5), range(3), range(1, 3), (False, True)))
"""Kernel size, stride, padding, dilation, ceil_mode."""


def shown(name, x, *args, above=None, **options):
    """Return an operation's output and the relevance of x where that of the output is `above`, or the output."""
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        z = OPERATIONS[name](Z, x, *args, **options)
    return z.detach(), torch.autograd.grad(z, x, z.detach() if above is None else above)[0]


def check(name, x, *args, **options):
    """Compare an operation and its relevance with PyTorch's own operation and the gradient times the input."""
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        z = getattr(F, name)(x, *args, **options)
    above = torch.linspace(0.5, 1.5, z.numel(), dtype=x.dtype).reshape(z.shape)
    expected = torch.autograd.grad(z, x, above)[0] * x.detach()
    found, carried = shown(name, x, *args, above=above * z.detach(), **options)
    message = f"{name} of {tuple(x.shape)} by {args} {options}"
    torch.testing.assert_close(found, z.detach(), rtol=1e-12, atol=1e-12, msg=message)
    torch.testing.assert_close(carried, expected, rtol=1e-10, atol=1e-10, msg=message)


def images(dimensions, size, layout="plain", seed=1):
    x = numbers(2, 2, *[size] * dimensions, seed=seed)
    return x.contiguous(memory_format=LAYOUTS[layout]) if dimensions == 2 else x


def fits(size, kernel, padding=0, dilation=1):
    return 2 * padding <= kernel and size + 2 * padding > dilation * (kernel - 1)


@pytest.mark.parametrize(("dimensions", "layout"), [(1, "plain"), (2, "plain"), (2, "channels last"), (3, "plain")])
def test_max_pooling(dimensions, layout):
    count = 0
    for size, window in itertools.product(range(2, 11) if dimensions < 3 else (4, 6), WINDOWS):
        kernel, stride, padding, dilation, ceil = window
        if fits(size, kernel, padding, dilation):
            x = images(dimensions, size, layout)
            check(f"max_pool{dimensions}d", x, kernel, stride, padding, dilation, ceil_mode=ceil)
            count += 1
    assert count == (224 if dimensions == 3 else 1_016)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_max_pooling_of_another_size_along_each_axis(layout):
    x = numbers(2, 2, 6, 8).contiguous(memory_format=LAYOUTS[layout])
    for kernel, stride, padding in itertools.product(
        itertools.product((1, 2, 3), (2, 4)), *[[(1, 2), (2, 2), (3, 4)]] * 2
    ):
        if all(2 * p <= k for p, k in zip(padding, kernel, strict=True)):
            check("max_pool2d", x, kernel, stride, padding)
        check("max_pool2d", x, kernel, stride, dilation=(1, 2), ceil_mode=True)
    check("max_pool2d", x, (2,), [], (1,))
    check("max_pool3d", numbers(2, 2, 4, 5, 6), (2, 1, 3), (2, 3, 3), (1, 0, 1))
    check("max_pool2d", x[0], 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_max_pooling_of_several_pieces(layout, monkeypatch):
    monkeypatch.setattr(pooling, "_NEAR", 1)
    for kernel, stride, padding in ((2, 2, 0), (3, 2, 1), (2, 3, 1)):
        check("max_pool2d", images(2, 6, layout), kernel, stride, padding)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_equal_winners_share(layout):
    for window, size in itertools.product(WINDOWS, (4, 6)):
        kernel, stride, padding, dilation, ceil = window
        if not fits(size, kernel, padding, dilation):
            continue
        x = images(2, size, layout)[:1].round()
        z, found = shown("max_pool2d", x, kernel, stride, padding, dilation, ceil)
        expected = torch.zeros_like(x)
        for n, c, i, j in np.ndindex(*z.shape):
            rows, columns = ([o * stride - padding + k * dilation for k in range(kernel)] for o in (i, j))
            places = [(n, c, r, s) for r in rows for s in columns if 0 <= r < size and 0 <= s < size]
            winners = [place for place in places if x[place] == z[n, c, i, j]]
            for place in winners:
                expected[place] += z[n, c, i, j] / len(winners)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12, msg=str((window, size)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_infinite_numbers_win_or_lose_like_others(layout):
    x = torch.tensor([[-math.inf, -math.inf, 1, 2], [-math.inf, -math.inf, math.inf, 3]]).double()
    x = x.expand(2, 3, 2, 4).contiguous(memory_format=LAYOUTS[layout])
    above = torch.tensor([[4.0, 6.0]]).double().expand(2, 3, 1, 2)
    expected = torch.tensor([[1, 1, 0, 0], [1, 1, 6, 0]]).double().expand_as(x)
    torch.testing.assert_close(shown("max_pool2d", x, 2, above=above)[1], expected)
    padded = torch.full((1, 1, 3), -math.inf, dtype=torch.float64)
    found = shown("max_pool1d", padded, 3, 1, 1, above=torch.tensor([[[2.0, 3.0, 2.0]]]).double())[1]
    torch.testing.assert_close(found, torch.tensor([[[2.0, 3.0, 2.0]]]).double())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["avg", "lp", "adaptive_avg", "adaptive_max"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_other_pooling(kind, dimensions):
    name = f"{kind}_pool{dimensions}d"
    for size in range(1, 9) if dimensions < 3 else (4, 6):
        x = images(dimensions, size)
        if kind.startswith("adaptive"):
            for out in range(1, size + 3):
                check(name, x, out)
            continue
        for kernel, stride, padding, _, ceil in WINDOWS[::2]:
            if kind == "avg" and fits(size, kernel, padding):
                check(name, x, kernel, stride, padding, ceil, count_include_pad=bool(size % 2))
            if kind == "lp" and not padding and fits(size, kernel):
                check(name, x.abs(), 2 + stride % 2, kernel, stride, ceil)


def test_adaptive_pooling_of_another_size_along_each_axis():
    for kind, out in itertools.product(("avg", "max"), ((1, 3), (3, None), (None, 2), (9, 5))):
        check(f"adaptive_{kind}_pool2d", numbers(2, 2, 6, 5), out)
        check(f"adaptive_{kind}_pool2d", numbers(2, 6, 5), out)


def outcome(pool, *args):
    """Return what pooling gives as lists, or the message of its refusal."""
    try:
        return pool(*args).tolist()
    except RuntimeError as error:
        return str(error)


def test_the_faster_way_forwards_is_pytorchs():
    for size, (kernel, stride, padding, dilation, ceil) in itertools.product(range(1, 8), WINDOWS):
        x = numbers(2, 2, size)
        found, expected = (
            outcome(one, x, kernel, stride, padding, dilation, ceil) for one in (FASTER["max_pool1d"], F.max_pool1d)
        )
        assert found == expected
    whole = torch.arange(32).reshape(1, 2, 4, 4)
    torch.testing.assert_close(FASTER["max_pool2d"](whole, 2), F.max_pool2d(whole, 2))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "size", "ceil"),
    [(3, 3, 1, 9, False), (2, 3, 1, 6, False), (4, 4, 1, 8, False), (3, 4, 0, 9, True)],
)
def test_of_a_whole_network(kernel, stride, padding, size, ceil):
    pool = nn.MaxPool2d(kernel, stride, padding, ceil_mode=ceil)
    x = images(2, size)
    with torch.no_grad():
        width = pool(x).flatten(1).shape[1]
    network = settle(Written(lambda net, x: net.out(net.pool(x).flatten(1)), pool=pool, out=nn.Linear(width, 3, False)))
    leaf = x.clone().requires_grad_()
    network(leaf)[:, 1].sum().backward()
    found = relevance(network, x, ["input"], "z", target=1)["input"]
    np.testing.assert_allclose(found, leaf.grad * x, rtol=1e-10, atol=1e-12)
