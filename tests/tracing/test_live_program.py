"""A network as a chain that a browser runs: its steps give the network's numbers, and what is no chain is refused.

The script that runs the steps is compared with the engine in `tests/browser/test_live_engine.py`.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core.errors import UnsupportedOperationError
from idc_core.tracing import live_program as module
from idc_core.tracing.live_program import live_program
from idc_core.tracing.trace import collect
from tests.lrp.networks import Written, settle

PICTURES = torch.rand(3, 2, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
RUN = {
    "convolution": lambda x, w, b, s: F.conv2d(x, w, b, s["stride"], s["padding"], s["dilation"], s["groups"]),
    "dense": lambda x, w, b, s: F.linear(x.flatten(1), w, b),
    "maximum": lambda x, w, b, s: F.max_pool2d(x, s["kernel"], s["stride"], s["padding"]),
    "average": lambda x, w, b, s: F.avg_pool2d(x, s["kernel"], s["stride"], s["padding"]),
    "relu": lambda x, w, b, s: F.relu(x),
    "sigmoid": lambda x, w, b, s: torch.sigmoid(x),
    "tanh": lambda x, w, b, s: torch.tanh(x),
}


def chain():
    """A network of every kind of step, with what is folded and what only reshapes."""
    parts = [
        nn.Conv2d(2, 6, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=True),
        nn.AvgPool2d(2, 1),
        nn.Conv2d(6, 4, 3, padding="same", dilation=2, groups=2),
        nn.Tanh(),
        nn.MaxPool2d(3, 2, 1),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(16, 5),
        nn.BatchNorm1d(5),
        nn.Sigmoid(),
        nn.Linear(5, 3),
        nn.Softmax(1),
    ]
    return settle(nn.Sequential(*parts))


def values_of(program, inputs):
    """Run a program as it is described, with weights from the one row of numbers, and return every value."""
    told, numbers, at, values = program.description(), torch.from_numpy(program.weights).double(), 0, [inputs]
    for step, said in zip(program.steps, told["steps"], strict=True):
        weight, bias = numbers[at : at + said["weights"]], numbers[at + said["weights"] :][: said["biases"]]
        at += said["weights"] + said["biases"]
        weight = None if step.weight is None else weight.reshape(step.weight.shape)
        values.append(RUN[said["kind"]](values[-1], weight, bias if said["biases"] else None, said))
        assert list(values[-1].shape[1:]) == said["shape"]
    assert at == len(numbers)
    return values


@pytest.mark.parametrize("layer", ["2", "4", "5", "6", "11", "12"])
def test_its_steps_give_scores_and_activations(layer):
    network = chain()
    program = live_program(network, PICTURES, layer)
    values, found = values_of(program, PICTURES), collect(network, PICTURES, [layer])
    np.testing.assert_allclose(values[-1], found.scores, atol=1e-5)
    shown = values[program.layer].flatten(2).mean(2) if values[program.layer].dim() == 4 else values[program.layer]
    np.testing.assert_allclose(shown, found.activations[layer], atol=1e-5)
    assert [step.kind for step in program.steps][:3] == ["convolution", "relu", "average"]


def residual(net, x):
    hidden = F.relu(net.one(x))
    return net.two((hidden + net.same(hidden)).flatten(1))


ODD = {
    "residual": Written(residual, one=nn.Conv2d(2, 3, 3), same=nn.Conv2d(3, 3, 1), two=nn.Linear(147, 3)),
    "gelu": nn.Sequential(nn.Conv2d(2, 3, 3), nn.GELU(), nn.Flatten(), nn.Linear(147, 3)),
    "permute": Written(
        lambda net, x: net.two(net.one(x).permute(0, 2, 3, 1).flatten(1)), one=nn.Conv2d(2, 3, 3), two=nn.Linear(147, 3)
    ),
}


@pytest.mark.parametrize(
    ("name", "layer", "said"),
    [("residual", "one", "others take"), ("gelu", "1", "gelu"), ("permute", "one", "permute")],
)
def test_what_is_no_chain_is_refused_by_name(name, layer, said):
    with pytest.raises(UnsupportedOperationError, match=said):
        live_program(settle(ODD[name]), PICTURES, layer)


def test_a_layer_that_is_folded_has_no_value():
    with pytest.raises(UnsupportedOperationError, match="batch_norm behind the layer"):
        live_program(chain(), PICTURES, "0")


@pytest.mark.parametrize(("limit", "said"), [("MOST_BYTES", "bytes"), ("MOST_PRODUCTS", "products")])
def test_what_is_too_large_is_refused(monkeypatch, limit, said):
    monkeypatch.setattr(module, limit, 100)
    with pytest.raises(UnsupportedOperationError, match=said):
        live_program(chain(), PICTURES, "5")
