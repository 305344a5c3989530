"""What captum's own tests expect of relevance propagation, as numbers.

Source: captum, tests/attr/test_lrp.py, tests/attr/layer/test_layer_lrp.py and tests/helpers/basic_models.py, commit
09aa0489 (BSD-3-Clause); the networks are described here by their weights alone. Not taken over: the identity rule,
which passes relevance by place through a dense layer; messages about modules that captum cannot follow; the delta of
a pass, which is the sum of the biases' shares. To "multi_inputs" captum gives x and 3 x, which its network adds, and
passes the relevance of the sum to each of both undivided; here the network is given the sum.
"""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core import relevance
from tests.lrp.networks import Written


def filled(module, weight, bias=None):
    with torch.no_grad():
        module.weight.copy_(torch.as_tensor(weight, dtype=module.weight.dtype).expand_as(module.weight))
        if bias is not None:
            module.bias.copy_(torch.tensor(bias, dtype=module.bias.dtype))
    return module


def simple(first=2.0, second=3.0, activation=nn.ReLU, corner=None):
    """Three inputs, three hidden units, one score, without biases; `corner` is the first weight of all."""
    weight = torch.full((3, 3), first)
    if corner is not None:
        weight[0, 0] = corner
    return nn.Sequential(
        filled(nn.Linear(3, 3, bias=False), weight),
        activation(),
        filled(nn.Linear(3, 1, bias=False), second),
        nn.Dropout(0.01),
    )


def convolutional():
    """Two kernels of ones with the biases -50 and -75; five weights of 1 and three of -1 for each of four scores."""
    return nn.Sequential(
        filled(nn.Conv2d(1, 2, 3), 1.0, [-50.0, -75.0]),
        nn.ReLU(),
        nn.Flatten(),
        filled(nn.Linear(8, 4), [[1.0] * 5 + [-1.0] * 3], [0.0] * 4),
        nn.ReLU(),
    )


def several_layers():
    """The identity, a layer of ones with the biases -10, 1, 1, 1, and one of ones with the biases -1 and 1."""
    return nn.Sequential(
        filled(nn.Linear(3, 3), torch.eye(3), [0.0] * 3),
        filled(nn.Linear(3, 4), 1.0, [-10.0, 1.0, 1.0, 1.0]),
        nn.ReLU(),
        filled(nn.Linear(4, 2), 1.0, [-1.0, 1.0]),
    )


def skipping():
    return Written(lambda net, x: net.a(x) + x, a=filled(nn.Linear(2, 2, bias=False), 5.0))


def pooled(pool, *before):
    return nn.Sequential(*before, pool, nn.Flatten())


SQUARE = torch.arange(16.0).reshape(1, 1, 4, 4)
ROW = [[1.0, 2.0, 3.0]]

# name of captum's test: network, inputs, target, settings, expected relevance by layer
TABLE = {
    "basic_attributions": (convolutional, SQUARE, 0, {"rule": "z"}, {
        "input": [0, 1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11, 0, 0, 0, 0], "0": [0, 4, 31, 40, 0, 0, -6, -15],
    }),
    "simple_attributions": (simple, ROW, 0, {"rule": "epsilon", "epsilon": 1e-9}, {"input": [18, 36, 54]}),
    "simple_attributions_batch": (simple, [[1.0, 2, 3], [3, 6, 9]], 0, {"rule": "epsilon", "epsilon": 1e-9}, {
        "input": [18, 36, 54, 54, 108, 162],
    }),
    "simple_inplaceReLU": (lambda: simple(activation=lambda: nn.ReLU(inplace=True)), ROW, 0, {"rule": "z"}, {
        "input": [18, 36, 54],
    }),
    "simple_tanh": (lambda: simple(0.1, 0.1, nn.Tanh), ROW, 0, {"rule": "z"}, {
        "input": [0.0269, 0.0537, 0.0806], "0": [0.0537, 0.0537, 0.0537],
    }),
    "simple_attributions_GammaRule": (lambda: simple(corner=-2.0), ROW, 0, {"rule": "gamma", "gamma": 1.0}, {
        "input": [28 / 3, 104 / 3, 52], "0": [24, 36, 36],
    }),
    "simple_attributions_AlphaBeta": (lambda: simple(corner=-2.0), ROW, 0, {"rule": "alpha-beta", "alpha": 1.0}, {
        "input": [12, 33.6, 50.4], "0": [24, 36, 36],
    }),
    "simple_attributions_all_layers_delta": (simple, [[1.0, 2, 3], [2, 4, 6]], 0, {"rule": "z"}, {
        "input": [18, 36, 54, 36, 72, 108],
    }),
    "skip_connection": (skipping, [[2.0, 3.0]], 1, {"rule": "z"}, {"input": [10, 18]}),
    "maxpool1D": (lambda: nn.Sequential(pooled(nn.MaxPool1d(2), filled(nn.Linear(2, 2, bias=False), 2.0))),
                  [[[1.0, 2.0], [5.0, 6.0]]], 1, {"rule": "z"}, {"input": [0, 0, 10, 12]}),
    "maxpool2D": (lambda: pooled(nn.MaxPool2d(2)), [[[[1.0, 2.0], [5.0, 6.0]]]], 0, {"rule": "z"}, {
        "input": [0, 0, 0, 6],
    }),
    "maxpool3D": (lambda: pooled(nn.MaxPool3d(2)), [[[[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]]], 0,
                  {"rule": "z"}, {"input": [0, 0, 0, 0, 0, 0, 0, 8]}),
    "multi_inputs": (several_layers, [[4.0, 8.0, 12.0]], 0, {"rule": "z"}, {"input": [16, 32, 48]}),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_captums_numbers(name):
    build, inputs, target, settings, expected = TABLE[name]
    found = relevance(build().eval(), torch.as_tensor(inputs), list(expected), target=target, **settings)
    for layer, values in expected.items():
        # captum compares to 1e-4.
        np.testing.assert_allclose(found[layer].ravel(), values, rtol=0, atol=1e-4, err_msg=layer)
