"""Branches and loops: values as onnxruntime computes them, and what depends on the numbers of an input refused."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import idc_core as idc
from idc_core.models.onnx import load_onnx

F, WHOLE, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name, kind=F, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(values, name, kind=np.float32):
    return numpy_helper.from_array(np.array(values, kind), name)


def written(folder, nodes, constants, inputs=(("x", F, ["n", 4]),), outputs=(("y", F, None),)):
    graph = helper.make_graph(nodes, "g", [value(*one) for one in inputs], [value(*one) for one in outputs], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "net.onnx"
    onnx.save(model, path)
    return path


def theirs(path, x):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def agree(path, x):
    network = load_onnx(path)
    with torch.no_grad():
        ours = network(torch.from_numpy(x))
    assert np.allclose(ours.numpy(), theirs(path, x), atol=1e-6)
    return network


X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)


def branch(name, operator, *weights):
    return helper.make_graph(
        [helper.make_node(operator, ["x", *weights], [f"{name}_y"])], name, [], [value(f"{name}_y")]
    )


def choice(condition):
    return helper.make_node(
        "If", [condition], ["y"], then_branch=branch("a", "MatMul", "w"), else_branch=branch("b", "MatMul", "v")
    )


def test_a_branch_with_a_constant_condition_is_the_one_taken_and_its_weights_are_layers(tmp_path):
    weights = [constant(W, "w"), constant(-W, "v"), constant(False, "c", bool)]
    network = agree(written(tmp_path, [choice("c")], weights), X)
    layers = [name for name, one in network.named_modules() if isinstance(one, torch.nn.Linear)]
    assert layers == ["If_1.else_branch.MatMul_1"]
    assert np.allclose(network.get_submodule(layers[0]).weight.detach(), -W.T)


def test_a_branch_may_follow_from_shapes(tmp_path):
    """Exporters of `squeeze` and of views write such conditions."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["side"]),
        helper.make_node("Equal", ["side", "four"], ["c"]),
        choice("c"),
    ]
    weights = [constant(W, "w"), constant(-W, "v"), constant(1, "one", np.int64), constant(4, "four", np.int64)]
    path = written(tmp_path, nodes, weights)
    network = agree(path, X)
    found = idc.relevance(network, X, ["input"], bias="redistribute")["input"]
    assert np.allclose(found.sum(1), theirs(path, X).max(1), atol=1e-5)


def test_a_branch_that_depends_on_numbers_is_refused(tmp_path):
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["c"]),
        choice("c"),
    ]
    path = written(tmp_path, nodes, [constant(W, "w"), constant(-W, "v"), constant(0, "zero")])
    with pytest.raises(idc.IdcError, match=r"If, opset 17.*branch that depends on the numbers of its input"):
        load_onnx(path)


def loop(most="m", going="", body_nodes=(), carried=("x",)):
    body = helper.make_graph(
        [helper.make_node("Identity", ["goes_in"], ["goes_out"]), *body_nodes],
        "body",
        [value("i", WHOLE, []), value("goes_in", B, []), value("h_in", F, ["n", 4])],
        [value("goes_out", B, []), value("h_out", F, ["n", 4]), value("row", F, ["n", 4])],
    )
    return helper.make_node("Loop", [most, going, *carried], ["last", "rows"], body=body)


STEP = (
    helper.make_node("MatMul", ["h_in", "u"], ["p"]),
    helper.make_node("Tanh", ["p"], ["h_out"]),
    helper.make_node("Relu", ["p"], ["row"]),
)
U = np.random.default_rng(2).normal(size=(4, 4)).astype(np.float32)


@pytest.mark.parametrize("output", ["last", "rows"])
def test_a_loop_with_a_constant_count_is_unrolled(tmp_path, output):
    nodes = [loop(body_nodes=STEP), helper.make_node("MatMul", [output, "w"], ["y"])]
    agree(written(tmp_path, nodes, [constant(U, "u"), constant(W, "w"), constant(5, "m", np.int64)]), X)


def test_relevance_passes_through_a_loop(tmp_path):
    nodes = [loop(body_nodes=STEP), helper.make_node("MatMul", ["last", "w"], ["y"])]
    path = written(tmp_path, nodes, [constant(U, "u"), constant(W, "w"), constant(3, "m", np.int64)])
    found = idc.relevance(load_onnx(path), X, ["input"], bias="redistribute")["input"]
    assert np.allclose(found.sum(1), theirs(path, X).max(1), atol=1e-4)


def test_weights_that_a_loop_hands_on_are_those_of_layers(tmp_path):
    """As tf2onnx writes recurrent layers: the weight is a state that no step changes."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["goes_in"], ["goes_out"]),
            helper.make_node("MatMul", ["h_in", "u_in"], ["p"]),
            helper.make_node("Tanh", ["p"], ["h_out"]),
            helper.make_node("Identity", ["u_in"], ["u_out"]),
        ],
        "body",
        [value("i", WHOLE, []), value("goes_in", B, []), value("h_in", F, ["n", 4]), value("u_in", F, [4, 4])],
        [value("goes_out", B, []), value("h_out", F, ["n", 4]), value("u_out", F, [4, 4])],
    )
    nodes = [helper.make_node("Loop", ["m", "", "x", "u"], ["y", "unused"], body=body)]
    network = agree(written(tmp_path, nodes, [constant(U, "u"), constant(4, "m", np.int64)]), X)
    assert [name for name, one in network.named_modules() if isinstance(one, torch.nn.Linear)] == [
        "Loop_1.body.MatMul_1"
    ]


def test_a_loop_whose_count_depends_on_numbers_is_refused(tmp_path):
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0),
        helper.make_node("Cast", ["top"], ["m"], to=WHOLE),
        loop(body_nodes=STEP),
        helper.make_node("Identity", ["last"], ["y"]),
    ]
    with pytest.raises(idc.IdcError, match="number of steps depends on the numbers of its input"):
        load_onnx(written(tmp_path, nodes, [constant(U, "u")]))


@pytest.mark.slow
def test_a_loop_that_goes_on_for_ever_and_one_within_another_are_refused(tmp_path):
    ends, u = [helper.make_node("Identity", ["last"], ["y"])], constant(U, "u")
    with pytest.raises(idc.IdcError, match=r"takes more than 4,096 steps"):
        load_onnx(written(tmp_path, [loop("", "yes", STEP), *ends], [u, constant(True, "yes", bool)]))
    inner = loop("m", "", STEP, ("h_in",))
    inner.output[:] = ["h_out", "row"]
    inner.attribute[0].g.name = "inner"
    for one in (*inner.attribute[0].g.input, *inner.attribute[0].g.output):
        one.name = f"{one.name}_2"
    for node in inner.attribute[0].g.node:
        node.input[:] = [f"{name}_2" if name != "u" else name for name in node.input]
        node.output[:] = [f"{name}_2" for name in node.output]
    with pytest.raises(idc.IdcError, match="a loop within a loop"):
        load_onnx(written(tmp_path, [loop("m", "", [inner]), *ends], [u, constant(2, "m", np.int64)]))


@pytest.mark.parametrize("backwards", [0, 1])
def test_a_scan_goes_over_the_steps_of_a_sequence(tmp_path, backwards):
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h_in", "u"], ["p"]),
            helper.make_node("Add", ["p", "step"], ["q"]),
            helper.make_node("Tanh", ["q"], ["h_out"]),
            helper.make_node("Relu", ["q"], ["row"]),
        ],
        "body",
        [value("h_in", F, ["n", 4]), value("step", F, ["n", 4])],
        [value("h_out", F, ["n", 4]), value("row", F, ["n", 4])],
    )
    turned = {"scan_input_axes": [1], "scan_input_directions": [backwards]}
    turned |= {"scan_output_axes": [1], "scan_output_directions": [backwards]}
    nodes = [
        helper.make_node("ReduceSum", ["x", "one"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "zero"], ["h"]),
        helper.make_node("Scan", ["h", "x"], ["last", "rows"], body=body, num_scan_inputs=1, **turned),
        helper.make_node("ReduceSum", ["rows", "one"], ["total"], keepdims=0),
        helper.make_node("Add", ["last", "total"], ["y"]),
    ]
    x = np.random.default_rng(3).normal(size=(3, 5, 4)).astype(np.float32)
    constants = [constant(U, "u"), constant(0, "zero"), constant([1], "one", np.int64)]
    agree(written(tmp_path, nodes, constants, (("x", F, ["n", 5, 4]),)), x)
