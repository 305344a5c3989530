"""Whole networks: what they predict equals onnxruntime's, whatever the batch; relevance equals the torch network's."""

import re
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from torch import nn

import idc_core
from idc_core.models.onnx import load_onnx
from idc_core.models.onnx.operators import normalisation
from idc_core.models.onnx.reading import read_graph
from idc_core.models.onnx.scores import Asked

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 5), nn.Conv2d(4, 8, 5, padding=2)
        self.dense1, self.dense2 = nn.Linear(8 * 3 * 3, 20), nn.Linear(20, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.avg_pool2d(F.relu(self.conv2(x)), 2)
        return self.dense2(F.relu(self.dense1(x.flatten(1))))


class Residual(nn.Module):
    """A stem, a residual and a grouped, shuffled block, as in ResNet, MobileNet and ShuffleNet."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.deep, self.wide = nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.Conv2d(8, 8, 1, groups=2)
        self.head = nn.Linear(8, 5)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        x = F.relu6(self.deep(x)) + x
        n, c, h, w = x.shape
        x = self.wide(x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w))
        return self.head(F.hardswish(x).mean((2, 3)))


class Branches(nn.Module):
    """Branches that are joined, as in Inception, SqueezeNet and DenseNet, and layers that make pictures larger."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 5, 2)
        self.left, self.right = nn.Conv2d(6, 4, 1), nn.Conv2d(6, 4, (1, 3), padding=(0, 1))
        self.up, self.last = nn.ConvTranspose2d(14, 6, 3, 2, 1, 1), nn.Conv2d(6, 5, 1)

    def forward(self, x):
        x = F.leaky_relu(self.first(x))
        pooled = F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        x = torch.cat([F.elu(self.left(x)), F.prelu(self.right(x), torch.tensor([0.1])), pooled], 1)
        x = F.interpolate(self.last(self.up(x)), scale_factor=2.0, mode="nearest")
        return F.log_softmax(F.adaptive_max_pool2d(F.pad(x, (1, 2, 0, 1), mode="reflect"), 1).flatten(1), 1)


class Transformer(nn.Module):
    """Patches, attention written out, layer normalisation and GELU, as in ViT and BERT."""

    def __init__(self):
        super().__init__()
        self.patches, self.token = nn.Conv2d(3, 8, 8, 8), nn.Parameter(torch.randn(1, 1, 8))
        self.places = nn.Parameter(torch.randn(1, 17, 8))
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24, bias=False), nn.Linear(8, 8)
        self.mlp, self.head = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)), nn.Linear(8, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token + 0 * x[:, :1], x], 1) + self.places
        n, length, size = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(n, length, 3, 2, size // 2).permute(2, 0, 3, 1, 4).unbind(0)
        scores = F.softmax(q @ k.transpose(-2, -1) / 2, -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(n, length, size))
        return self.head((x + self.mlp(x))[:, 0])


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(20, 6), nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.gru, self.head = nn.GRU(10, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        x, _ = self.gru(self.lstm(self.words(x))[0])
        return self.head(x[:, -1])


PICTURES = (3, 32, 32)
NETWORKS = {"lenet": (LeNet, (1, 16, 16)), "residual": (Residual, PICTURES), "branches": (Branches, PICTURES)}
NETWORKS |= {"transformer": (Transformer, PICTURES), "text": (Text, (7,))}


def network_of(name):
    torch.manual_seed(0)
    build, shape = NETWORKS[name]
    inputs = torch.randint(0, 20, (3, *shape)) if name == "text" else torch.rand(3, *shape)
    return build().eval(), inputs


def export(model, inputs, path, opset, dynamo=False, batch=None, **more):
    """Export with an open batch size, or with the batch size that is written into the graph."""
    given = inputs if batch is None else inputs[:batch]
    if batch is None:
        more |= {"dynamic_shapes": ({0: "n"},)} if dynamo else {"dynamic_axes": {"x": {0: "n"}, "y": {0: "n"}}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (given,),
            str(path),
            opset_version=opset,
            dynamo=dynamo,
            input_names=["x"],
            output_names=["y"],
            verbose=False,
            **more,
        )
    return path


def runtime(path, *inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {one.name: x for one, x in zip(session.get_inputs(), inputs, strict=True)})


def predictions(network, x):
    with torch.no_grad():
        return network(x)


def assert_equals_runtime(path, inputs, batch=None):
    found = predictions(load_onnx(path), inputs)
    size = len(inputs) if batch is None else batch
    parts = [runtime(path, part.numpy())[0] for part in inputs.split(size)]
    np.testing.assert_allclose(found.numpy(), np.concatenate(parts), atol=1e-4)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("batch", [None, 1])
@pytest.mark.parametrize("opset", [9, 12, 17, 20])
@pytest.mark.parametrize("name", NETWORKS)
def test_predictions_equal_the_runtimes_whatever_the_batch(name, opset, batch, tmp_path):
    model, inputs = network_of(name)
    assert_equals_runtime(export(model, inputs, tmp_path / "a.onnx", opset, batch=batch), inputs, batch)


NEWER = [(18, None), (23, 1), (18, 1), (23, None)]
"""Opsets and batches of the newer exporter; every network has one of the first two in the slow tests."""


@pytest.mark.parametrize(
    ("name", "opset", "batch"),
    [
        pytest.param(name, *one, marks=pytest.mark.slow if NEWER.index(one) == place % 2 else pytest.mark.rare)
        for place, name in enumerate(("residual", "lenet", "transformer", "text", "branches"))
        for one in NEWER
    ],
)
def test_predictions_of_the_newer_exporter(name, opset, batch, tmp_path):
    model, inputs = network_of(name)
    assert_equals_runtime(export(model, inputs, tmp_path / "a.onnx", opset, True, batch), inputs, batch)


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    # VGG, AlexNet and ZFNet have up to half a gigabyte of weights, and no operator that the others lack.
    [file for file in sorted(LIGHT.glob("*.onnx")) if not re.search("vgg|alexnet|zfnet", file.stem)],
    ids=lambda file: file.stem,
)
def test_published_architectures(file, tmp_path):
    """Networks of the onnx package, whose weights are all one number, with random ones instead."""
    proto = onnx.load(file)
    random = np.random.default_rng(0)
    for node in [node for node in proto.graph.node if node.op_type == "ConstantOfShape"]:
        shape = next(numpy_helper.to_array(i) for i in proto.graph.initializer if i.name == node.input[0])
        fan = max(1, int(np.prod(shape[1:])))
        spread = random.standard_normal(shape, np.float32) * np.sqrt(2 / fan)
        values = spread if len(shape) > 1 else 0.5 + random.random(shape, np.float32) / 2
        proto.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
        proto.graph.node.remove(node)
    path = tmp_path / "a.onnx"
    onnx.save(proto, path)
    assert [len(read_graph(path, scores).inputs) for scores in (None, Asked())] == [1, 1]
    x = torch.rand(2, 3, 224, 224)
    expected = np.concatenate([runtime(path, one[None].numpy())[0] for one in x])
    found = predictions(load_onnx(path), x).numpy()
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-4 * max(1, np.abs(expected).max()))


def test_a_perceptron_of_scikit_learn(tmp_path):
    digits = load_digits()
    inputs = (digits.data / 16).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlp = MLPClassifier((12,), max_iter=5, random_state=0).fit(inputs[:600], digits.target[:600])
    nodes, constants, value = [], [], "x"
    for i, (weight, bias) in enumerate(zip(mlp.coefs_, mlp.intercepts_, strict=True)):
        constants += [numpy_helper.from_array(weight.astype(np.float32), f"w{i}")]
        constants += [numpy_helper.from_array(bias.astype(np.float32), f"b{i}")]
        nodes += [helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"], f"dense {i}")]
        nodes += [helper.make_node("Add", [f"b{i}", f"m{i}"], [f"a{i}"])]
        nodes += [helper.make_node("Softmax" if i else "Relu", [f"a{i}"], [f"r{i}"])]
        value = f"r{i}"
    path = tmp_path / "a.onnx"
    io = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 64), (value, 10))
    ]
    onnx.save(helper.make_model(helper.make_graph(nodes, "mlp", io[:1], io[1:], constants)), path)
    network = load_onnx(path)
    np.testing.assert_allclose(predictions(network, torch.from_numpy(inputs)), mlp.predict_proba(inputs), atol=1e-5)
    assert network.layers == ("dense_0", "dense_1")
    assert isinstance(network.dense_0, nn.Linear)
    assert network.dense_0.bias is not None
    names = ["dense_0", "Add_1", "Relu_1", "dense_1", "Add_2", "Softmax_1"]
    assert [name for name, _ in network.named_children()] == names


@pytest.mark.parametrize("rule", ["epsilon", "alpha-beta", "composite"])
@pytest.mark.parametrize("name", ["lenet", "residual"])
def test_relevance_equals_the_torch_networks(name, rule, tmp_path):
    model, inputs = network_of(name)
    # Else the exporter takes the batch normalisation into the convolution, which is another network to some rules.
    whole = torch.onnx.TrainingMode.PRESERVE
    network = load_onnx(export(model, inputs, tmp_path / "a.onnx", 17, training=whole))
    assert {type(network.get_submodule(layer)) for layer in network.layers} <= {
        nn.Conv2d,
        nn.Linear,
        normalisation.BatchNorm,
    }
    pairs = {"lenet": ["conv1", "conv2", "dense1", "dense2"], "residual": ["stem", "norm", "deep", "wide", "head"]}[
        name
    ]
    layers = [next(layer for layer in network.layers if layer.startswith(own)) for own in pairs]
    ours, theirs = (
        next(idc_core.trace(one, inputs, names, idc_core.RelevanceSettings(rule)))
        for one, names in ((network, [*layers, "input"]), (model, [*pairs, "input"]))
    )
    torch.testing.assert_close(ours.scores, theirs.scores, atol=1e-5, rtol=1e-5)
    for layer, own in zip([*layers, "input"], [*pairs, "input"], strict=True):
        torch.testing.assert_close(ours.activations[layer], theirs.activations[own], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours.relevance[layer], theirs.relevance[own], atol=1e-5, rtol=1e-4)


def test_relevance_is_conserved(tmp_path):
    model, inputs = network_of("lenet")
    network = load_onnx(export(model, inputs, tmp_path / "a.onnx", 17))
    settings = idc_core.RelevanceSettings("epsilon", epsilon=1e-9, bias="redistribute")
    layers = ["input", *(name for name, _ in network.named_children() if "Constant" not in name)]
    (batch,) = idc_core.trace(network, inputs, layers, settings)
    start = batch.scores.amax(1)
    for layer in layers:
        torch.testing.assert_close(batch.relevance[layer].flatten(1).sum(1), start, atol=1e-4, rtol=1e-4)


def test_imported_weights_can_be_trained(tmp_path):
    model, inputs = network_of("residual")
    network = load_onnx(export(model, inputs, tmp_path / "a.onnx", 17))
    before = predictions(network, inputs)
    optimiser = torch.optim.SGD(network.parameters(), 0.1)
    F.cross_entropy(network(inputs), torch.tensor([0, 1, 2])).backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    optimiser.step()
    assert not torch.allclose(predictions(network, inputs), before)
