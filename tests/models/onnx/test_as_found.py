"""ONNX files as they are found: quantised, with states and rates as inputs, a batch of one, time before the inputs."""

import numpy as np
import pytest
import torch
from onnx import helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import nn

import idc_core as idc
from idc_core.models.onnx import load_onnx
from tests.models.onnx.test_control import WHOLE, F, agree, constant, theirs, value, written

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(6, 2, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 12),
        nn.ReLU(),
        nn.Linear(12, 3),
    ).eval()
    path = tmp_path_factory.mktemp("net") / "float.onnx"
    torch.onnx.export(
        net,
        (torch.from_numpy(X[:1]),),
        path,
        dynamo=False,
        dynamic_axes={"input": {0: "n"}},
        input_names=["input"],
        opset_version=17,
    )
    return path


class Reader(CalibrationDataReader):
    def __init__(self):
        self.rows = iter([{"input": x[None]} for x in X])

    def get_next(self):
        return next(self.rows, None)


@pytest.mark.parametrize("way", ["dynamic", "QDQ"])
def test_a_quantised_network_is_computed_as_floats_and_said_to_be(exported, tmp_path, way):
    path = tmp_path / "small.onnx"
    if way == "dynamic":
        quantize_dynamic(exported, path, weight_type=QuantType.QUInt8)
    else:
        quantize_static(exported, path, Reader(), quant_format=QuantFormat.QDQ, per_channel=True)
    network = load_onnx(path, scores=True)
    assert any("computed as floats" in sentence for sentence in network.remarks)
    with torch.no_grad():
        ours = network(torch.from_numpy(X)).numpy()
    rounded, plain = theirs(path, X), theirs(exported, X)
    size = np.abs(plain).max()
    assert 1e-4 * size < np.abs(ours - plain).max() < 0.02 * size  # of weights the rounded ones are there
    assert np.abs(ours - rounded).max() < 0.25 * size
    found = idc.relevance(network, X, ["input"], bias="redistribute")["input"]
    assert np.allclose(found.reshape(len(X), -1).sum(1), ours.max(1), atol=1e-4)


def test_inputs_are_held_at_a_number(tmp_path):
    """A rate chooses a branch, and a state begins at 0: as voice detectors have them."""
    nodes = [
        helper.make_node("Equal", ["rate", "fast"], ["c"]),
        helper.make_node("Add", ["x", "state"], ["z"]),
        helper.make_node(
            "If",
            ["c"],
            ["y"],
            then_branch=helper.make_graph([helper.make_node("MatMul", ["z", "w"], ["a"])], "a", [], [value("a")]),
            else_branch=helper.make_graph([helper.make_node("MatMul", ["z", "v"], ["b"])], "b", [], [value("b")]),
        ),
    ]
    w = RANDOM.normal(size=(4, 3)).astype(np.float32)
    inputs = (("x", F, ["n", 4]), ("state", F, ["n", 4]), ("rate", WHOLE, []))
    path = written(tmp_path, nodes, [constant(w, "w"), constant(-w, "v"), constant(16, "fast", np.int64)], inputs)
    x = X.reshape(-1, 4)[:5]
    network = idc.load_model(path, held={"rate": 16, "state": 0.5})
    with torch.no_grad():
        assert np.allclose(network(torch.from_numpy(x)), (x + 0.5) @ w, atol=1e-6)
    assert "Its input 'rate' is held at 16." in network.card.recipe["remarks"]
    with pytest.raises(idc.IdcError, match="no input 'speed' to hold; its inputs are x, state, rate"):
        load_onnx(path, scores=True, held={"speed": 1})
    with pytest.raises(idc.IdcError, match="all of its inputs are held"):
        load_onnx(path, scores=True, held={"x": 1, "state": 0, "rate": 1})


def test_an_input_that_is_held_is_as_long_as_the_axis_of_its_name(tmp_path):
    """A mask of 1 for every step, however many there are."""
    w = RANDOM.normal(size=(5, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Concat", ["x", "mask"], ["joined"], axis=2),
        helper.make_node("MatMul", ["joined", "w"], ["y"]),
    ]
    path = written(tmp_path, nodes, [constant(w, "w")], (("x", F, ["n", "steps", 4]), ("mask", F, ["n", "steps", 1])))
    x = RANDOM.normal(size=(2, 6, 4)).astype(np.float32)
    network = load_onnx(path, scores=True, held={"mask": 2})
    with torch.no_grad():
        assert np.allclose(network(torch.from_numpy(x)), x @ w[:4] + 2 * w[4], atol=1e-5)


def test_a_graph_with_a_batch_of_one_runs_one_input_after_the_other(tmp_path):
    """Its sum over everything is that of the batch."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=0),
        helper.make_node("Sub", ["x", "mean"], ["z"]),
        helper.make_node("MatMul", ["z", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    w, v = (RANDOM.normal(size=size).astype(np.float32) for size in ((4, 5), (5, 3)))
    path = written(tmp_path, nodes, [constant(w, "w"), constant(v, "v")], (("x", F, [1, 4]),))
    x = X.reshape(-1, 4)[:7]
    network = idc.load_model(path)
    with torch.no_grad():
        ours = network(torch.from_numpy(x)).numpy()
    assert np.allclose(ours, np.concatenate([theirs(path, row[None]) for row in x]), atol=1e-6)
    batches = list(idc.trace(network, x, ["MatMul_1"]))
    assert [batch.activations["MatMul_1"].shape for batch in batches] == [(1, 5)] * 7
    assert np.allclose(np.concatenate([batch.scores for batch in batches]), ours, atol=1e-6)
    assert any("inputs run one by one" in sentence for sentence in network.card.recipe["remarks"])


@pytest.mark.parametrize("layout", ["", "time-first"])
def test_scores_of_time_before_inputs_are_turned(tmp_path, layout):
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[1, 0, 2]),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
    ]
    v, w = (RANDOM.normal(size=size).astype(np.float32) for size in ((4, 6), (6, 3)))
    path = written(tmp_path, nodes, [constant(v, "v"), constant(w, "w")], (("x", F, ["n", 5, 4]),))
    x = RANDOM.normal(size=(7, 5, 4)).astype(np.float32)
    network = idc.load_model(path, explain="mean-tokens", output_layout=layout)
    with torch.no_grad():
        assert np.allclose(network(torch.from_numpy(x)), (np.maximum(x @ v, 0) @ w).mean(1), atol=1e-6)
    agree(path, x)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(3, random_state=0),
        GradientBoostingRegressor(n_estimators=3, random_state=0),
        SVC(random_state=0),
        KNeighborsClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_neural_network_is_said_to_be_none(tmp_path, model):
    import skl2onnx

    x, y = X.reshape(-1, 4), np.arange(len(X.reshape(-1, 4))) % 2
    path = tmp_path / "model.onnx"
    path.write_bytes(skl2onnx.to_onnx(model.fit(x, y), x[:1]).SerializeToString())
    with pytest.raises(idc.IdcError, match=r"is not a neural network: it is .*no neurons to analyse"):
        load_onnx(path, scores=True)


def test_a_softmax_over_the_classes_of_every_step_is_left_out(tmp_path):
    """Where its axis is counted from the front, as recognisers of text lines have it."""
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["z"]),
        helper.make_node("Softmax", ["z"], ["y"], axis=2),
    ]
    v, w = (RANDOM.normal(size=size).astype(np.float32) for size in ((4, 6), (6, 3)))
    constants = [constant(v, "v"), constant(w, "w")]
    path = written(tmp_path, nodes, constants, (("x", F, ["n", 5, 4]),), (("y", F, ["n", 5, 3]),))
    x = RANDOM.normal(size=(4, 5, 4)).astype(np.float32)
    with torch.no_grad():
        ours = load_onnx(path, scores=True)(torch.from_numpy(x)).numpy()
    assert np.allclose(ours, np.maximum(x @ v, 0) @ w, atol=1e-5)


def test_objects_of_other_libraries_are_to_be_exported():
    kind = type("Model", (), {"__module__": "keras.src.models.model"})
    for call in (lambda net: idc.relevance(net, X, ["input"]), lambda net: idc.IDC(net, "fc", m=2)):
        with pytest.raises(
            idc.IdcError, match=r'Keras: export it to ONNX by model\.export\("net\.onnx", format="onnx"\)'
        ):
            call(kind())
