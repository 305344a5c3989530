"""Which of several outputs holds the scores, how another is taken, and single probabilities of maps."""

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import idc_core as idc
from idc_core.analysis.network_check import check_network
from idc_core.datasets import DATASETS
from idc_core.errors import ModelError
from idc_core.models import MODELS
from idc_core.models.huggingface.layers import offered_layers
from idc_core.models.onnx import load_onnx
from idc_core.models.outputs import Output, likeliest


@pytest.fixture(autouse=True)
def registries():
    before = dict(DATASETS), dict(MODELS)
    yield
    for registry, old in zip((DATASETS, MODELS), before, strict=True):
        registry.clear()
        registry.update(old)


def wide(width, ending=""):
    return Output((None, width), ending)


@pytest.mark.parametrize(
    ("outputs", "counts", "taken"),
    [
        ({"box": wide(4), "prob": wide(2, "softmax")}, (), "prob"),
        ({"box": wide(4), "prob": wide(2)}, (2,), "prob"),
        ({"boxes": Output((None, 100, 4), "sigmoid"), "logits": Output((None, 100, 92))}, (), "logits"),
        ({"features": wide(8), "scores": wide(3)}, (), "scores"),
        ({"age": wide(101, "softmax"), "sex": wide(2, "softmax")}, (2,), "sex"),
        ({"mask": wide(5, "sigmoid"), "out": wide(5)}, (), "mask"),
        ({"0": wide(7), "1": wide(7)}, (7,), "0"),
        ({"0": wide(7), "1": wide(1)}, (2,), "1"),
        ({"0": wide(9), "1": wide(5)}, (3, 5), "1"),
        ({"0": Output(None), "1": Output(None, "log-softmax")}, (3,), "1"),
    ],
)
def test_width_counts_first_then_what_makes_it_then_its_name(outputs, counts, taken):
    assert likeliest(outputs, counts) == taken


def rnet(path, softmax=True):
    """A box of four numbers and scores of two classes, as mtcnn's second network returns them."""
    random = np.random.default_rng(0)
    weights = {"v": (6, 5), "box": (5, 4), "two": (5, 2)}
    arrays = {name: random.normal(size=shape).astype(np.float32) for name, shape in weights.items()}
    ends = [helper.make_node("Softmax", ["s"], ["prob1"], "prob", axis=1)] if softmax else []
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "v"], ["h"], "dense4"),
            helper.make_node("Relu", ["h"], ["r"], "relu"),
            helper.make_node("MatMul", ["r", "box"], ["dense5-2"], "dense5_2"),
            helper.make_node("MatMul", ["r", "two"], ["s"], "dense5_1"),
            *ends,
        ],
        "rnet",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
        [
            helper.make_tensor_value_info("dense5-2", TensorProto.FLOAT, ["n", 4]),
            helper.make_tensor_value_info("prob1" if softmax else "s", TensorProto.FLOAT, ["n", 2]),
        ],
        [numpy_helper.from_array(value, name) for name, value in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def two_classes(name="faces"):
    @idc.dataset(name, class_names=("other", "face"))
    def read(split):
        random = np.random.default_rng(split == "train")
        return random.normal(size=(40, 6)).astype(np.float32), np.arange(40) % 2


@pytest.mark.parametrize("softmax", [True, False])
def test_scores_are_taken_and_not_the_box_in_front(tmp_path, softmax):
    two_classes()
    path = rnet(tmp_path / "rnet.onnx", softmax)
    network = idc.load_model(path, data="faces")
    with torch.no_grad():
        assert network(torch.zeros(3, 6)).shape == (3, 2)
    name = "prob1" if softmax else "s"
    said = f"Its output '{name}' (n, 2) is analysed; others are 'dense5-2' (n, 4), which --output takes instead."
    assert said in network.remarks
    assert said in check_network(str(path), data="faces").notes
    box = load_onnx(path, scores=True, output="dense5-2")
    assert box(torch.zeros(3, 6)).shape == (3, 4)
    assert load_onnx(path, scores=True, output="1")(torch.zeros(3, 6)).shape == (3, 2)
    with pytest.raises(ModelError, match=r"has no output 'landmarks'; its outputs are dense5-2, "):
        load_onnx(path, scores=True, output="landmarks")


def test_an_output_by_name_is_another_network(tmp_path):
    path = rnet(tmp_path / "rnet.onnx")

    @idc.dataset("boxes", class_names=tuple("abcd"))
    def read(split):
        return np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32), np.arange(40) % 4

    taken = idc.load_model(path, data="boxes", output="dense5-2")
    assert [taken.card.dataset, taken(torch.zeros(1, 6)).shape[1]] == ["boxes", 4]
    two_classes()
    with pytest.raises(ModelError, match="returns 4 scores per input"):
        idc.load_model(path, data="faces", output="dense5-2")


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.hidden, self.box, self.two = nn.Linear(6, 5), nn.Linear(5, 4), nn.Linear(5, 2)

    def forward(self, x):
        seen = torch.relu(self.hidden(x))
        return {"box": self.box(seen), "heads": [self.two(seen).softmax(1), self.two(seen)]}


def test_outputs_of_a_setup_file_are_told_by_width_and_taken_by_name():
    two_classes()
    idc.network("heads", data="faces")(Heads)
    network = idc.load_model("heads")
    assert network(torch.zeros(3, 6)).shape == (3, 2)
    assert any(
        "Its output 'heads.0' (n, 2) is analysed; others are 'box' (n, 4), 'heads.1' (n, 2)" in remark
        for remark in network.remarks
    )
    inputs = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    idc.network("other", data="faces", output="heads.1")(Heads)
    other = idc.load_model("other")
    for layer in ("hidden", "input"):
        np.testing.assert_allclose(
            idc.relevance(network, inputs, [layer])[layer], idc.relevance(other, inputs, [layer])[layer], rtol=1e-5
        )
    assert network.card.fingerprint != other.card.fingerprint
    idc.network("none", data="faces", output="landmarks")(Heads)
    with pytest.raises(ModelError, match=r"has no output 'landmarks'; its outputs are box, heads.0, heads.1"):
        idc.load_model("none")


class Pooled(nn.Module):
    """A pooled summary beside the scores, as vision models of contrastive training have one: it runs, and is left."""

    def __init__(self):
        super().__init__()
        self.hidden, self.pool, self.classes = nn.Linear(6, 5), nn.MultiheadAttention(5, 1), nn.Linear(5, 2)
        self.summary = nn.Linear(5, 3)

    def forward(self, x):
        seen = torch.relu(self.hidden(x))
        self.summary(self.pool(seen, seen, seen)[0])
        return self.classes(seen)


def test_the_default_layer_is_one_that_the_scores_are_computed_from():
    two_classes()
    idc.network("pooled", data="faces")(Pooled)
    card = idc.load_model("pooled").card
    assert card.default_layer == "hidden"
    assert "summary" in card.layers


def test_an_attention_with_its_projections_is_offered_as_a_whole():
    assert offered_layers(Pooled()) == ("hidden", "pool", "classes", "summary")


class Map(nn.Module):
    """Segmentation by one sigmoid: a map of probabilities, most of them near 0."""

    def __init__(self, end):
        super().__init__()
        torch.manual_seed(0)
        self.conv1, self.conv2, self.end = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 1, 1), end
        with torch.no_grad():
            self.conv2.bias.fill_(-2)

    def forward(self, x):
        return self.end(self.conv2(torch.relu(self.conv1(x))))


@pytest.mark.parametrize("end", [torch.sigmoid, nn.Sigmoid(), lambda x: 1 / (1 + torch.exp(-x))])
def test_a_map_of_one_probability_is_explained_by_the_scores_before_it(end):
    pictures = np.random.default_rng(0).random((40, 1, 8, 8)).astype(np.float32)
    idc.dataset("maps", class_names=("ground", "thing"))(lambda split: (pictures, np.arange(40) % 2))
    idc.network("map", data="maps", explain="mean-pixels")(lambda: Map(end))
    idc.network("plain", data="maps", explain="mean-pixels")(lambda: Map(lambda x: x))
    network, plain = idc.load_model("map"), idc.load_model("plain")
    given = torch.from_numpy(pictures)
    with torch.no_grad():
        torch.testing.assert_close(network(given), plain(given), rtol=1e-4, atol=1e-4)
        assert (network(given).argmax(1) == 0).all()  # its mean score is below 0: never the second class
    assert "The sigmoid at its end is undone: the scores before it are explained." in network.remarks
    found, expected = (idc.relevance(one, given, ["conv1"])["conv1"] for one in (network, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("end", [torch.sigmoid, lambda x: torch.reciprocal(1 + (-x).exp())])
def test_one_probability_that_is_written_out_is_one(end):
    two_classes()

    class One(Heads):
        def forward(self, x):
            return end(self.box(torch.relu(self.hidden(x)))[:, 0])

    idc.network("one", data="faces")(One)
    network = idc.load_model("one")
    assert any("It gives one probability p of the second class" in remark for remark in network.remarks)


def test_the_layer_before_two_heads_is_analysed_first():
    two_classes()

    class Distilled(Heads):
        """Two heads whose scores are averaged, as in DeiT with a teacher."""

        def __init__(self):
            super().__init__()
            self.teacher = nn.Linear(5, 2)

        def forward(self, x):
            seen = torch.relu(self.hidden(x))
            return (self.two(seen) + self.teacher(seen)) / 2

    idc.network("distilled", data="faces")(Distilled)
    assert idc.load_model("distilled").card.default_layer == "hidden"
    idc.network("narrow", data="faces")(lambda: nn.Sequential(nn.Linear(6, 2), nn.ReLU(), nn.Linear(2, 2)))
    assert idc.load_model("narrow").card.default_layer == "0"
    assert not any("themselves" in remark for remark in idc.load_model("narrow").remarks)
    idc.network("logistic", data="faces")(lambda: nn.Sequential(nn.Linear(6, 2)))
    network = idc.load_model("logistic")
    assert network.card.default_layer == "0"
    assert "Layer '0' gives the scores themselves" in network.remarks[-1]


# -- what a network takes of numbers in rows and columns


def over_rows(path, shape):
    """A network over 8 x 8 numbers: rows one after the other, or a picture with a channel."""
    weights = {"w": (64, 5), "v": (5, 2)}
    arrays = {name: np.random.default_rng(0).normal(size=size).astype(np.float32) for name, size in weights.items()}
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["x"], ["f"], "flatten"),
            helper.make_node("MatMul", ["f", "w"], ["h"], "fc1"),
            helper.make_node("Relu", ["h"], ["r"], "relu"),
            helper.make_node("MatMul", ["r", "v"], ["y"], "fc2"),
        ],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(value, name) for name, value in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(("shape", "highest"), [((8, 8), 16), ((1, 8, 8), 16 / 255)])
def test_the_network_is_asked_whether_rows_and_columns_are_pictures(tmp_path, shape, highest):
    numbers = np.random.default_rng(0).integers(0, 17, (40, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "it.npz", x=numbers, y=np.arange(40) % 2)
    network = idc.load_model(over_rows(tmp_path / "it.onnx", shape), data=tmp_path / "it.npz")
    data = DATASETS[network.card.dataset].load("train", None, None)
    assert data.inputs.shape[1:] == shape
    assert float(data.inputs.max()) == pytest.approx(highest)


def test_pictures_come_without_their_channel_where_a_network_takes_rows(tmp_path):
    pictures = np.random.default_rng(0).random((40, 1, 8, 8)).astype(np.float32)
    idc.dataset("grey", class_names=("a", "b"))(lambda split: (pictures, np.arange(40) % 2))
    network = idc.load_model(over_rows(tmp_path / "it.onnx", (8, 8)), data="grey")
    assert any("rows and columns without a channel, as the network's file asks" in one for one in network.remarks)
    assert network(torch.from_numpy(pictures)).shape == (40, 2)
