"""Parts of layers of tokens, against slow versions: one token, attention heads, and means that leave padding out."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import idc_core as idc
from idc_core.cli.console import check_layers
from idc_core.coverage.boundary import KMNC
from idc_core.coverage.idc import IDC
from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.experiments.ablation import ablate
from idc_core.generation.objectives import SearchedNetwork
from idc_core.importance.ranking import by_method
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.neurons import CHANNELS, TOKENS, UNITS, neuron_activation, neuron_axes, neuron_sentence
from idc_core.tracing.trace import collect, trace
from tests.lrp.networks import IMAGES, ROWS, SEQUENCES, Written, settle

HEADS, WIDTH = 2, 6
IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0], [5, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
"""Texts of five, three, one and no tokens; 0 is padding."""


def sdpa(q, k, v, seen):
    return seen(F.scaled_dot_product_attention(q, k, v))


def written_out(q, k, v, seen):
    weights = F.dropout(torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1), 0.1, False)
    return seen(torch.matmul(weights.to(v.dtype), v))


def side_by_side(q, k, v, seen):
    n, heads, tokens, features = q.shape
    q, k, v = (x.reshape(n * heads, tokens, features) for x in (q, k, v))
    z = torch.bmm((torch.bmm(q, k.transpose(1, 2)) / math.sqrt(features)).softmax(-1), v)
    return seen(z.reshape(n, heads, tokens, features))


def by_letters(q, k, v, seen):
    scores = torch.einsum("nhqd,nhkd->nhqk", q, k) / math.sqrt(q.shape[-1])
    z = torch.einsum("nhqk,nkhd->nqhd", torch.softmax(scores, -1), v.transpose(1, 2))
    return seen(z.transpose(1, 2))


def values_first(q, k, v, seen):
    weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1)
    return seen((v.transpose(-1, -2) @ weights.transpose(-1, -2)).transpose(-1, -2))


def in_windows(q, k, v, seen):
    """Two windows of two tokens each, as rows of their own."""
    cut = [x.unflatten(2, (2, 2)).transpose(1, 2).flatten(0, 1) for x in (q, k, v)]
    z = F.scaled_dot_product_attention(*cut)
    return seen(z.unflatten(0, (len(q), 2)).transpose(1, 2).flatten(2, 3))


FORMS = (sdpa, written_out, side_by_side, by_letters, values_first, in_windows)


class Attention(nn.Module):
    """Attention written in one of these forms; `shown` is an identity around what its heads give."""

    def __init__(self, form):
        super().__init__()
        self.form = form
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.shown, self.mixed = nn.Identity(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (layer(x).unflatten(2, (HEADS, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        return self.mixed(self.form(q, k, v, self.shown).transpose(1, 2).flatten(2))


def attending(form, outputs=3):
    inputs = SEQUENCES[:, :4]
    parts = {"a": nn.Linear(WIDTH, WIDTH), "attention": Attention(form), "out": nn.Linear(4 * WIDTH, outputs)}
    return settle(Written(lambda net, x: net.out((x + net.attention(net.a(x))).flatten(1)), **parts)), inputs


def active(net, inputs, layer):
    """Return one activation per neuron, in double precision."""
    (batch,) = trace(net, inputs, [layer], batch_size=len(inputs))
    return neuron_activation(batch.activations[layer], neuron_axes(net, [layer])[layer], batch.kept).numpy()


def heard(module, net, inputs):
    """Return what a module gives."""
    seen = []
    hook = module.register_forward_hook(lambda module, given, output: seen.append(output))
    with torch.no_grad():
        net(inputs)
    hook.remove()
    return seen[0]


def length(vector):
    return math.sqrt(sum(float(number) ** 2 for number in vector))


@pytest.mark.parametrize("layers", [["attention@heads"], ["a", "attention@heads", "attention"]])
@pytest.mark.parametrize("form", FORMS)
def test_heads_are_found_by_operation(form, layers):
    net, inputs = attending(form)
    z = heard(net.attention.shown, net, inputs)
    found = collect(net, inputs, layers, RelevanceSettings.of("attnlrp"))
    assert found.shapes["attention@heads"] == (HEADS, 4)
    np.testing.assert_allclose(found.scores, net(inputs).detach(), rtol=1e-6)
    activations = active(net, inputs, "attention@heads")
    relevance = idc.relevance(net, inputs, [*layers, "attention.shown"], rule="attnlrp")
    alone = idc.relevance(net, inputs, layers, rule="attnlrp")["attention@heads"]
    for n, head in itertools.product(range(4), range(HEADS)):
        slow = sum(length(z[n, head, token]) for token in range(4)) / 4
        np.testing.assert_allclose(activations[n, head], slow, rtol=1e-9)
        for token in range(4):
            slow = sum(relevance["attention.shown"][n, head, token])
            np.testing.assert_allclose(relevance["attention@heads"][n, head, token], slow, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(alone, relevance["attention@heads"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("need_weights", [True, False])
def test_heads_of_multihead_attention(need_weights):
    """Queries, keys and values are the halves of the rows of ``in_proj_weight``; scores by loops over numbers."""
    parts = {"mha": nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), "out": nn.Linear(WIDTH, 3)}

    def run(net, x):
        return net.out(net.mha(x, x, x, need_weights=need_weights)[0].mean(1))

    net = settle(Written(run, **parts))
    with torch.no_grad():
        projected = SEQUENCES @ net.mha.in_proj_weight.T + net.mha.in_proj_bias
    q, k, v = (x.unflatten(2, (HEADS, -1)).numpy() for x in projected.chunk(3, 2))
    found = collect(net, SEQUENCES, ["mha@heads"], RelevanceSettings())
    z = np.zeros_like(v)
    for n, head, i in itertools.product(range(4), range(HEADS), range(5)):
        scores = np.array([q[n, i, head] @ k[n, j, head] / math.sqrt(3) for j in range(5)])
        weights = np.exp(scores) / np.exp(scores).sum()
        z[n, i, head] = sum(weights[j] * v[n, j, head] for j in range(5))
    expected = [[np.mean([length(z[n, i, head]) for i in range(5)]) for head in range(HEADS)] for n in range(4)]
    np.testing.assert_allclose(active(net, SEQUENCES, "mha@heads"), expected, rtol=1e-9)
    np.testing.assert_allclose(found.scores, net(SEQUENCES).detach(), rtol=1e-6)
    again = idc.relevance(net, SEQUENCES, ["mha", "mha@heads"], bias="redistribute")
    np.testing.assert_allclose(again["mha@heads"].sum((1, 2)), again["mha"].sum((1, 2)), rtol=1e-9)


def rmse(scores):
    return float(scores.square().mean().sqrt())


def test_a_head_is_silenced_as_if_its_features_were_not_read():
    net, inputs = attending(sdpa, outputs=1)
    found = ablate(net, inputs, np.zeros(4), "attention@heads", [1, 0], task="regression", seeds=1)
    assert found.neurons == HEADS
    for silent, measured in ((), found.baseline), ((1,), found.important[1]):

        def without(module, given, silent=silent):
            z = given[0].unflatten(2, (HEADS, -1)).clone()
            z[:, :, list(silent)] = 0
            return z.flatten(2)

        hook = net.attention.mixed.register_forward_pre_hook(without)
        np.testing.assert_allclose(measured, rmse(net(inputs).detach()), rtol=1e-9)
        hook.remove()


def reading(form, padding=0, outputs=3):
    """A text network that reads one token of a block, or all of them."""
    parts = {
        "words": nn.Embedding(10, WIDTH, padding_idx=padding),
        "block": nn.TransformerEncoderLayer(WIDTH, HEADS, 8, dropout=0.0, batch_first=True),
        "out": nn.Linear(WIDTH, outputs),
    }
    return settle(Written(lambda net, ids: net.out(form(net.block(net.words(ids)), ids)), **parts))


def first(x, ids):
    return x[:, 0]


def last(x, ids):
    return x[torch.arange(len(x)), (ids != 0).int().cumsum(1).argmax(1)]


def all_of_them(x, ids):
    return x.mean(1)


def test_padding_is_left_out_of_means():
    net = reading(all_of_them)
    block, units = (heard(module, net, IDS).numpy() for module in (net.block, net.block.linear1))
    found = {name: active(net, IDS, name) for name in ("block", "block@last", "block@class", "block.linear1")}
    for n, tokens in enumerate((5, 3, 1, 5)):  # a text of nothing but padding keeps it
        slow = [sum(block[n, i, f] for i in range(tokens)) / tokens for f in range(WIDTH)]
        np.testing.assert_allclose(found["block"][n], slow, rtol=1e-9)
        slow = [sum(max(0, units[n, i, f]) for i in range(tokens)) / tokens for f in range(8)]
        np.testing.assert_allclose(found["block.linear1"][n], slow, rtol=1e-9)
        np.testing.assert_allclose(found["block@last"][n], block[n, tokens - 1], rtol=1e-9)
        np.testing.assert_allclose(found["block@class"][n], block[n, 0], rtol=1e-9)
    np.testing.assert_allclose(collect(net, IDS, ["block"]).activations["block"], found["block"], rtol=1e-6)


def test_without_an_id_of_padding_all_tokens_count():
    net = reading(all_of_them, padding=None)
    expected = heard(net.block, net, IDS).mean(1)
    np.testing.assert_allclose(active(net, IDS, "block"), expected, rtol=1e-9)
    net = reading(all_of_them)
    net.padding_idx = None  # what a network says itself counts more than what its embedding says
    np.testing.assert_allclose(active(net, IDS, "block"), expected, rtol=1e-9)
    net.padding_idx = 5
    assert np.abs(active(net, IDS, "block") - expected.numpy()).max() > 1e-3


@pytest.mark.parametrize(("name", "form"), [("class", first), ("last", last)])
def test_one_token_has_all_relevance_where_the_network_reads_it(name, form):
    net = reading(form)
    found = idc.relevance(net, IDS[:3], ["block", f"block@{name}"])
    place = 0 if name == "class" else np.array([4, 2, 0])
    np.testing.assert_array_equal(found[f"block@{name}"], found["block"][np.arange(3), place])
    np.testing.assert_allclose(found[f"block@{name}"].sum(1), found["block"].sum((1, 2)), rtol=1e-9)


@pytest.mark.parametrize(("part", "place"), [("", [slice(None)] * 3), ("@class", [0, 0, 0]), ("@last", [4, 2, 0])])
def test_features_of_one_token_are_silenced_there_alone(part, place):
    net, ids = reading(all_of_them, outputs=1), IDS[:3]
    found = ablate(net, ids, np.zeros(3), f"block{part}", range(WIDTH), [2], 1, task="regression")

    def without(module, given, output):
        output = output.clone()
        for n in range(3):
            output[n, place[n], :2] = 0
        return output

    net.block.register_forward_hook(without)
    np.testing.assert_allclose(found.important, [rmse(net(ids).detach())], rtol=1e-9)


@pytest.mark.parametrize(("layer", "neurons"), [("block@class", WIDTH), ("block@last", WIDTH), ("block@heads", HEADS)])
def test_criteria_take_parts(layer, neurons):
    net = reading(first)
    train = torch.randint(0, 10, (30, 5), generator=torch.Generator().manual_seed(0))
    assert IDC(net, layer, 2).fit(train).update(train[:9]).covered > 0
    criterion = KMNC(net, [layer]).fit(train)
    assert criterion.update(train[:9]).score > 0
    assert criterion.sizes == (neurons,)


def test_gradient_methods_take_one_token_and_refuse_heads():
    net = reading(first)
    part, whole = (by_method(net, IDS, f"block{name}", "gradient-x-input") for name in ("@class", ""))
    np.testing.assert_allclose(part.values, whole.values, rtol=1e-9)
    with pytest.raises(UnsupportedOperationError, match="no module of their own"):
        by_method(net, IDS, "block@heads", "gradient-x-input")


def test_a_search_is_given_the_features_of_one_token():
    patches = nn.Conv2d(1, WIDTH, 2, stride=2)
    block = nn.TransformerEncoderLayer(WIDTH, HEADS, 8, batch_first=True)
    parts = {"patches": patches, "block": block, "out": nn.Linear(WIDTH, 3)}
    net = settle(Written(lambda net, x: net.out(net.block(net.patches(x).flatten(2).mT)[:, 0]), **parts))
    pictures = torch.rand(3, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    found = SearchedNetwork(net, pictures, ["block@class", "block"]).activations(pictures)
    expected = heard(net.block, net, pictures.double())
    np.testing.assert_allclose(found, torch.cat([expected[:, 0], expected.mean(1)], 1), rtol=1e-6)
    with pytest.raises(UnsupportedOperationError, match="no module of their own"):
        SearchedNetwork(net, pictures, ["block@heads"])


def test_where_neurons_of_parts_lie_and_what_they_are():
    net = reading(first)
    names = ["block", "block@class", "block@last", "block@heads"]
    assert neuron_axes(net, names) == dict(zip(names, (TOKENS, UNITS, UNITS, CHANNELS), strict=True))
    said = {name: neuron_sentence(net, name, (5, WIDTH)) for name in [*names, "block.linear1"]}
    for name, words in zip(
        said, ("one feature of the tokens", "class token", "last token", "head", "one unit"), strict=True
    ):
        assert words in said[name]
    assert "tokens that are no padding" in said["block"]
    assert neuron_sentence(net, "out", (3,)) == ""


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("out@class", "no tokens"),
        ("conv@class", "no tokens"),
        ("out@heads", "no attention whose heads can be told"),
        ("two@heads", "more than one attention"),
    ],
)
def test_parts_that_are_not_there_are_refused(layer, message):
    two = nn.TransformerEncoder(nn.TransformerEncoderLayer(7, 1, 8, batch_first=True), 2, enable_nested_tensor=False)
    parts = {"conv": nn.Conv2d(2, 3, 1), "two": two, "out": nn.Linear(147, 3)}
    net = settle(Written(lambda net, x: net.out(net.two(net.conv(x).flatten(1, 2)).flatten(1)), **parts))
    with pytest.raises(UnsupportedOperationError, match=message):
        collect(net, IMAGES, [layer])


def test_unknown_parts_are_refused_by_name():
    net = settle(Written(lambda net, x: net.out(x), out=nn.Linear(6, 3)))
    with pytest.raises(ModelError, match="@class or @last or @heads behind it"):
        collect(net, ROWS, ["out@middle"])
    with pytest.raises(ModelError, match="no layer 'other@class'"):
        collect(net, ROWS, ["other@class"])


def test_hooks_are_gone():
    net, inputs = attending(sdpa)
    collect(net, inputs, ["attention@heads", "a@class"], RelevanceSettings())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())


def test_the_command_line_takes_parts():
    net = reading(first)
    check_layers(net, ["block@heads", "block"])
    for unknown in ("block@nothing", "nothing@heads"):
        with pytest.raises(ModelError, match=f"no layer '{unknown}'"):
            check_layers(net, [unknown])
