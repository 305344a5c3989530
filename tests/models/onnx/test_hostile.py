"""Files that are damaged or meant to harm: each is refused with a sentence, before memory is taken."""

import contextlib
import os

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from idc_core.errors import IdcError, ModelError, UnsupportedOperationError
from idc_core.models.onnx import load_onnx

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
HUGE = [1 << 15, 1 << 15]


def numbers(name, values, kind=np.int64):
    return numpy_helper.from_array(np.array(values, kind), name)


def write(path, nodes, constants=(), inputs=(X,), output="y", opset=20, **more):
    graph = helper.make_graph(
        list(nodes),
        "g",
        list(inputs),
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        list(constants),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)
    path.write_bytes(model.SerializeToString())
    return path


def node(operator, inputs, outputs=("y",), **more):
    return helper.make_node(operator, list(inputs), list(outputs), **more)


def added(operator, inputs, **more):
    """Return a node that makes something of constants, and one that adds it to the input."""
    return [node(operator, inputs, ["c"], **more), node("Add", ["x", "c"])]


def branch(*outputs):
    inside = helper.make_graph([node("Relu", ["x"], ["z"])], "b", [], [helper.make_tensor_value_info("z", 1, None)])
    return node("If", ["k"], outputs or ("y",), then_branch=inside, else_branch=inside)


ONE, SHAPE = numbers("one", [1.0], np.float32), numbers("shape", HUGE)
GRAPHS = {
    "ConstantOfShape of 10^9": (added("ConstantOfShape", ["shape"]), [SHAPE], "1,073,741,824 numbers"),
    "Expand to 10^9": (added("Expand", ["one", "shape"]), [ONE, SHAPE], "1,073,741,824 numbers"),
    "Expand of the input": ([node("Expand", ["x", "shape"])], [numbers("shape", [1 << 29, 1, 4])], "numbers"),
    "Tile to 10^9": (added("Tile", ["one", "times"]), [ONE, numbers("times", [1 << 30])], "1,073,741,824 numbers"),
    "Range to 10^9": (
        added("Range", ["a", "b", "d"]),
        [numbers("a", 0.0, np.float32), numbers("b", 1e9, np.float32), numbers("d", 1.0, np.float32)],
        "1,000,000,000 numbers",
    ),
    "Range without steps": (added("Range", ["a", "b", "a"]), [numbers("a", 0), numbers("b", 9)], "do not fit"),
    "a negative shape": (added("ConstantOfShape", ["shape"]), [numbers("shape", [-5, 2])], "[-5, 2]"),
    "padding to 10^9": ([node("Pad", ["x", "shape"])], [numbers("shape", [0, 0, 0, 1 << 30])], "numbers"),
    "a stride of 10^9": (
        [node("Unsqueeze", ["x", "one"], ["u"]), node("AveragePool", ["u"], kernel_shape=[1], strides=[1 << 30])],
        [numbers("one", [1])],
        "more than 4,096",
    ),
    "a cycle": ([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"])], [], "a later node"),
    "a node that uses itself": ([node("Add", ["x", "y"])], [], "the node itself"),
    "an input that nothing makes": ([node("Add", ["x", "nowhere"])], [], "nothing makes it"),
    "a value made twice": ([node("Relu", ["x"]), node("Tanh", ["x"])], [], "more than once"),
    "a domain of its own": ([node("Relu", ["x"], domain="evil.com")], [], "'evil.com'"),
    "an operator that is not there": ([node("Det", ["x"], name="here")], [], "node 'here' (Det, opset 20)"),
    "a branch on numbers": (
        [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Cast", ["s"], ["k"], to=TensorProto.BOOL), branch()],
        [],
        "depends on the numbers of its input",
    ),
    "a branch of fewer results": (
        [branch("y", "more"), node("Add", ["y", "more"], ["sum"])],
        [numbers("k", True, np.bool_)],
        "'then_branch' gives 1 results; expected 2",
    ),
    "an attribute of the wrong type": (
        [node("Concat", ["x", "x"], axis="one")],
        [],
        "(Concat, axis one) cannot be computed of",
    ),
    "an attribute that is not known": ([node("Relu", ["x"], secret=3)], [], "'secret'"),
    "a kernel of nothing": ([node("MaxPool", ["x"], kernel_shape=[0])], [], "strides, dilations or pads"),
    "strings": ([node("Identity", ["s"])], [helper.make_tensor("s", TensorProto.STRING, [1], [b"a"])], "STRING"),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_graphs_are_refused_with_a_sentence(case, tmp_path):
    nodes, constants, said = GRAPHS[case]
    with pytest.raises((ModelError, UnsupportedOperationError)) as found:
        load_onnx(write(tmp_path / "a.onnx", nodes, constants))(torch.zeros(2, 4))
    assert said in str(found.value)
    assert str(found.value).endswith(".") or ": " in str(found.value)


def test_constants_that_double_are_refused(tmp_path, one_mebibyte):
    nodes = [node("Concat", [f"c{i}"] * 2, [f"c{i + 1}"], axis=0) for i in range(40)] + [node("Add", ["x", "c40"])]
    with pytest.raises(ModelError, match="held at once to 2,093,056 bytes of memory; at most 1,048,576 are"):
        load_onnx(write(tmp_path / "a.onnx", nodes, [numbers("c0", [1.0] * 1024, np.float32)]))


SIDE = 1 << 14
BRANCHES = [node("Expand", ["x", "shape"], ["e"])]
BRANCHES += [node(name, ["e"], [name]) for name in ("Neg", "Exp", "Tanh")]


@pytest.mark.parametrize(("branches", "fits"), [(1, True), (2, False), (3, False)])
def test_arrays_are_counted_together(tmp_path, one_mebibyte, branches, fits):
    """Of two inputs each array takes half of what is allowed: one has room, and what becomes of it."""
    names = ["Neg", "Exp", "Tanh"][:branches]
    nodes = [*BRANCHES[: 1 + branches], node("Sum", names, ["s"]), node("ReduceMax", ["s"], axes=[0], keepdims=0)]
    path = write(tmp_path / "a.onnx", nodes, [numbers("shape", [SIDE, 1, 4])], opset=17)
    if fits:
        assert load_onnx(path)(torch.ones(2, 4)).shape == (2, 4)
    else:
        with pytest.raises(ModelError, match="would bring what is held at once to 1,048,6"):
            load_onnx(path)


def test_arrays_one_after_the_other_have_room(tmp_path, one_mebibyte):
    """What no later node uses is not counted any more."""
    chain = [BRANCHES[0], *(node("Neg", ["e" if i == 0 else f"n{i}"], [f"n{i + 1}"]) for i in range(9))]
    nodes = [*chain, node("ReduceMax", ["n9"], axes=[0], keepdims=0)]
    path = write(tmp_path / "a.onnx", nodes, [numbers("shape", [SIDE // 2, 1, 4])], opset=17)
    assert load_onnx(path)(torch.ones(2, 4)).tolist() == [[-1] * 4] * 2


def outside(location, offset=0, length=16, dims=(4,)):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"location": "../secret"}, "leads out of its folder"),
        ({"location": "sub/../../secret"}, "leads out of its folder"),
        ({"location": "/etc/hostname"}, "leads out of its folder"),
        ({"location": "link"}, "link that leads out"),
        ({"location": ""}, "leads out of its folder"),
        ({"location": "there", "offset": -4}, "from -4"),
        ({"location": "there", "offset": 8}, "byte 24 is wanted"),
        ({"location": "there", "length": 4}, "needs 16"),
        ({"location": "there", "length": "many"}, "no number"),
        ({"location": "missing"}, "cannot be read"),
        ({"location": "there", "length": 4 << 40, "dims": (1 << 40,)}, "is wanted from it"),
    ],
)
def test_weights_beside_the_network_are_read_from_its_folder_alone(given, said, tmp_path):
    folder = tmp_path / "network"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(16))
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "there").write_bytes(bytes(16))
    with pytest.raises(ModelError) as found:
        load_onnx(write(folder / "a.onnx", [node("Add", ["x", "w"])], [outside(**given)]))
    assert said in str(found.value)


def test_weights_beside_the_network_are_read(tmp_path):
    (tmp_path / "there").write_bytes(bytes(4) + np.arange(4, dtype=np.float32).tobytes())
    network = load_onnx(write(tmp_path / "a.onnx", [node("Add", ["x", "w"])], [outside("there", 4)]))
    assert network(torch.ones(1, 4)).tolist() == [[1, 2, 3, 4]]


def test_damaged_files_are_refused(tmp_path):
    weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    whole = write(tmp_path / "a.onnx", [node("MatMul", ["x", "w"])], [weight]).read_bytes()
    random = np.random.default_rng(0)
    for trial in range(150):
        content = bytearray(whole[: random.integers(0, len(whole))] if trial % 2 else whole)
        for place in random.integers(0, max(1, len(content)), 3 if content else 0):
            content[place] = random.integers(256)
        (tmp_path / "b.onnx").write_bytes(content)
        with contextlib.suppress(IdcError):  # and nothing else is raised
            load_onnx(tmp_path / "b.onnx")


def test_bytes_that_do_not_fill_the_shape_are_refused(tmp_path):
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(1 << 20, 1 << 20), raw_data=bytes(16))
    with pytest.raises(ModelError, match="damaged"):
        load_onnx(write(tmp_path / "a.onnx", [node("Add", ["x", "w"])], [weight]))


def test_functions_sparse_weights_and_other_opsets_are_refused(tmp_path):
    function = helper.make_function(
        "own", "F", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 20)]
    )
    with pytest.raises(UnsupportedOperationError, match="functions of its own"):
        load_onnx(write(tmp_path / "a.onnx", [node("F", ["x"], domain="own")], functions=[function]))
    load_onnx(write(tmp_path / "a.onnx", [node("Relu", ["x"])], functions=[function]))
    for opset in (5, 1000):
        with pytest.raises(UnsupportedOperationError, match=f"opset {opset}; expected one from 6"):
            load_onnx(write(tmp_path / "a.onnx", [node("Relu", ["x"])], opset=opset))


def test_what_is_no_file_or_too_large_is_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing.onnx"):
        with pytest.raises(ModelError, match=r"expected a file|cannot be read"):
            load_onnx(path)
    (tmp_path / "config.toml").write_text("[limits]\nmemory_mib = 1\n", encoding="utf-8")
    monkeypatch.setenv("IDC_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "there").write_bytes(bytes(1 << 20))
    weights = [numbers("v", [[1.0]] * (1 << 19), np.float32)], [outside("there", 0, 1 << 20, (1 << 18,))]
    for constants in weights:
        with pytest.raises(ModelError, match="at most 1,048,576 are allowed"):
            load_onnx(write(tmp_path / "a.onnx", [node("Relu", ["x"])], constants))


def test_a_network_that_mixes_the_inputs_of_a_batch_is_refused(tmp_path):
    with pytest.raises(ModelError, match="for two inputs together"):
        load_onnx(write(tmp_path / "a.onnx", [node("Softmax", ["x"], axis=0)]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])
    with pytest.raises(ModelError, match="one input and on two"):
        load_onnx(write(tmp_path / "a.onnx", [node("Add", ["x", "w"])], [numbers("w", [[1.0]] * 5, np.float32)], [x]))


def test_a_network_that_mixes_inputs_opens_as_its_refusal_says(tmp_path):
    with pytest.raises(ModelError, match="Export it with a batch of one"):
        load_onnx(write(tmp_path / "a.onnx", [node("Softmax", ["x"], axis=0)]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    network = load_onnx(write(tmp_path / "a.onnx", [node("Softmax", ["x"], axis=0)], (), [x]))
    assert torch.equal(network(torch.rand(3, 4)), torch.ones(3, 4))


def test_a_network_that_runs_on_one_input_alone_runs_one_by_one(tmp_path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    nodes = [node("Reshape", ["x", "square"], ["r"]), node("Reshape", ["r", "row"])]
    shapes = [numbers("square", [1, 2, 2]), numbers("row", [1, 4])]
    network, given = load_onnx(write(tmp_path / "a.onnx", nodes, shapes, [x])), torch.rand(3, 4)
    assert network.one_by_one
    assert torch.equal(network(given), given)


def test_names_become_identifiers_that_are_unique_and_not_taken(tmp_path):
    names = ["/a/b.c", "a_b_c", "forward", "input", "1", "", "ä"]
    values = ["x", *(f"v{i}" for i in range(len(names) - 1)), "y"]
    nodes = [node("Relu", [a], [b], name=name) for name, a, b in zip(names, values, values[1:], strict=False)]
    network = load_onnx(write(tmp_path / "a.onnx", nodes))
    found = [name for name, _ in network.named_children()]
    assert found == ["a_b_c", "a_b_c_2", "Relu_forward", "Relu_input", "Relu_1", "Relu_6", "Relu_7"]
    assert network(torch.tensor([[-1.0, 0, 1, 2]])).tolist() == [[0, 0, 1, 2]]


def test_inputs_of_another_shape_are_refused(tmp_path):
    network = load_onnx(write(tmp_path / "a.onnx", [node("Relu", ["x"])]))
    with pytest.raises(ModelError, match=r"expected \(n, 4\)"):
        network(torch.zeros(2, 5))
    with pytest.raises(ModelError, match="takes x; got 2 inputs in order, and by name none"):
        network(torch.zeros(2, 4), torch.zeros(2, 4))
