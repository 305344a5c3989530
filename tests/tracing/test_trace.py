"""The streaming pass: what it yields does not depend on how the inputs come or how they are cut into batches."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from idc_core import relevance
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, DataError, ModelError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.neurons import neuron_activation, neuron_axes, neuron_relevance
from idc_core.tracing.trace import collect, trace
from tests.lrp.networks import ROWS, SEQUENCES, TOKENS, Written, numbers, settle

LAYERS = ["input", "conv", "pool", "out"]
IMAGES = numbers(23, 2, 7, 7)
Z = RelevanceSettings("z", bias="redistribute")


def convolutional(dtype=torch.float64):
    def forward(net, x):
        return net.out(net.pool(F.relu(net.conv(x))).view(len(x), -1))

    return settle(Written(forward, conv=nn.Conv2d(2, 4, 3), pool=nn.MaxPool2d(2), out=nn.Linear(16, 3))).to(dtype)


def dataset(inputs):
    return Dataset(
        name="images",
        split="test",
        inputs=inputs,
        targets=np.zeros(len(inputs), np.int64),
        class_names=("a", "b", "c"),
        task="classification",
        vocabulary=(),
        texts=(),
        ids=np.arange(len(inputs)),
        fingerprint="0",
    )


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


@pytest.fixture(scope="module")
def expected():
    return collect(convolutional(), IMAGES, LAYERS, Z)


def assert_same(found, expected, rtol=1e-6):
    np.testing.assert_allclose(found.scores, expected.scores, rtol=rtol, atol=rtol)
    assert list(found.activations) == list(expected.activations)
    for layer, values in expected.activations.items():
        np.testing.assert_allclose(found.activations[layer], values, rtol=rtol, atol=rtol * np.abs(values).max())
    for layer, values in expected.relevance.items():
        np.testing.assert_allclose(found.relevance[layer], values, rtol=rtol, atol=rtol * np.abs(values).max())
    assert found.shapes == expected.shapes


class TestContent:
    def test_against_plain_passes(self, expected):
        network = convolutional()
        with torch.no_grad():
            active = F.relu(network.conv(IMAGES))
            pooled = F.max_pool2d(active, 2)
            scores = network.out(pooled.flatten(1))
        np.testing.assert_allclose(expected.scores, scores, rtol=1e-6)
        np.testing.assert_array_equal(expected.predictions, scores.argmax(1))
        assert expected.predictions.dtype == np.int64
        np.testing.assert_allclose(expected.activations["conv"], active.mean((2, 3)), rtol=1e-6)
        np.testing.assert_allclose(expected.activations["pool"], pooled.mean((2, 3)), rtol=1e-6)
        np.testing.assert_allclose(expected.activations["input"], IMAGES.mean((2, 3)), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(expected.activations["out"], scores, rtol=1e-6)
        assert expected.shapes == {"input": (2, 7, 7), "conv": (4, 5, 5), "pool": (4, 2, 2), "out": (3,)}

    def test_relevance_of_neurons_sums_positions(self, expected):
        network = convolutional()
        maps = relevance(network, IMAGES, LAYERS, "z", bias="redistribute")
        for layer, values in maps.items():
            summed = values.reshape(*values.shape[:2], -1).sum(2)
            np.testing.assert_allclose(expected.relevance[layer], summed, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(expected.relevance[layer].sum(1), expected.scores.max(1), rtol=1e-4)

    def test_arrays_are_float32_and_read_only(self, expected):
        for array in (expected.scores, *expected.activations.values(), *expected.relevance.values()):
            assert array.dtype == np.float32
            assert not array.flags.writeable

    def test_batches_say_where_they_start(self):
        batches = list(trace(convolutional(), IMAGES, ["conv"], batch_size=10))
        assert [(batch.start, len(batch.scores)) for batch in batches] == [(0, 10), (10, 10), (20, 3)]
        assert not any(batch.relevance for batch in batches)
        assert batches[0].activations["conv"].shape == (10, 4, 5, 5)

    def test_nothing_that_is_yielded_holds_a_graph(self):
        batch = next(trace(convolutional(), IMAGES, ["conv"], Z))
        for value in (batch.scores, *batch.activations.values(), *batch.relevance.values()):
            assert not value.requires_grad


@pytest.mark.parametrize("batch_size", [1, 2, 7, 23, 100])
def test_batch_size_does_not_matter(expected, batch_size):
    assert_same(collect(convolutional(), IMAGES, LAYERS, Z, batch_size=batch_size), expected)


@pytest.mark.parametrize("batch_size", [1, 5, 23])
@pytest.mark.parametrize("rule", ["epsilon", "alpha-beta", "composite"])
def test_batch_size_does_not_matter_in_single_precision(rule, batch_size):
    network, settings = convolutional(torch.float32), RelevanceSettings(rule)
    whole = collect(network, IMAGES, LAYERS, settings)
    assert_same(collect(network, IMAGES, LAYERS, settings, batch_size=batch_size), whole, rtol=1e-5)


@pytest.mark.parametrize("settings", [None, Z])
@pytest.mark.parametrize("target", ["predicted", 1])
def test_the_first_of_few_inputs_does_not_run_twice(monkeypatch, expected, settings, target):
    monkeypatch.setattr("idc_core.tracing.batch_size._MEMORY", 2**14)
    ran = []
    network = convolutional()
    collect(network, IMAGES[:4], LAYERS, settings, target=target)  # which looks whether inputs keep apart
    network.conv.register_forward_hook(lambda module, args, output: ran.append(len(output)))
    found = collect(network, IMAGES, LAYERS, settings, target=target)
    assert sum(ran) == len(IMAGES)
    whole = collect(convolutional(), IMAGES, LAYERS, settings, target=target, batch_size=len(IMAGES))
    assert_same(found, whole)


def test_a_single_batch_stays_whole():
    assert [len(batch.scores) for batch in trace(convolutional(), IMAGES, ["conv"], Z)] == [len(IMAGES)]


HALVES = [IMAGES[:9], IMAGES[9:]]
LABELS = torch.zeros(23)
INPUTS = {
    "array": IMAGES.numpy(),
    "single precision": IMAGES.float(),
    "read-only array": read_only(IMAGES.numpy()),
    "reversed view": np.ascontiguousarray(IMAGES.numpy()[::-1])[::-1],
    "other byte order": IMAGES.numpy().astype(">f8"),
    "strided view": IMAGES.repeat(1, 2, 1, 1)[:, :2],
    "channels last": IMAGES.contiguous(memory_format=torch.channels_last),
    "requires grad": IMAGES.clone().requires_grad_(),
    "dataset": dataset(read_only(IMAGES.numpy())),
    "list of tensors": HALVES,
    "list of arrays": [half.numpy() for half in HALVES],
    "pairs": [(half, LABELS[: len(half)]) for half in HALVES],
    "empty batches between": [IMAGES[:0], HALVES[0], IMAGES[:0], HALVES[1]],
    "data loader": DataLoader(TensorDataset(IMAGES, LABELS), batch_size=6),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_in_every_form(expected, name):
    rtol = 1e-5 if name == "single precision" else 1e-6
    assert_same(collect(convolutional(), INPUTS[name], LAYERS, Z), expected, rtol)


def test_an_iterator_is_read_as_it_comes(expected):
    taken = []

    def batches():
        for half in HALVES:
            taken.append(len(half))
            yield half

    parts = trace(convolutional(), batches(), ["conv"], batch_size=4)
    next(parts)
    assert taken == [9]
    assert_same(collect(convolutional(), batches(), LAYERS, Z), expected)


def test_batches_of_different_lengths_keep_their_places():
    network = settle(Written(lambda net, x: net.out(net.a(x).relu().sum(1)), a=nn.Linear(6, 4), out=nn.Linear(4, 3)))
    parts = [numbers(3, 5, 6), numbers(2, 9, 6)]
    found = relevance(network, [parts[0], parts[1]], ["out"], batch_size=2)["out"]
    alone = [relevance(network, part, ["out"])["out"] for part in parts]
    np.testing.assert_allclose(found, np.concatenate(alone), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_is_the_networks(dtype):
    found = relevance(convolutional(dtype), IMAGES.float(), ["input"])
    assert found["input"].dtype == (np.float32 if dtype == torch.float32 else np.float64)
    batch = next(trace(convolutional(dtype), IMAGES.numpy(), ["conv"]))
    assert batch.activations["conv"].dtype == dtype


class TestTargets:
    @pytest.mark.parametrize("form", [list, tuple, np.array, torch.tensor, lambda classes: (c for c in classes)])
    def test_a_class_an_input(self, form):
        network, classes = convolutional(), [index % 3 for index in range(23)]
        found = relevance(network, IMAGES, ["out"], target=form(classes), batch_size=5)["out"]
        with torch.no_grad():
            scores = network(IMAGES)
        expected = np.where(np.arange(3) == np.array(classes)[:, None], scores, 0)
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    @pytest.mark.parametrize("target", [2, np.int64(2)])
    def test_one_class_for_all(self, target):
        network = convolutional()
        found = relevance(network, HALVES, ["conv"], target=target)["conv"]
        np.testing.assert_array_equal(found, relevance(network, HALVES, ["conv"], target=[2] * 23)["conv"])

    @pytest.mark.parametrize("inputs", [lambda: IMAGES, lambda: HALVES, lambda: iter(HALVES)])
    @pytest.mark.parametrize("count", [0, 9, 22, 24])
    def test_of_another_length(self, inputs, count):
        with pytest.raises(DataError, match=f"{count} target classes"):
            relevance(convolutional(), inputs(), ["out"], target=np.zeros(count, int))

    def test_the_predicted_class_is_the_default(self):
        network = convolutional()
        with torch.no_grad():
            predicted = network(IMAGES).argmax(1)
        np.testing.assert_array_equal(
            relevance(network, IMAGES, ["conv"], target=predicted)["conv"], relevance(network, IMAGES, ["conv"])["conv"]
        )


class TestOutputs:
    @pytest.mark.parametrize("end", [nn.Softmax(1), nn.LogSoftmax(1)])
    @pytest.mark.parametrize("settings", [None, Z])
    def test_scores_are_those_before_the_softmax(self, end, settings):
        network = settle(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3), end))
        found = collect(network, ROWS, ["0"], settings)
        np.testing.assert_allclose(found.scores, network[:3](ROWS).detach(), rtol=1e-6)
        if settings:
            np.testing.assert_allclose(found.relevance["0"].sum(1), found.scores.max(1), rtol=1e-5)

    def test_the_first_of_several_heads_counts(self):
        network = settle(
            Written(
                lambda net, x: (net.out(net.a(x).relu()), net.b(x)),
                a=nn.Linear(6, 5),
                b=nn.Linear(6, 7),
                out=nn.Linear(5, 3),
            )
        )
        found = collect(network, ROWS, ["a", "b"], Z)
        assert found.scores.shape == (4, 3)
        np.testing.assert_allclose(found.relevance["a"].sum(1), found.scores.max(1), rtol=1e-5)
        assert not found.relevance["b"].any()
        np.testing.assert_allclose(found.activations["b"], network.b(ROWS).detach(), rtol=1e-6)

    @pytest.mark.parametrize("shape", [(-1, 1), (-1,)])
    def test_one_number_an_input(self, shape):
        network = settle(
            Written(lambda net, x: net.out(net.a(x).tanh()).view(shape), a=nn.Linear(6, 5), out=nn.Linear(5, 1))
        )
        found = collect(network, ROWS, ["a"], Z)
        assert found.scores.shape == (4, 1)
        assert not found.predictions.any()
        np.testing.assert_allclose(found.relevance["a"].sum(1), found.scores[:, 0], rtol=1e-5)


class TestNeurons:
    def test_a_layer_used_twice_is_averaged_and_its_relevance_summed(self):
        network = settle(
            Written(
                lambda net, x: net.out(torch.cat([net.a(x).relu(), net.a(-x).relu()], 1)),
                a=nn.Linear(6, 5),
                out=nn.Linear(10, 3),
            )
        )
        found = collect(network, ROWS, ["a", "out"], Z)
        uses = torch.stack([F.relu(network.a(ROWS)), F.relu(network.a(-ROWS))]).detach()
        np.testing.assert_allclose(found.activations["a"], uses.mean(0), rtol=1e-6)
        np.testing.assert_allclose(found.relevance["a"].sum(1), found.scores.max(1), rtol=1e-5)

    def test_the_activation_function_right_behind_belongs_to_the_layer(self):
        def forward(net, x):
            y = net.a(x)
            assert y.dim() == 2
            assert y.size(0) == y.shape[0] == len(y)
            return net.out(F.dropout(net.b(F.relu(y)), 0.5, net.training).sigmoid())

        network = settle(Written(forward, a=nn.Linear(6, 5), b=nn.Linear(5, 4), out=nn.Linear(4, 3)))
        for settings in (None, Z):
            found = collect(network, ROWS, ["a", "b"], settings).activations
            hidden = F.relu(network.a(ROWS))
            np.testing.assert_allclose(found["a"], hidden.detach(), rtol=1e-6)
            np.testing.assert_allclose(found["b"], network.b(hidden).detach(), rtol=1e-6)

    @pytest.mark.parametrize("settings", [None, Z])
    def test_an_output_used_beside_its_activation_function_is_taken_before_it(self, settings):
        network = settle(
            Written(lambda net, x: net.out((lambda y: y + F.relu(y))(net.a(x))), a=nn.Linear(6, 5), out=nn.Linear(5, 3))
        )
        found = collect(network, ROWS, ["a"], settings)
        np.testing.assert_allclose(found.activations["a"], network.a(ROWS).detach(), rtol=1e-6)

    def test_units_lie_last_and_channels_second(self):
        network = settle(
            Written(
                lambda net, x: net.out(net.conv(net.norm(net.dense(x)).transpose(1, 2)).relu().mean(2)),
                dense=nn.Linear(6, 4),
                norm=nn.LayerNorm(4),
                conv=nn.Conv1d(4, 7, 2),
                out=nn.Linear(7, 3),
            )
        )
        layers = ["dense", "norm", "conv", "out"]
        assert neuron_axes(network, layers) == {"dense": -1, "norm": -1, "conv": 1, "out": -1}
        found = collect(network, SEQUENCES, layers, Z)
        assert [found.activations[layer].shape[1] for layer in layers] == [4, 4, 7, 3]
        np.testing.assert_allclose(found.activations["dense"], network.dense(SEQUENCES).mean(1).detach(), rtol=1e-5)
        for layer in layers:
            np.testing.assert_allclose(found.relevance[layer].sum(1), found.scores.max(1), rtol=1e-5)

    def test_units_of_maps_lie_last(self):
        network = settle(Written(lambda net, x: net.a(x.permute(0, 2, 3, 1)).mean((1, 2)), a=nn.Linear(2, 3)))
        found = collect(network, IMAGES, ["a"], Z)
        np.testing.assert_allclose(found.activations["a"], found.scores, rtol=1e-5, atol=1e-6)

    def test_mean_and_sum_over_positions(self):
        value = numbers(2, 3, 4, 5)
        np.testing.assert_allclose(neuron_activation(value), value.mean((2, 3)))
        np.testing.assert_allclose(neuron_relevance(value, -1), value.sum((1, 2)))
        assert neuron_activation(ROWS, -1) is ROWS

    @pytest.mark.parametrize("batch_first", [True, False])
    @pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
    def test_recurrent_layers_have_one_row_an_input(self, kind, batch_first):
        def forward(net, x):
            _, state = net.a(x if batch_first else x.transpose(0, 1))
            return net.out((state[0] if isinstance(state, tuple) else state)[-1])

        network = settle(Written(forward, a=kind(6, 4, batch_first=batch_first), out=nn.Linear(4, 3)))
        found = collect(network, SEQUENCES, ["a"], Z)
        sequence = network.a(SEQUENCES if batch_first else SEQUENCES.transpose(0, 1))[0].detach()
        sequence = sequence if batch_first else sequence.transpose(0, 1)
        assert found.shapes["a"] == (5, 4)
        np.testing.assert_allclose(found.activations["a"], sequence.mean(1), rtol=1e-5)
        np.testing.assert_allclose(found.relevance["a"].sum(1), found.scores.max(1), rtol=1e-5)

    def test_whole_numbers_are_kept_as_they_are(self):
        network = settle(Written(lambda net, x: net.out(net.a(x).mean(1)), a=nn.Embedding(10, 6), out=nn.Linear(6, 3)))
        for tokens in (TOKENS, TOKENS.int(), TOKENS.numpy()):
            batch = next(trace(network, tokens, ["input", "a"], Z))
            np.testing.assert_array_equal(batch.activations["input"], TOKENS)
            assert batch.relevance["input"].shape == TOKENS.shape
            np.testing.assert_allclose(batch.relevance["a"].sum(2), batch.relevance["input"])
        pictures = Written(lambda net, x: net.out(x.to(net.out.weight.dtype) / 255), out=nn.Linear(6, 3))
        found = collect(settle(pictures), (ROWS.abs() * 50).to(torch.uint8), ["out"])
        assert found.scores.shape == (4, 3)


class TestProgress:
    def test_is_told_after_every_batch(self):
        told = []
        collect(convolutional(), IMAGES, ["conv"], batch_size=10, on_progress=lambda *news: told.append(news))
        assert [news[:2] for news in told] == [(10, 23), (20, 23), (23, 23)]
        assert {news[2] for news in told} == {"inputs through the network"}

    def test_stops_the_work(self):
        told = []

        def stop(done, total, label):
            told.append(done)
            return done < 10

        with pytest.raises(CancelledError, match="10 of 23"):
            collect(convolutional(), IMAGES, ["conv"], batch_size=5, on_progress=stop)
        assert told == [5, 10]


def test_layers_may_repeat_and_be_a_single_name():
    network = convolutional()
    once = relevance(network, IMAGES, "conv")
    twice = relevance(network, IMAGES, ["conv", "conv"])
    assert list(once) == list(twice) == ["conv"]
    np.testing.assert_array_equal(once["conv"], twice["conv"])


def test_an_unknown_layer_is_refused_before_any_input_is_read():
    def inputs():
        pytest.fail("an input was read")
        yield

    with pytest.raises(ModelError, match="fc9"):
        collect(convolutional(), inputs(), ["fc9"])
