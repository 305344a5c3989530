"""Refusals look at values: what says the same as nothing at all opens, and gives what it gave without it."""

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from idc_core.errors import UnsupportedOperationError
from idc_core.models.onnx import load_onnx

FLOATS = TensorProto.FLOAT


def array(name, values, kind=np.float32):
    return numpy_helper.from_array(np.asarray(values, kind), name)


def random(name, *shape):
    return array(name, np.random.default_rng(len(name)).standard_normal(shape))


def opened(tmp_path, nodes, constants=(), shape=(3, "n", 4), inputs=(), opset=22, scores=False, **more):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOATS, shape), *inputs],
        [helper.make_tensor_value_info("y", FLOATS, None)],
        list(constants),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    return load_onnx(tmp_path / "a.onnx", scores)


GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
USUAL = {"RNN": ["Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"]}


def recurrent(tmp_path, kind, places=("x", "w", "r", "b"), more=(), before=(), **attributes):
    states, gates = 5, GATES[kind]
    weights = [
        random("w", 1, gates * states, 4),
        random("r", 1, gates * states, states),
        random("b", 1, 2 * gates * states),
    ]
    attributes = {"hidden_size": states} | ({"linear_before_reset": 1} if kind == "GRU" else {}) | attributes
    nodes = [
        helper.make_node(kind, list(places), ["z"], **attributes),
        helper.make_node("Squeeze", ["z", "axis"], ["s"]),
        helper.make_node("Transpose", ["s"], ["y"], perm=[1, 0, 2]),
    ]
    turned = helper.make_node("Transpose", ["batch"], ["x"], perm=[1, 0, 2])
    graph = helper.make_graph(
        [*before, turned, *nodes],
        "g",
        [helper.make_tensor_value_info("batch", FLOATS, ["n", 3, 4])],
        [helper.make_tensor_value_info("y", FLOATS, None)],
        [*weights, array("axis", [1], np.int64), *more],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    network = load_onnx(tmp_path / "a.onnx")
    return network(torch.linspace(-1, 1, 24).reshape(2, 3, 4)).detach().numpy()


EMPTY = ("x", "w", "r", "b", "", "", "", "p")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(
    "said",
    [
        lambda kind: {"activations": USUAL[kind]},
        lambda kind: {"activations": [name.lower() for name in USUAL[kind]]},
        lambda kind: {"activations": USUAL[kind], "activation_alpha": [0.0], "activation_beta": [0.0]},
        lambda kind: {"direction": "forward", "layout": 0},
        lambda kind: {"clip": float("inf")},
        lambda kind: {"places": ("x", "w", "r", "b", "length"), "more": [array("length", [3, 3], np.int32)]},
    ],
    ids=["activations", "in small letters", "with parameters", "direction", "no clip", "whole lengths"],
)
def test_recurrent_layers_with_default_values(kind, said, tmp_path):
    np.testing.assert_array_equal(recurrent(tmp_path, kind, **said(kind)), recurrent(tmp_path, kind))


@pytest.mark.parametrize("kind", GATES)
def test_lengths_that_converters_read_off_the_shape(kind, tmp_path):
    start, length = array("start", [0], np.int64), array("length", 3, np.int32)
    count = [
        helper.make_node("Shape", ["batch"], ["shape"]),
        helper.make_node("Gather", ["shape", "start"], ["n"]),
        helper.make_node("Expand", ["length", "n"], ["lengths"]),
    ]
    said = {"places": ("x", "w", "r", "b", "lengths"), "more": [start, length], "before": count}
    np.testing.assert_array_equal(recurrent(tmp_path, kind, **said), recurrent(tmp_path, kind))


def test_lengths_that_are_an_input_are_refused(tmp_path):
    lengths = helper.make_tensor_value_info("lengths", TensorProto.INT32, ["n"])
    nodes = [helper.make_node("RNN", ["x", "w", "r", "", "lengths"], ["", "y"], hidden_size=5)]
    with pytest.raises(UnsupportedOperationError, match="for sequences of one length"):
        opened(tmp_path, nodes, [random("w", 1, 5, 4), random("r", 1, 5, 5)], inputs=[lengths])


def test_peepholes_of_zero(tmp_path):
    zero = recurrent(tmp_path, "LSTM", places=EMPTY, more=[array("p", np.zeros((1, 15)))], input_forget=0)
    np.testing.assert_array_equal(zero, recurrent(tmp_path, "LSTM"))


@pytest.mark.parametrize(
    ("kind", "said", "named"),
    [
        ("RNN", {"activations": ["Sigmoid"]}, "other activation functions"),
        ("LSTM", {"clip": 2.0}, "clip"),
        ("LSTM", {"places": EMPTY, "more": [random("p", 1, 15)]}, "peepholes"),
        ("GRU", {"linear_before_reset": 0}, "linear_before_reset 0"),
        (
            "GRU",
            {"places": ("x", "w", "r", "b", "length"), "more": [array("length", [3, 2], np.int32)]},
            "sequence lengths",
        ),
        (
            "RNN",
            {"places": ("x", "w", "r", "b", "length"), "more": [array("length", [2, 2], np.int32)]},
            "2 of 3 steps",
        ),
    ],
)
def test_recurrent_layers_that_differ_are_still_refused(kind, said, named, tmp_path):
    with pytest.raises(UnsupportedOperationError, match=named):
        recurrent(tmp_path, kind, **said)


VECTORS = ("n", 4)
SCALES = [random("scale", 4), random("shift", 4), random("mean", 4), array("var", [1, 2, 3, 4])]
NORM = ["x", "scale", "shift", "mean", "var"]
SAME = {
    "an attribute that says its default": (
        [helper.make_node("Relu", ["x"], ["z"]), helper.make_node("Gemm", ["z", "w"], ["y"], alpha=1.0, transB=0)],
        [random("w", 4, 3)],
        {},
    ),
    "dropout in training mode that drops nothing": (
        [helper.make_node("Dropout", ["x", "ratio", "training"], ["y"])],
        [array("ratio", 0.0), array("training", True, np.bool_)],
        {},
    ),
    "outputs without a name": ([helper.make_node("BatchNormalization", NORM, ["y", "", ""])], SCALES, {}),
    "vectors normalised per position": (
        [helper.make_node("BatchNormalization", NORM, ["y"], spatial=0)],
        SCALES,
        {"opset": 7},
    ),
    "a function that nothing calls": (
        [helper.make_node("Relu", ["x"], ["y"])],
        [],
        {"functions": [helper.make_function("own", "F", ["a"], ["b"], [], [helper.make_opsetid("", 22)])]},
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_says_the_same_as_nothing_opens(name, tmp_path):
    nodes, constants, more = SAME[name]
    network = opened(tmp_path, nodes, constants, VECTORS, **more)
    assert network(torch.rand(2, 4)).shape[0] == 2


@pytest.mark.parametrize("scores", [False, True])
def test_a_weight_that_nothing_uses_is_no_input(scores, tmp_path):
    listed = [helper.make_tensor_value_info(name, FLOATS, [4, 4]) for name in ("w", "unused")]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Softmax", ["z"], ["y"])]
    network = opened(
        tmp_path,
        nodes,
        [random("w", 4, 4), random("unused", 4, 4)],
        VECTORS,
        listed,
        opset=8,
        scores=scores,
        ir_version=3,
    )
    assert [value.name for value in network.inputs] == ["x"]
