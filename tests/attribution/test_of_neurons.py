"""What activates a hidden neuron: equal to explaining a network that ends there, for every rule and method."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import idc_core as idc
from idc_core.attribution.methods import METHODS, attribute, attribute_layers
from idc_core.attribution.registry import attribution_method
from idc_core.errors import IdcError, SettingError, UnsupportedOperationError
from idc_core.lrp.rules import RULES
from tests.attribution.networks import THROUGH_CAPTUM
from tests.lrp.networks import IMAGES, ROWS, SEQUENCES, TOKENS, Written, settle

NEURON = 2


def residual(net, x):
    x = F.relu(net.norm(net.conv(x)))
    return F.relu(x + net.second(x))


def attending(net, x):
    y = net.start(x)
    return y + F.gelu(net.dense(net.norm(y + net.attention(y, y, y)[0])))


def of_words(net, ids):
    return F.relu(net.conv(net.embedding(ids).transpose(1, 2)))


@dataclass(frozen=True)
class Truncated:
    """A network up to a layer, `body`, and what its whole network does behind it; `ends` names the layer."""

    body: Any
    modules: Any
    inputs: Tensor
    ends: str
    before: tuple[str, ...]
    axis: int = 1  # where neurons lie in the layer's value

    def networks(self) -> tuple[nn.Module, nn.Module, Tensor]:
        """Return the whole network, the one that ends at the layer with all its numbers in a row, and the values."""
        body = self.body
        short = settle(Written(lambda net, x: body(net, x).flatten(1), **self.modules()))
        values = body(short, self.inputs).detach()
        # The layer is the output of an identity, so that its value is what the short network ends with.
        behind = {"end": nn.Identity(), "out": nn.Linear(values[0].numel(), 3)}
        whole = settle(Written(lambda net, x: net.out(net.end(body(net, x)).flatten(1)), **self.modules(), **behind))
        whole.load_state_dict(short.state_dict(), strict=False)
        return whole, short, values


TRUNCATED = {
    "dense": Truncated(
        lambda net, x: F.relu(net.b(torch.tanh(net.a(x)))),
        lambda: {"a": nn.Linear(6, 8), "b": nn.Linear(8, 5)},
        ROWS,
        "b",
        ("input", "a"),
    ),
    "maps": Truncated(
        residual,
        lambda: {"conv": nn.Conv2d(2, 4, 3), "norm": nn.BatchNorm2d(4), "second": nn.Conv2d(4, 4, 3, padding=1)},
        IMAGES,
        "end",
        ("input", "conv", "norm", "second"),
    ),
    "pooled": Truncated(
        lambda net, x: net.pool(F.relu(net.conv(x))),
        lambda: {"conv": nn.Conv2d(2, 4, 3), "pool": nn.MaxPool2d(2)},
        IMAGES,
        "pool",
        ("input", "conv"),
    ),
    "tokens": Truncated(
        attending,
        lambda: {
            "start": nn.Linear(6, 8),
            "norm": nn.LayerNorm(8),
            "attention": nn.MultiheadAttention(8, 2, batch_first=True),
            "dense": nn.Linear(8, 8),
        },
        SEQUENCES,
        "end",
        ("input", "start", "norm", "dense"),
        axis=2,
    ),
    "states": Truncated(
        lambda net, x: net.rnn(x)[0], lambda: {"rnn": nn.LSTM(6, 4, batch_first=True)}, SEQUENCES, "rnn", ("input",), 2
    ),
    "words": Truncated(
        of_words,
        lambda: {"embedding": nn.Embedding(20, 6), "conv": nn.Conv1d(6, 5, 2)},
        TOKENS,
        "conv",
        ("input", "embedding"),
    ),
}


def slowly(short, values, axis, inputs, layers, **how):
    """Explain every number of the neuron in the network that ends there, and take the mean: relevance is linear."""
    places = torch.arange(values[0].numel()).reshape(values.shape[1:]).movedim(axis - 1, 0)[NEURON].flatten().tolist()
    parts = [idc.relevance(short, inputs, layers, target=place, **how) for place in places]
    return {layer: sum(part[layer] for part in parts) / len(parts) for layer in layers}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", TRUNCATED)
def test_equals_the_network_truncated_at_the_layer(name, rule):
    case = TRUNCATED[name]
    whole, short, values = case.networks()
    layers = case.before
    for bias in ("absorb", "redistribute"):
        found = idc.relevance(whole, case.inputs, layers, rule, of=(case.ends, NEURON), bias=bias)
        expected = slowly(short, values, case.axis, case.inputs, layers, rule=rule, bias=bias)
        for layer in layers:
            assert found[layer].any()
            np.testing.assert_allclose(found[layer], expected[layer], rtol=1e-9, atol=1e-9)
    activation = values.movedim(case.axis, 1)[:, NEURON].reshape(len(values), -1).mean(1).numpy()
    if name != "states":  # what enters the first state of an LSTM is lost
        np.testing.assert_allclose(found["input"].reshape(len(values), -1).sum(1), activation, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", THROUGH_CAPTUM)
def test_methods_equal_themselves_on_the_truncated_network(method):
    case = TRUNCATED["dense"]
    whole, short, _ = case.networks()
    layers = {"occlusion": ("input",), "grad-cam": ("a",)}.get(method, case.before)
    found = attribute_layers(whole, case.inputs, layers, method, of=("b", NEURON))
    expected = attribute_layers(short, case.inputs, layers, method, target=NEURON)
    for layer in layers:
        np.testing.assert_allclose(found[layer], expected[layer], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["gradient-x-input", "integrated-gradients", "deeplift"])
def test_a_channel_is_explained_by_the_mean_of_its_positions(method):
    case = TRUNCATED["maps"]
    whole, short, values = case.networks()
    places = torch.arange(values[0].numel()).reshape(values.shape[1:])[NEURON].flatten().tolist()
    for layer in ("input", "conv"):
        found = attribute(whole, case.inputs, method, layer, of=("end", NEURON))
        expected = sum(attribute(short, case.inputs, method, layer, place) for place in places) / len(places)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.fixture
def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    modules = {"start": nn.Linear(6, 8), "block": layer, "out": nn.Linear(8, 3)}
    return settle(Written(lambda net, x: net.out(net.block(net.start(x))[:, 0]), **modules))


@pytest.mark.parametrize("part", ["class", "last"])
def test_one_token_is_explained_alone(encoder, part):
    found = idc.relevance(encoder, SEQUENCES, ["input"], "z", of=(f"block@{part}", 3))["input"]
    token = 0 if part == "class" else 4
    short = Written(lambda net, x: net.block(net.start(x))[:, token], start=encoder.start, block=encoder.block).eval()
    expected = idc.relevance(short, SEQUENCES, ["input"], "z", target=3)["input"]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_head_is_explained_by_the_length_of_what_it_gives(encoder):
    """Its relevance starts as gradient times value of that length; the gradient rule goes on with gradients."""
    layer = "block.self_attn@heads"
    heads = next(idc.trace(encoder, SEQUENCES, [layer])).activations[layer].mean(2)
    at_head = idc.relevance(encoder, SEQUENCES, [layer], of=(layer, 1))[layer]
    np.testing.assert_allclose(at_head.sum((1, 2)), heads[:, 1], rtol=1e-12)
    assert not at_head[:, 0].any()
    found = idc.relevance(encoder, SEQUENCES, ["input"], "z", of=(layer, 1), bias="redistribute")["input"]
    np.testing.assert_allclose(found.sum((1, 2)), heads[:, 1], rtol=1e-9)


def test_a_layer_that_runs_twice_has_the_mean_of_its_uses():
    network = settle(
        Written(lambda net, x: net.out(F.relu(net.a(F.relu(net.a(x))))), a=nn.Linear(6, 6), out=nn.Linear(6, 3))
    )
    found = idc.relevance(network, ROWS, ["input"], "z", of=("a", NEURON), bias="redistribute")["input"]
    once = F.relu(network.a(ROWS))
    mean = (once + F.relu(network.a(once)))[:, NEURON] / 2
    np.testing.assert_allclose(found.sum(1), mean.detach(), rtol=1e-9)


def test_padding_is_no_part_of_a_neuron():
    modules = {"embedding": nn.Embedding(20, 6, padding_idx=0), "dense": nn.Linear(6, 5), "out": nn.Linear(5, 3)}
    network = settle(Written(lambda net, x: net.out(F.relu(net.dense(net.embedding(x))).mean(1)), **modules))
    ids = TOKENS.clone()
    ids[:, 3:] = 0
    found = idc.relevance(network, ids, ["input"], of=("dense", NEURON))["input"]
    alone = idc.relevance(network, ids[:, :3], ["input"], of=("dense", NEURON))["input"]
    assert not found[:, 3:].any()
    np.testing.assert_allclose(found[:, :3], alone, rtol=1e-12)


def test_the_same_in_batches_and_in_the_layer_itself():
    case = TRUNCATED["maps"]
    whole, _, values = case.networks()
    layers = (*case.before, "end")
    found = idc.relevance(whole, case.inputs, layers, of=("end", NEURON))
    cut = idc.relevance(whole, case.inputs, layers, of=("end", NEURON), batch_size=3)
    for layer in layers:
        np.testing.assert_allclose(found[layer], cut[layer], rtol=1e-12, atol=1e-15)
    expected = np.zeros(values.shape)
    expected[:, NEURON] = values[:, NEURON] / values[0, 0].numel()
    np.testing.assert_allclose(found["end"], expected, rtol=1e-12)


def test_a_trace_tells_the_activations_in_place_of_scores():
    case = TRUNCATED["maps"]
    whole, _, values = case.networks()
    (batch,) = idc.trace(whole, case.inputs, ["input"], idc.RelevanceSettings(), of=("end", NEURON))
    np.testing.assert_allclose(batch.scores, values.mean((2, 3)), rtol=1e-12)


def test_a_network_without_scores_has_neurons_that_can_be_explained():
    network = settle(
        Written(lambda net, x: net.b(F.relu(net.a(x))), a=nn.Conv2d(2, 4, 3), b=nn.ConvTranspose2d(4, 2, 3))
    )
    with pytest.raises(IdcError, match="expected scores"):
        idc.relevance(network, IMAGES, ["input"])
    found = idc.relevance(network, IMAGES, ["input"], "z", of=("a", 1), bias="redistribute")["input"]
    np.testing.assert_allclose(found.sum((1, 2, 3)), F.relu(network.a(IMAGES))[:, 1].mean((1, 2)).detach(), rtol=1e-9)


LAYER = r"name of a layer and the number of one of its neurons, such as \('fc2', 18\)"


@pytest.mark.parametrize("method", ["epsilon", "gradient-x-input"])
@pytest.mark.parametrize(
    ("layer", "given", "message"),
    [
        ("out", {"of": ("b", 1)}, "Layer 'out' runs behind 'b'.*or 'input'"),
        ("b", {"of": ("a", 1)}, "Layer 'b' runs behind 'a'"),
        ("input", {"of": ("b", 5)}, "'b' has 5 neurons, from 0; there is no neuron 5"),
        ("input", {"of": ("b", -1)}, "must be a whole number of at least 0, not -1"),
        ("input", {"of": ("b", 1.5)}, "must be a whole number"),
        ("input", {"of": ("c", 1)}, "no layer 'c'"),
        ("input", {"of": ("input", 1)}, LAYER),
        ("input", {"of": "b"}, LAYER),
        ("input", {"of": ("b", 1), "target": 1}, "leave target out"),
    ],
)
def test_mistakes_get_a_sentence(method, layer, given, message):
    whole, _, _ = TRUNCATED["dense"].networks()
    with pytest.raises(IdcError, match=message):
        attribute(whole, ROWS, method, layer, **given)


def test_a_method_that_explains_scores_alone_says_so():
    @attribution_method("toy-scores", label="Toy", help="Nothing.", sums_to="nothing", citation="none")
    def run(model, inputs, layers, target, **how):
        raise AssertionError("it must not run")

    try:
        with pytest.raises(SettingError, match="Toy explains scores, and no hidden neurons"):
            attribute(nn.Linear(6, 3), ROWS, "toy-scores", of=("b", 1))
    finally:
        del METHODS.entered["toy-scores"]


def test_a_layer_that_ends_with_a_function_of_its_own_is_explained_where_it_is_linear_and_else_refused():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    class Mixing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x.sum(1, keepdim=True).sin()

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            along = x.sum(1, keepdim=True)
            return gradient * along.sin() + (gradient * x).sum(1, keepdim=True) * along.cos()

    class Own(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)

    def network(function):
        return settle(nn.Sequential(nn.Linear(6, 5), Own(function), nn.Linear(5, 3)))

    found, plain = (
        idc.relevance(network(function), ROWS, ["0"], of=("1", 1))["0"] for function in (Double.apply, lambda x: 2 * x)
    )
    np.testing.assert_allclose(found, plain, rtol=1e-6)
    with pytest.raises(UnsupportedOperationError, match="the function 'Mixing' of the network's own"):
        idc.relevance(network(Mixing.apply), ROWS, ["0"], of=("1", 1))
