"""Activation functions, normalisations and moves that a network writes down itself are told by what they compute."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.lrp.networks import ROWS, numbers
from tests.lrp.one_operation import close, shown

ACTIVATIONS = {
    "gelu with tanh": lambda x: (
        0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
    ),
    "gelu with erf": lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "gelu of powers": lambda x: 0.5 * x * (1 + torch.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))),
    "quick gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "swish": lambda x: x * torch.sigmoid(x),
    "swish of exp": lambda x: x / (1 + torch.exp(-x)),
    "swish of a reciprocal": lambda x: x * (1 + (-x).exp()).reciprocal(),
    "mish": lambda x: x * torch.tanh(torch.log1p(torch.exp(x))),
    "softsign": lambda x: x / (1 + x.abs()),
    "relu squared": lambda x: F.relu(x).pow(2),
    "relu times itself": lambda x: F.relu(x) * F.relu(x),
    "square": lambda x: torch.square(x),
    "isru": lambda x: x * torch.rsqrt(1 + x * x),
    "snake": lambda x: (x.float().double() * 1.0) * torch.cos(x),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_functions_written_by_hand_pass_relevance_on(name):
    _, _, (found,), r = shown(ACTIVATIONS[name], ROWS, layers="a")
    close(found, r)


def test_an_activation_function_written_by_hand_and_captured_in_between():
    _, _, (found,), r = shown(lambda a: a * torch.sigmoid(a), ROWS, layers="a", rule="epsilon")
    close(found, r)


SCALES = {
    "rms": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
    "rms in another type": lambda x: (x.double() * torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True))).to(x.dtype),
    "rms by root": lambda x: x / torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + 1e-6),
    "rms by power": lambda x: x * (x.square().mean(-1, keepdim=True) + 1e-6) ** -0.5,
    "rms by norm": lambda x: x / (x.norm(2, dim=-1, keepdim=True) * 6**-0.5 + 1e-6),
    "rms expanded": lambda x: x * torch.rsqrt((x * x).mean(-1)).unsqueeze(-1).expand_as(x),
    "F.rms_norm": lambda x: F.rms_norm(x, (6,)),
    "F.normalize": lambda x: F.normalize(x, dim=-1),
    "largest": lambda x: x / x.abs().amax(-1, keepdim=True),
    "deviation": lambda x: x / (x.var(-1, keepdim=True) + 1e-6).sqrt(),
    "std": lambda x: x / x.std(-1, keepdim=True),
}


@pytest.mark.parametrize("name", SCALES)
def test_the_scale_of_a_normalisation_is_constant(name):
    _, _, (found,), r = shown(SCALES[name], layers="a")
    close(found, r)


def centred(x):
    mean = x.mean(-1, keepdim=True)
    deviation = (x - mean).pow(2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(deviation + 1e-5)


def centred_by_product(x):
    deviation, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(deviation + 1e-5)


@pytest.mark.parametrize("norm", [centred, centred_by_product])
def test_layer_norm_written_by_hand(norm):
    _, _, (expected,), _ = shown(lambda x: F.layer_norm(x, (6,)), layers="a")
    _, _, (found,), _ = shown(norm, layers="a")
    close(found, expected)


def rotated(x):
    angles = torch.arange(5, dtype=x.dtype)[:, None] * torch.tensor([1.0, 0.3, 0.1], dtype=x.dtype).repeat(2)
    one, two = x[..., :3], x[..., 3:]
    return x * angles.cos() + torch.cat((-two, one), -1) * angles.sin()


def written_into(x):
    y = torch.zeros_like(x)
    y[:, 1:] = x[:, :-1]
    y[:, 0, ::2] = 2.0
    return y


def copied_into_views(x):
    y = x.new_empty(x.shape)
    y[:, :2].copy_(x[:, 3:])
    y[:, 2:].copy_(x[:, :3])
    return y


def scaled_in_a_view(x):
    y = x * 1.0
    y[..., :2].mul_(3.0)
    y[:, 1][:, 3:] = x[:, 0, 3:]
    return y


BIAS = numbers(5, 5, seed=4)
PLACES = torch.tensor([6, 0, 1, 3, 2])
LINEAR = {
    "rotary": rotated,
    "cumsum": lambda x: x.cumsum(1),
    "where": lambda x: torch.where(BIAS[:, :1] > 0, x, 0.0),
    "where of two": lambda x: torch.where(BIAS[:, :1] > 0, x, 2 * x.flip(1)),
    "masked_fill": lambda x: x.masked_fill(BIAS[:, :1] > 0, 0.0),
    "gather": lambda x: x.gather(1, torch.tensor([3, 1, 1])[None, :, None].expand(len(x), 3, 6)),
    "take along": lambda x: torch.take_along_dim(x, torch.tensor([3, 1, 1])[None, :, None], 1),
    "roll": lambda x: torch.roll(x, (1, -1), (1, 2)),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "tril": lambda x: torch.tril(x),
    "index": lambda x: x[torch.arange(len(x)), torch.tensor([0, 2, 1, 4])[: len(x)]],
    "written into": written_into,
    "copied into views": copied_into_views,
    "scaled in a view": scaled_in_a_view,
    "index_add": lambda x: torch.zeros_like(x).index_add(1, torch.tensor([0, 0, 3, 3, 4]), x),
    "index_add_": lambda x: torch.zeros_like(x).index_add_(1, torch.tensor([0, 0, 3, 3, 4]), x),
    "scatter": lambda x: x.new_zeros(len(x), 7, 6).scatter(1, PLACES[:, None].expand_as(x), x),
    "einsum with weights": lambda x: torch.einsum("ntf,fg->ngt", x, BIAS[:1, :1] * numbers(6, 4)),
    "einsum of one": lambda x: torch.einsum("ntf->nft", x),
    "baddbmm": lambda x: x.new_zeros(1, 5, 4).baddbmm(batch1=x, batch2=numbers(1, 6, 4).expand(len(x), 6, 4)),
    "sorted": lambda x: x.sort(1)[0],
    "topk": lambda x: x.topk(2, 1).values,
}  # fmt: skip


@pytest.mark.usefixtures("kept_together")
@pytest.mark.parametrize("name", LINEAR)
def test_operations_that_move_and_add(name):
    (a,), z, (found,), r = shown(LINEAR[name], layers="a")
    for n in range(len(a)):
        # The matrix of the operation, column by column: R_i = sum_j x_i m_ij R_j / z_j.
        jacobian = torch.autograd.functional.jacobian(lambda x, n=n: LINEAR[name](x)[n], a)[..., n, :, :]
        rows, contributions = jacobian.reshape(-1, a[n].numel()).numpy(), np.zeros(a[n].numel())
        for j, i in itertools.product(range(len(rows)), range(a[n].numel())):
            if rows[j, i]:
                contributions[i] += a[n].reshape(-1)[i] * rows[j, i] * r[n].reshape(-1)[j] / z[n].reshape(-1)[j]
        close(found[n].reshape(-1), contributions)
