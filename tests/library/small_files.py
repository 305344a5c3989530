"""Files of the smallest kind that the library takes."""

import numpy as np
import onnx


def digits_onnx(classes=10, seed=0):
    """Two dense layers over the digits' pictures of 28 x 28, as ONNX."""
    random = np.random.default_rng(seed)
    first, second = (random.normal(0, 0.1, shape).astype(np.float32) for shape in ((784, 12), (12, classes)))
    kind, numbers = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Flatten", ["x"], ["f"], "flatten"),
            onnx.helper.make_node("MatMul", ["f", "v"], ["h"], "fc1"),
            onnx.helper.make_node("Relu", ["h"], ["r"], "relu1"),
            onnx.helper.make_node("MatMul", ["r", "w"], ["y"], "fc2"),
        ],
        "small",
        [kind("x", numbers, ["n", 1, 28, 28])],
        [kind("y", numbers, ["n", classes])],
        [onnx.numpy_helper.from_array(first, "v"), onnx.numpy_helper.from_array(second, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def held_onnx():
    """A dense network over the digits' pictures whose branch a rate chooses, and whose hidden layer adds a state."""
    random = np.random.default_rng(0)
    first, second = (random.normal(0, 0.1, shape).astype(np.float32) for shape in ((784, 12), (12, 10)))
    kind, node, floats = onnx.helper.make_tensor_value_info, onnx.helper.make_node, onnx.TensorProto.FLOAT

    def branch(name, operator):
        out = kind(name, floats, None)
        return onnx.helper.make_graph([node(operator, ["z"], [name])], name, [], [out])

    graph = onnx.helper.make_graph(
        [
            node("Flatten", ["x"], ["f"], "flatten"),
            node("MatMul", ["f", "v"], ["h"], "fc1"),
            node("Add", ["h", "state"], ["z"], "add"),
            node("Equal", ["rate", "fast"], ["c"], "fast"),
            node("If", ["c"], ["r"], "choice", then_branch=branch("a", "Relu"), else_branch=branch("b", "Neg")),
            node("MatMul", ["r", "w"], ["y"], "fc2"),
        ],
        "held",
        [
            kind("x", floats, ["n", 1, 28, 28]),
            kind("state", floats, ["n", 12]),
            kind("rate", onnx.TensorProto.INT64, []),
        ],
        [kind("y", floats, ["n", 10])],
        [
            onnx.numpy_helper.from_array(array, name)
            for array, name in ((first, "v"), (second, "w"), (np.array(16000), "fast"))
        ],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def time_first_onnx():
    """A dense layer over every row of the digits' pictures, ten scores per row: (rows, n, classes)."""
    random = np.random.default_rng(0)
    first, second = (random.normal(0, 0.3, shape).astype(np.float32) for shape in ((28, 12), (12, 10)))
    kind, node, floats = onnx.helper.make_tensor_value_info, onnx.helper.make_node, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [
            node("Squeeze", ["x", "one"], ["s"], "squeeze"),
            node("MatMul", ["s", "v"], ["h"], "fc1"),
            node("Relu", ["h"], ["r"], "relu1"),
            node("MatMul", ["r", "w"], ["z"], "fc2"),
            node("Transpose", ["z"], ["y"], "turn", perm=[1, 0, 2]),
        ],
        "rows",
        [kind("x", floats, ["n", 1, 28, 28])],
        [kind("y", floats, [28, "n", 10])],
        [
            onnx.numpy_helper.from_array(array, name)
            for array, name in ((first, "v"), (second, "w"), (np.array([1]), "one"))
        ],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def segmenting_onnx():
    """A convolution over the digits' pictures, ten scores per pixel, as ONNX."""
    weights = np.random.default_rng(0).normal(0, 0.1, (10, 6, 3, 3)).astype(np.float32)
    first = np.random.default_rng(1).normal(0, 0.3, (6, 1, 3, 3)).astype(np.float32)
    kind, numbers = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Conv", ["x", "v"], ["h"], "conv1", strides=[4, 4]),
            onnx.helper.make_node("Relu", ["h"], ["r"], "relu1"),
            onnx.helper.make_node("Conv", ["r", "w"], ["y"], "conv2"),
        ],
        "segmenting",
        [kind("x", numbers, ["n", 1, 28, 28])],
        [kind("y", numbers, ["n", 10, 5, 5])],
        [onnx.numpy_helper.from_array(first, "v"), onnx.numpy_helper.from_array(weights, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()
