"""Endings of ONNX files, written out and followed by other shapes: the scores before them are the network's output."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from idc_core.models.onnx import load_onnx

INPUTS = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
WEIGHT = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def node(operator, *names, **attributes):
    return helper.make_node(operator, list(names[:-1]), [names[-1]], **attributes)


ONE, HALF, MINUS, LAST = (np.float32(1), np.float32(0.5), np.float32(-1), np.array([-1]))
CONSTANTS = {
    "one": ONE,
    "half": HALF,
    "minus": MINUS,
    "last": LAST,
    "flat": np.array([0, 3]),
    "lowest": np.float32(-1e30),
}

EXPONENTIALS = [
    node("ReduceMax", "s", "m", axes=[1], keepdims=1),
    node("Sub", "s", "m", "d"),
    node("Exp", "d", "e"),
    node("ReduceSum", "e", "last", "t", keepdims=1),
]

WRITTEN = {
    "softmax": ("softmax", [node("Softmax", "s", "y", axis=-1)]),
    "softmax of TensorFlow": ("softmax", [*EXPONENTIALS, node("Div", "e", "t", "y")]),
    "softmax of JAX": (
        "softmax",
        [
            node("ReduceMax", "s", "m", axes=[1], keepdims=0),
            node("Max", "lowest", "m", "n"),
            node("Unsqueeze", "n", "last", "c"),
            node("Sub", "s", "c", "d"),
            node("Exp", "d", "e"),
            node("ReduceSum", "e", "last", "t", keepdims=0),
            node("Unsqueeze", "t", "last", "u"),
            node("Reciprocal", "u", "r"),
            node("Mul", "e", "r", "y"),
        ],
    ),
    "log-softmax": ("log-softmax", [*EXPONENTIALS, node("Log", "t", "l"), node("Sub", "d", "l", "y")]),
    "log-softmax by its sum": (
        "log-softmax",
        [node("ReduceLogSumExp", "s", "l", axes=[-1], keepdims=1), node("Sub", "s", "l", "y")],
    ),
    "sigmoid": ("sigmoid", [node("Sigmoid", "s", "y")]),
    "sigmoid written out": (
        "sigmoid",
        [node("Neg", "s", "n"), node("Exp", "n", "e"), node("Add", "one", "e", "a"), node("Div", "one", "a", "y")],
    ),
    "another shape": (
        "softmax",
        [node("Unsqueeze", "s", "last", "c"), node("Softmax", "s", "p"), node("Reshape", "p", "flat", "y")],
    ),
}


def file(path, nodes, width=3):
    graph = helper.make_graph(
        [node("MatMul", "x", "w", "s"), *nodes],
        "it",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", width])],
        [
            numpy_helper.from_array(np.asarray(value), name)
            for name, value in {**CONSTANTS, "w": WEIGHT[:, :width]}.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("what", WRITTEN)
def test_scores_before_an_ending_are_the_output(tmp_path, what):
    kind, nodes = WRITTEN[what]
    network = load_onnx(file(tmp_path / "it.onnx", nodes), scores=True)
    with torch.no_grad():
        torch.testing.assert_close(network(INPUTS), INPUTS @ torch.from_numpy(WEIGHT))
    assert network.remarks == (f"The {kind} at its end is left out: scores before it are analysed.",)
    whole = load_onnx(tmp_path / "it.onnx")
    assert not torch.allclose(whole(INPUTS), network(INPUTS))


OTHERS = {
    "a quotient by another sum": [
        *EXPONENTIALS[:3], node("ReduceSum", "s", "last", "t", keepdims=1), node("Div", "e", "t", "y"),
    ],
    "half of a sigmoid": [node("Sigmoid", "s", "p"), node("Mul", "p", "half", "y")],
}  # fmt: skip


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_ending_stays(tmp_path, what):
    path = file(tmp_path / "it.onnx", OTHERS[what])
    network, whole = load_onnx(path, scores=True), load_onnx(path)
    with torch.no_grad():
        torch.testing.assert_close(network(INPUTS[:1]), whole(INPUTS[:1]))
    assert network.remarks == ()


def test_one_probability_is_left_to_the_network(tmp_path):
    path = file(tmp_path / "it.onnx", [node("Sigmoid", "s", "y")], width=1)
    network = load_onnx(path, scores=True)
    with torch.no_grad():
        assert 0 < float(network(INPUTS).min()) < float(network(INPUTS).max()) < 1
