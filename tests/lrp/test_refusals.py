"""What cannot be propagated is refused by name, before more than one input has run."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import IDC, relevance
from idc_core.errors import DataError, IdcError, ModelError, SettingError, UnsupportedOperationError
from idc_core.tracing.trace import collect, trace
from tests.lrp.networks import IMAGES, ROWS, SEQUENCES, TOKENS, Written, numbers, settle

MANY = numbers(64, 6)


class Bent(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.softmax(-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.flip(-1)


class Inner(nn.Module):
    def forward(self, x):
        return torch.cumprod(x, -1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x)


def dense(width=6):
    return {"a": nn.Linear(6, 6), "out": nn.Linear(width, 3)}


# name: forward pass, modules, inputs, what the message must name
OPERATIONS = {
    "floor division": (
        lambda net, x: net.out(torch.div(x, 2, rounding_mode="floor")),
        dense(),
        ROWS,
        ("div", "rounding_mode"),
    ),
    "cumprod": (lambda net, x: net.out(torch.cumprod(x, 1)), dense(), ROWS, ("cumprod",)),
    "cumprod_": (lambda net, x: net.out(net.a(x).cumprod_(1)), dense(), ROWS, ("cumprod",)),
    "power": (lambda net, x: net.out(net.a(x).abs() ** x), dense(), ROWS, ("pow", "depend")),
    "cumprod in a module": (
        lambda net, x: net.out(net.block(x)),
        {**dense(), "block": Block()},
        ROWS,
        ("cumprod", "'block.inner'"),
    ),
    "attention with dropout": (
        lambda net, x: net.out(F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)[:, 0]),
        dense(),
        SEQUENCES,
        ("dropout",),
    ),
    "projected lstm": (
        lambda net, x: net.out(net.lstm(x)[0][:, -1]),
        {"lstm": nn.LSTM(6, 5, proj_size=2, batch_first=True), "out": nn.Linear(2, 3)},
        SEQUENCES,
        ("LSTM with a projection", "'lstm'"),
    ),
    "batch statistics": (
        lambda net, x: net.norm(x).mean((2, 3)),
        {"norm": nn.BatchNorm2d(2, track_running_stats=False)},
        IMAGES,
        ("batch_norm", "stored statistics", "'norm'"),
    ),
    "pooling with indices": (
        lambda net, x: F.max_pool2d(x, 2, return_indices=True)[0].mean((2, 3)),
        {},
        IMAGES,
        ("indices",),
    ),
    "dropout": (lambda net, x: net.out(F.dropout(x)), dense(), ROWS, ("dropout", "evaluation")),
    "custom function": (
        lambda net, x: net.out(Bent.apply(net.a(x))),
        dense(),
        ROWS,
        ("Bent", "own", "in module 'network'"),
    ),
    "custom last function": (lambda net, x: Bent.apply(net.out(x)), dense(), ROWS, ("Bent", "own")),
    "weights from the input": (lambda net, x: F.linear(x, x[:3]), {}, ROWS[:6], ("weights depend on the input",)),
    "distances": (lambda net, x: net.out(torch.cdist(x, numbers(6, 6))), dense(), ROWS, ("cdist",)),
    "fractional pooling": (
        lambda net, x: F.fractional_max_pool2d(x, 2, output_size=3).mean((2, 3)),
        {},
        IMAGES,
        ("fractional_max_pool2d",),
    ),
    "largest norm": (lambda net, x: F.lp_pool2d(x, float("inf"), 2).mean((2, 3)), {}, IMAGES, ("lp_pool2d", "inf")),
    "hypot": (lambda net, x: net.out(torch.hypot(x, -x)), dense(), ROWS, ("hypot",)),
    "logcumsumexp": (lambda net, x: net.out(x.logcumsumexp(1)), dense(), ROWS, ("logcumsumexp",)),
}


class Counted(nn.Module):
    """A network that notes how many inputs each of its passes was given."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.passes = []

    def forward(self, x):
        self.passes.append(len(x))
        return self.network(x)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_refused_by_name(name):
    forward, modules, inputs, words = OPERATIONS[name]
    network = Counted(settle(Written(forward, **modules)))
    with pytest.raises(UnsupportedOperationError) as caught:
        relevance(network, inputs, ["input"])
    message = str(caught.value)
    for word in words:
        assert (f"'network.{word[1:]}" if word.startswith("'") else word) in message
    assert "\n" not in message
    assert message.endswith(".")
    assert network.passes == [1]


def _square(x):
    return x[:, :, None] * x[:, None] * 0.1 + torch.eye(6, dtype=x.dtype)


# What is refused, and how many features it gives; behind it the refusal says to choose a layer.
REFUSED = {
    "cumprod": (lambda x: x.cumprod(1), 6),
    "cummax": (lambda x: x.cummax(1)[0], 6),
    "hypot": (lambda x: torch.hypot(x, x.flip(1)), 6),
    "remainder": (lambda x: x % 0.7, 6),
    "sign": (torch.sign, 6),
    "quantile": (lambda x: x.quantile(0.3, 1, keepdim=True), 1),
    "distances": (lambda x: torch.cdist(x, numbers(6, 6)), 6),
    "two powers": (lambda x: x.abs() ** x, 6),
    "inverse": (lambda x: torch.linalg.inv(_square(x)).flatten(1), 36),
    "singular values": (lambda x: torch.linalg.svdvals(_square(x)), 6),
    "eigenvalues": (lambda x: torch.linalg.eigvalsh(_square(x)), 6),
    "triangles": (lambda x: torch.linalg.qr(_square(x))[1].flatten(1), 36),
    "determinant": (lambda x: torch.linalg.det(_square(x))[:, None], 1),
    "watched grid": (
        lambda x: F.grid_sample(x.reshape(-1, 1, 2, 3), x.reshape(-1, 1, 3, 2), align_corners=False).flatten(1),
        3,
    ),
    "largest of a scatter": (
        lambda x: torch.zeros_like(x).scatter_reduce(1, torch.zeros_like(x).long(), x, "amax", include_self=False),
        6,
    ),
    "angle": (lambda x: torch.complex(x, x.flip(1)).angle(), 6),
    "complex exponential": (lambda x: torch.complex(x, x).exp().real, 6),
    "indices": (lambda x: F.max_pool1d(x[:, None], 2, return_indices=True)[0].flatten(1), 3),
    "own function that bends": (Bent.apply, 6),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
def test_the_layer_behind_what_is_refused_is_explained(name, bias):
    run, width = REFUSED[name]
    layers = {"a": nn.Linear(6, 6), "b": nn.Linear(width, 5), "c": nn.Linear(5, 4), "out": nn.Linear(4, 3)}
    network = settle(Written(lambda net, x: net.out(net.c(net.b(run(net.a(x)))).tanh()), **layers))
    with pytest.raises(UnsupportedOperationError, match="Choose a layer behind it, if there is one"):
        relevance(network, ROWS, ["a"], bias=bias)
    with torch.no_grad():
        values = network.b(run(network.a(ROWS)))
    tail = nn.Sequential(network.c, nn.Tanh(), network.out)
    found, expected = relevance(network, ROWS, ["b"], bias=bias)["b"], relevance(tail, values, ["input"], bias=bias)
    np.testing.assert_allclose(found, expected["input"], rtol=1e-9, atol=1e-12)


NETWORKS = {
    "dict": (lambda net, x: {"scores": 1}, ModelError, ("returns a dict", "(n, classes)")),
    "list of numbers": (lambda net, x: [1, 2], ModelError, ("returns a list", "(n, classes)")),
    "three dimensions": (lambda net, x: net.out(x)[:, None], ModelError, ("(1, 1, 3)", "(n, classes)")),
    "rows mixed": (lambda net, x: net.out(x.reshape(-1, 3).repeat(1, 2)), ModelError, ("2 rows for 1 input",)),
    "constant": (lambda net, x: torch.zeros(len(x), 3), UnsupportedOperationError, ("do not depend on input",)),
    "detached": (lambda net, x: net.out(x).detach(), UnsupportedOperationError, ("do not depend on input",)),
    "failing": (lambda net, x: net.out(x[:, :4]), ModelError, ("(1, 6)", "float64", "mat1 and mat2")),
    "raising": (lambda net, x: {}["scores"], ModelError, ("KeyError", "(1, 6)")),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_another_form(name):
    forward, kind, words = NETWORKS[name]
    network = Counted(settle(Written(forward, **dense())))
    with pytest.raises(kind) as caught:
        relevance(network, MANY, ["input"])
    for word in words:
        assert word in str(caught.value)
    assert network.passes[0] == 1
    assert max(network.passes) <= 6  # copies of one input, in case the network takes no batch of one


def test_a_network_that_fails_keeps_the_cause():
    network = settle(Written(NETWORKS["failing"][0], **dense()))
    with pytest.raises(ModelError) as caught:
        relevance(network, ROWS, ["out"])
    assert isinstance(caught.value.__cause__, RuntimeError)


LAYERS = {
    "unknown": ("fc9", lambda net, x: net.out(x), ModelError, ("'fc9'", "a, out", "'input'")),
    "not used": ("a", lambda net, x: net.out(x), UnsupportedOperationError, ("'a'", "did not run")),
    "not followed": ("a", lambda net, x: net.out(x + net.a(x).detach()), UnsupportedOperationError, ("depend on a",)),
    "rows elsewhere": (
        "a",
        lambda net, x: net.out(net.a(x.repeat(2, 1))[: len(x)]),
        UnsupportedOperationError,
        ("'a'", "(2, 6)", "one row per input"),
    ),
    "other shapes": (
        "a",
        lambda net, x: net.out(net.a(x) + net.a(torch.stack([x, x], 1)).sum(1)),
        UnsupportedOperationError,
        ("'a'", "2 times", "(6,)", "(2, 6)"),
    ),
    "no tensor": ("pair", lambda net, x: net.out(net.pair(x)["x"][1]), ModelError, ("'pair'", "int")),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_that_cannot_be_watched(name):
    layer, forward, kind, words = LAYERS[name]

    class Pair(nn.Module):
        def forward(self, x):
            return {"x": (1, x)}

    network = settle(Written(forward, **dense(), pair=Pair()))
    counted = []
    network.register_forward_pre_hook(lambda module, inputs: counted.append(len(inputs[0])))
    with pytest.raises(kind) as caught:
        relevance(network, MANY, [layer])
    for word in words:
        assert word in str(caught.value)
    # Whether the rows of an input lie together is seen on two, and copies of it are tried.
    assert set(counted) <= {1, 2, 4}


def test_relevance_of_whole_numbers_needs_an_embedding_of_just_them():
    network = settle(Written(lambda net, x: net.out(net.a(x + 1).mean(1)), a=nn.Embedding(11, 6), out=nn.Linear(6, 3)))
    with pytest.raises(UnsupportedOperationError, match="'input'"):
        relevance(network, TOKENS, ["input"])
    assert relevance(network, TOKENS, ["a"])["a"].shape == (4, 5, 6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_is_refused():
    network = nn.Sequential(nn.Linear(6, 6), torch.jit.script(nn.Linear(6, 6)), nn.Linear(6, 3))
    with pytest.raises(UnsupportedOperationError, match=r"'1'.*TorchScript"):
        relevance(network, ROWS, ["0"])
    with pytest.raises(UnsupportedOperationError, match=r"TorchScript"):
        collect(torch.jit.script(nn.Linear(6, 3)), ROWS, [])


SETTINGS = {
    "rule": ({"rule": "lrp"}, ("'lrp'", "epsilon", "alpha-beta")),
    "bias": ({"bias": "keep"}, ("'keep'", "absorb")),
    "epsilon": ({"epsilon": -1.0}, ("epsilon", "-1.0")),
    "gamma": ({"gamma": float("inf")}, ("gamma", "inf")),
    "alpha": ({"alpha": 0.5}, ("alpha", "0.5")),
    "alpha NaN": ({"alpha": float("nan")}, ("alpha", "nan")),
    "target name": ({"target": "best"}, ("'best'", "'predicted'")),
    "target class": ({"target": 3}, ("0..2",)),
    "negative class": ({"target": -1}, ("0..2",)),
    "fractional target": ({"target": [0.5] * 64}, ("target",)),
    "truth values": ({"target": np.ones(64, bool)}, ("target",)),
    "table of targets": ({"target": np.zeros((64, 3), int)}, ("target",)),
    "batch_size": ({"batch_size": 0}, ("batch_size", "0")),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_outside_the_method(name):
    settings, words = SETTINGS[name]
    network = Counted(settle(nn.Sequential(nn.Linear(6, 3))))
    with pytest.raises(SettingError) as caught:
        relevance(network, MANY, ["input"], **settings)
    for word in words:
        assert word in str(caught.value)
    assert 64 not in network.passes or "class" in name


def test_refusals_reach_every_entrance():
    network = settle(Written(lambda net, x: net.out(torch.cumprod(net.a(x), 1)), **dense()))
    for work in (
        lambda: next(trace(network, ROWS, ["a"], IDC(network, "a").settings)),
        lambda: collect(network, ROWS, ["a"], IDC(network, "a").settings),
        lambda: IDC(network, "a").fit(ROWS),
    ):
        with pytest.raises(UnsupportedOperationError, match="cumprod"):
            work()
    # Activations need no propagation.
    assert collect(network, ROWS, ["a"]).activations["a"].shape == (4, 6)


@pytest.mark.parametrize(
    "inputs",
    [
        3,
        "images",
        None,
        [[1.0, 2.0]],
        [{"x": 3}],
        np.array(["a"]),
        np.array([object()]),
        torch.tensor(1.0),
        ROWS[:0],
        [],
        np.zeros((2, 6), complex),
    ],
)
def test_inputs_that_are_no_data(inputs):
    with pytest.raises(DataError) as caught:
        collect(settle(nn.Sequential(nn.Linear(6, 3))), inputs, ["0"])
    assert isinstance(caught.value, IdcError)
    assert "xpected" in str(caught.value)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_relevance_that_is_not_finite_names_the_input(wrong):
    network = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    inputs = torch.rand(7, 4)
    inputs[5, 2] = wrong
    with pytest.raises(DataError, match=r"Input 5 gives relevance of layer '(0|input)' that is not finite"):
        relevance(network, inputs, ["input", "0"], batch_size=3)
