"""Every rule against a slow version written straight from its equation: loops over inputs i and outputs j."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from idc_core import relevance
from tests.lrp.networks import numbers, settle

EPSILON, GAMMA, ALPHA = 0.05, 0.4, 3.0


def share(rule, bias, x, w, connected, b):
    """Return s_ij, the part of R_j that x_i gets: w is (i, j); `connected` says which inputs feed which output."""
    parts = np.zeros_like(w)
    for j in range(w.shape[1]):
        z_ij = [x[i] * w[i, j] for i in range(len(x))]
        if any(z_ij) or b[j]:
            terms, left = SHARES[rule](z_ij, b[j], bias == "redistribute")
        else:  # 0 / 0: nothing contributes, so that everything is the bias's
            terms, left = [0.0] * len(x), 1.0
        fan_in = [i for i in range(len(x)) if connected[i, j]]
        for i in range(len(x)):
            parts[i, j] = terms[i]
            if bias == "redistribute" and i in fan_in:
                parts[i, j] += left / len(fan_in)
    return parts


def by_epsilon(epsilon):
    # Gerasimou et al. 2020, equation 1: R_i = sum_j x_i w_ij / (sum_i x_i w_ij + epsilon) R_j.
    def terms(z_ij, b, redistribute):
        z = sum(z_ij) + b
        stabiliser = epsilon if z >= 0 else -epsilon
        return [part / (z + stabiliser) for part in z_ij], (b + stabiliser) / (z + stabiliser)

    return terms


def by_alpha_beta(z_ij, b, redistribute):
    # Bach et al. 2015, equation 60: R_i = sum_j (alpha z+_ij / z+_j + beta z-_ij / z-_j) R_j, alpha + beta = 1.
    supporting = sum(max(part, 0) for part in z_ij) + max(b, 0)
    opposing = sum(min(part, 0) for part in z_ij) + min(b, 0)
    alpha, beta = ALPHA, 1 - ALPHA
    if redistribute or not b:  # where no bias takes part, a sign that is not there leaves everything to the other
        alpha, beta = (alpha, beta) if supporting and opposing else (float(supporting > 0), float(opposing < 0))
    for_it = [alpha * max(part, 0) / supporting if supporting else 0.0 for part in z_ij]
    against = [beta * min(part, 0) / opposing if opposing else 0.0 for part in z_ij]
    left = (alpha * max(b, 0) / supporting if supporting else 0.0) + (beta * min(b, 0) / opposing if opposing else 0.0)
    return [p + n for p, n in zip(for_it, against, strict=True)], left


def by_gamma(z_ij, b, redistribute):
    # Montavon et al. 2019 with the sign of z_j: R_i = sum_j (z_ij + gamma z^s_ij) / sum_i (z_ij + gamma z^s_ij) R_j.
    sign = max if sum(z_ij) + b >= 0 else min
    raised = [part + GAMMA * sign(part, 0) for part in z_ij]
    raised_bias = b + GAMMA * sign(b, 0)
    whole = sum(raised) + raised_bias
    return [part / whole for part in raised], raised_bias / whole


SHARES = {"z": by_epsilon(0.0), "epsilon": by_epsilon(EPSILON), "alpha-beta": by_alpha_beta, "gamma": by_gamma}


def unrolled(conv, shape):
    """Return a convolution as a dense layer over flattened maps: weights, connections, biases, shape of its output."""
    channels, height, width = shape
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = conv.kernel_size, conv.stride, conv.padding, conv.dilation
    rows, columns = (height + 2 * ph - dh * (kh - 1) - 1) // sh + 1, (width + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    out = (conv.out_channels, rows, columns)
    weights, connected = np.zeros((np.prod(shape), np.prod(out))), np.zeros((np.prod(shape), np.prod(out)), bool)
    weight, grouped, per_group = conv.weight.detach().numpy(), channels // conv.groups, conv.out_channels // conv.groups
    for o, r, c in itertools.product(*map(range, out)):
        for k, y, x in itertools.product(range(grouped), range(kh), range(kw)):
            row, column = r * sh - ph + y * dh, c * sw - pw + x * dw
            if 0 <= row < height and 0 <= column < width:
                i = np.ravel_multi_index((o // per_group * grouped + k, row, column), shape)
                j = np.ravel_multi_index((o, r, c), out)
                weights[i, j], connected[i, j] = weight[o, k, y, x], True
    return weights, connected, np.repeat(conv.bias.detach().numpy(), rows * columns), out


def pooled(pool, shape):
    """Return, for every output of a pooling without padding, the numbers of the inputs in its window."""
    out = (shape[0], *((size - pool.kernel_size) // pool.stride + 1 for size in shape[1:]))
    window = list(itertools.product(range(pool.kernel_size), repeat=2))
    return [
        [np.ravel_multi_index((k, r * pool.stride + y, c * pool.stride + x), shape) for y, x in window]
        for k, r, c in itertools.product(*map(range, out))
    ], out


def slowly(network, x, rule, bias):
    """Return relevance at the input and at the output of every layer of a sequential network, for one input."""
    shape = x.shape
    values, backwards = x.reshape(-1).astype(float), []
    for module in network:
        if isinstance(module, nn.Linear | nn.Conv2d):
            if isinstance(module, nn.Linear):
                w, b = module.weight.detach().numpy().T, module.bias.detach().numpy()
                connected, shape = np.ones_like(w, bool), (len(b),)
            else:
                w, connected, b, shape = unrolled(module, shape)
            name = rule if rule != "composite" else "gamma" if isinstance(module, nn.Conv2d) else "epsilon"
            backwards.append(share(name, bias, values, w, connected, b))
            values = values @ w + b
        elif isinstance(module, nn.AvgPool2d):
            windows, shape = pooled(module, shape)
            w = np.zeros((len(values), len(windows)))
            for j, window in enumerate(windows):
                w[window, j] = 1 / len(window)
            name = rule if rule != "composite" else "epsilon"
            backwards.append(share(name, bias, values, w, w > 0, np.zeros(len(windows))))
            values = values @ w
        elif isinstance(module, nn.MaxPool2d):
            windows, shape = pooled(module, shape)
            w = np.zeros((len(values), len(windows)))
            for j, window in enumerate(windows):
                winners = [i for i in window if values[i] == max(values[window])]
                w[winners, j] = 1 / len(winners)
            backwards.append(w)
            values = np.array([max(values[window]) for window in windows])
        else:
            values = module(torch.from_numpy(values)).numpy() if not isinstance(module, nn.Flatten) else values
            backwards.append(np.eye(len(values)))
    found = [np.where(np.arange(len(values)) == values.argmax(), values, 0.0)]
    for parts in reversed(backwards):
        above, below = found[0], np.zeros(len(parts))
        for i, j in itertools.product(range(parts.shape[0]), range(parts.shape[1])):
            below[i] += parts[i, j] * above[j]
        found.insert(0, below)
    return found


def dense(seed):
    return settle(nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)), seed)


def convolutional(seed):
    return settle(
        nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=(2, 1), padding=1, groups=2),
            nn.ReLU(),
            nn.AvgPool2d(2, 1),
            nn.Conv2d(4, 2, 2, padding=(1, 0), dilation=(2, 1)),
            nn.Sigmoid(),
            nn.Flatten(),
            nn.Linear(16, 3),
        ),
        seed,
    )


def with_ties(seed):
    return settle(
        nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(27, 3)), seed
    )


BUILDS = {
    "dense": (dense, numbers(3, 5)),
    "convolutional": (convolutional, numbers(2, 2, 5, 6)),
    "with ties": (with_ties, numbers(2, 1, 5, 5).round().clamp(min=0)),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("rule", ["z", "epsilon", "alpha-beta", "gamma", "composite"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", BUILDS)
def test_equal_to_the_equation(build, seed, rule, bias):
    make, inputs = BUILDS[build]
    network = make(seed)
    layers = ["input", *(name for name, _ in network.named_children())]
    found = relevance(
        network, inputs, layers, rule, EPSILON, gamma=GAMMA, alpha=ALPHA, bias=bias, batch_size=len(inputs)
    )
    for n, x in enumerate(inputs):
        for layer, expected in zip(layers, slowly(network, x.numpy(), rule, bias), strict=True):
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                found[layer][n].reshape(-1), expected, rtol=1e-9, atol=1e-11 * scale, err_msg=layer
            )


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("rule", ["z", "epsilon"])
@pytest.mark.parametrize("kind", ["batch_norm", "layer_norm"])
def test_normalisation_is_affine_with_its_statistics_held_constant(kind, rule, bias):
    norm = settle(nn.BatchNorm1d(5) if kind == "batch_norm" else nn.LayerNorm(5))
    network = nn.Sequential(norm, nn.Tanh(), settle(nn.Linear(5, 3)))
    x = numbers(1, 5)
    found = relevance(network, x, ["input", "0"], rule, EPSILON, bias=bias)
    weight, shift = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    if kind == "batch_norm":
        scale = weight / np.sqrt(norm.running_var.numpy() + norm.eps)
        w, connected, b = np.diag(scale), np.eye(5, dtype=bool), shift - norm.running_mean.numpy() * scale
    else:
        scale = weight / np.sqrt(x[0].var(unbiased=False).item() + norm.eps)
        w, connected, b = (np.eye(5) - 1 / 5) * scale, np.ones((5, 5), bool), shift
    np.testing.assert_allclose(x[0].numpy() @ w + b, norm(x)[0].detach(), rtol=1e-9)
    parts = share(rule, bias, x[0].numpy(), w, connected, b)
    np.testing.assert_allclose(found["input"][0], parts @ found["0"][0], rtol=1e-9)
