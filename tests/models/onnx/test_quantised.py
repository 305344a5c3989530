"""Quantised operators as floats: files of onnxruntime's own quantiser, and each operator worked out slowly."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch import nn

import idc_core as idc
from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.models.onnx import load_onnx
from tests.models.onnx.test_control import F, constant, theirs, value

RANDOM = np.random.default_rng(11)
ZEROS = {np.uint8: 120, np.int8: -9}
"""Types of quantised arrays, and the zero points that they have here."""


class Branches(nn.Module):
    """A layer of each kind that the quantiser knows, in a sum, a product and a concatenation of branches."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.out = nn.Linear(8, 3)
        self.out.weight.data *= 8

    def forward(self, x):
        h = torch.relu(self.one(x))
        h = nn.functional.max_pool2d(h + nn.functional.leaky_relu(self.two(h), 0.2), 2)
        h = torch.cat([h, nn.functional.pad(nn.functional.avg_pool2d(h, 2), (1, 1, 1, 1))], 1)
        return torch.softmax(self.out(nn.functional.adaptive_avg_pool2d(h, 1).flatten(1)), 1)


class Dense(nn.Module):
    """Rows by a product of matrices and by dense layers, a gate between."""

    def __init__(self):
        super().__init__()
        self.v = nn.Parameter(torch.randn(6, 8))
        self.gate, self.out = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        h = x @ self.v
        return self.out(torch.relu(h) * torch.sigmoid(self.gate(h)))


NETWORKS = {
    "convolutional": (Branches, RANDOM.normal(size=(12, 2, 8, 8)).astype(np.float32)),
    "dense": (Dense, RANDOM.normal(size=(12, 6)).astype(np.float32)),
}
WRITTEN = {
    "convolutional": {"QLinearConv", "QLinearAdd", "QLinearLeakyRelu", "QLinearConcat", "QLinearAveragePool"}
    | {"QLinearGlobalAveragePool", "QGemm", "QLinearSoftmax", "MaxPool", "Pad"},
    "dense": {"QLinearMatMul", "QGemm", "QLinearSigmoid", "QLinearMul"},
}


class Rows(CalibrationDataReader):
    def __init__(self, x):
        self.rows = iter([{"x": row[None]} for row in x])

    def get_next(self):
        return next(self.rows, None)


def step_at_the_end(path):
    graph = onnx.load(path).graph
    (scale,) = (one for one in graph.initializer if one.name == graph.node[-1].input[1])
    return float(numpy_helper.to_array(scale))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QUInt8, QuantType.QInt8])
@pytest.mark.parametrize("name", NETWORKS)
def test_what_onnxruntime_quantises_is_computed_as_floats(tmp_path, name, kind, per_channel):
    make, x = NETWORKS[name]
    torch.manual_seed(0)
    given, path = tmp_path / "float.onnx", tmp_path / "small.onnx"
    torch.onnx.export(
        make().eval(),
        (torch.from_numpy(x[:1]),),
        given,
        dynamo=False,
        dynamic_axes={"x": {0: "n"}},
        input_names=["x"],
        opset_version=17,
    )
    quantize_static(
        given,
        path,
        Rows(x),
        quant_format=QuantFormat.QOperator,
        per_channel=per_channel,
        activation_type=kind,
        weight_type=QuantType.QInt8,
        # Processors without VNNI cut sums of products of unsigned and signed bytes off at 16 bits.
        reduce_range=True,
        extra_options={"ActivationSymmetric": False},
    )
    assert {node.op_type for node in onnx.load(path).graph.node} >= WRITTEN[name]
    whole, network = load_onnx(path), load_onnx(path, scores=True)
    assert any("computed as floats" in sentence for sentence in network.remarks)
    with torch.no_grad():
        ours, scores = whole(torch.from_numpy(x)).numpy(), network(torch.from_numpy(x)).numpy()
    rounded, plain = theirs(path, x), theirs(given, x)
    step = step_at_the_end(path)
    assert np.ptp(rounded) > 30 * step
    assert np.abs(ours - rounded).max() < 4 * step
    assert 1e-2 * step < np.abs(ours - plain).max() < 4 * step  # weights are the rounded ones
    found = idc.relevance(network, x, ["input"], bias="redistribute")["input"]
    assert np.allclose(found.reshape(len(x), -1).sum(1), scores.max(1), atol=1e-4)
    if name == "convolutional":  # the softmax at its end is left out, with what its narrow type cuts off
        scores = np.minimum(torch.softmax(torch.from_numpy(scores), 1), 255 / 256)
    assert np.allclose(scores, ours, atol=1e-5)


class Quantised:
    """An array of small whole numbers, what they stand for, and its names in a graph.

    Scales, and zero points that are `apart`, are along an axis, if one is given. `narrow` ones use half of the range.
    """

    def __init__(self, name, kind, shape, axis=None, apart=0, *, narrow=False):
        limits, self.kind, self.names = np.iinfo(kind), kind, [name, f"{name}_scale", f"{name}_zero"]
        size = () if axis is None else (shape[axis],)
        along = [shape[axis] if one == axis else 1 for one in range(len(shape))] if size else ()
        self.whole = RANDOM.integers(limits.min >> narrow, (limits.max >> narrow) + 1, shape).astype(kind)
        self.scale = RANDOM.uniform(0.01, 0.03, size).astype(np.float32)
        self.zero = (ZEROS[kind] + apart * RANDOM.integers(0, 9, size)).astype(kind)
        scale, zero = (one.astype(np.float64).reshape(along) for one in (self.scale, self.zero))
        self.real = (self.whole - zero) * scale

    def constants(self):
        values = zip(self.names, (self.whole, self.scale, self.zero), (self.kind, np.float32, self.kind), strict=True)
        return [constant(array, name, kind) for name, array, kind in values]


def convolved(x, w, b):
    """A convolution of two groups with a stride of 2, one number at a time."""
    y = np.zeros((len(x), len(w), (x.shape[2] - 1) // 2, (x.shape[3] - 1) // 2))
    for n, o, r, c in np.ndindex(*y.shape):
        first = o // (len(w) // 2) * w.shape[1]
        window = x[n, first : first + w.shape[1], 2 * r : 2 * r + 3, 2 * c : 2 * c + 3]
        y[n, o, r, c] = (window * w[o]).sum() + b[o]
    return y


def pooled(x, *_):
    y = np.zeros((*x.shape[:2], x.shape[2] // 2, x.shape[3] // 2))
    for n, c, i, j in np.ndindex(*y.shape):
        y[n, c, i, j] = x[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean()
    return y


IMAGE, ROWS = (2, 4, 7, 7), (2, 4)
MASK = np.array([True, False, False, True])
CASES = {
    "QLinearConv": (IMAGE, ((4, 2, 3, 3), 0, 0), convolved, {"group": 2, "strides": [2, 2]}),
    "QLinearMatMul": (ROWS, ((4, 5), 1, 1), lambda x, w, b: x @ w, {}),
    "QGemm": (ROWS, ((4, 4), 0, 1), lambda x, w, b: 0.5 * (x @ w.T + b), {"alpha": 0.5, "transB": 1}),
    "QLinearAdd": (ROWS, ((1, 4), None), lambda x, w, b: x + w, {}),
    "QLinearMul": (ROWS, ((1, 4), None), lambda x, w, b: x * w, {}),
    "QLinearConcat": (ROWS, None, lambda x, *_: np.concatenate([x, x], 1), {"axis": 1}),
    "QLinearWhere": (ROWS, ((1, 4), None), lambda x, w, b: np.where(MASK, x, w), {}),
    "QLinearSigmoid": (ROWS, None, lambda x, *_: 1 / (1 + np.exp(-x)), {}),
    "QLinearLeakyRelu": (ROWS, None, lambda x, *_: np.where(x < 0, 0.2 * x, x), {"alpha": 0.2}),
    "QLinearSoftmax": (
        ROWS,
        None,
        lambda x, *_: np.exp(x) / np.exp(x).sum(1, keepdims=True),
        {"axis": -1, "opset": 17},
    ),
    "QLinearAveragePool": (IMAGE, None, pooled, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "QLinearGlobalAveragePool": (IMAGE, None, lambda x, *_: x.mean((2, 3), keepdims=True), {}),
}
"""Shape of the input; shape of a second array, axis of scales, whether zero points differ; value; attributes."""


def places(operator, names, others):
    """Return the inputs of a node in their order."""
    result = ["y_scale", "y_zero"]
    usual = [*names, *others, *result]
    return {
        "QLinearConv": [*usual, "b"],
        "QGemm": [*names, *others, "b", *result],
        "QLinearConcat": [*result, *names, *names],
        "QLinearWhere": ["mask", *usual],
    }.get(operator, usual)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kinds", [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)])
@pytest.mark.parametrize("operator", CASES)
def test_an_operator_gives_what_its_numbers_stand_for(tmp_path, operator, kinds):
    shape, second, compute, attributes = CASES[operator]
    x, w, whole = Quantised("q", kinds[0], shape), None, RANDOM.integers(-3000, 3000, 4).astype(np.int32)
    if second is not None:
        summed = operator in SUMS
        narrow = summed and kinds == (np.uint8, np.int8)  # as above
        w = Quantised("w", kinds[summed], *second, narrow=narrow)
    bias = whole * (float(x.scale) * w.scale.astype(np.float64)) if operator in ("QLinearConv", "QGemm") else 0
    exact = compute(x.real, None if w is None else w.real, bias)
    probability = operator == "QLinearSoftmax"
    limits = np.iinfo(kinds[0])
    scale = np.float32(1 / 256 if probability else np.ptp(exact) / 200)  # some are cut off
    zero = limits.min if probability else round(limits.min - (exact.min() + 0.1 * np.ptp(exact)) / scale)
    zero = int(np.clip(zero, limits.min, limits.max))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *x.names[1:]], ["q"]),
        helper.make_node(
            operator,
            places(operator, x.names, [] if w is None else w.names),
            ["z"],
            domain="" if operator in ("QLinearConv", "QLinearMatMul") else "com.microsoft",
            **attributes,
        ),
        helper.make_node("DequantizeLinear", ["z", "y_scale", "y_zero"], ["y"]),
    ]
    constants = [
        *x.constants()[1:],
        *([] if w is None else w.constants()),
        *(constant(scale, "y_scale"), constant(zero, "y_zero", kinds[0])),
        *(constant(whole, "b", np.int32), constant(MASK, "mask", bool)),
    ]
    path = quantised_file(tmp_path, nodes, constants, shape)
    inputs = x.real.astype(np.float32)
    with torch.no_grad():
        ours = load_onnx(path)(torch.from_numpy(inputs)).numpy()
    cut = np.clip(exact, (limits.min - zero) * scale, (limits.max - zero) * scale)
    assert np.allclose(ours, cut, atol=1e-5)
    assert np.abs(theirs(path, inputs) - cut).max() < 0.52 * scale  # they round


SUMS = ("QLinearConv", "QLinearMatMul", "QGemm")
"""Operators whose second array may be of another type."""


def quantised_file(folder, nodes, constants, shape=ROWS, opset=17):
    graph = helper.make_graph(nodes, "g", [value("x", F, ["n", *shape[1:]])], [value("y")], constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


STEP = [constant(0.5, "s"), constant(3, "z", np.uint8)]
QUANTISE = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])
DEQUANTISE = helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"])
PER_CHANNEL = [
    helper.make_node("Constant", [], ["t"], value=constant([0.5, 1, 2, 0.25], "t")),
    helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT32),
    helper.make_node("DequantizeLinear", ["i", "t"], ["a"], axis=1),
]
WEIGHT = constant(RANDOM.integers(-9, 9, (4, 5)), "w", np.int8)
FORMS = {
    "a scale that a later node multiplies by": [
        QUANTISE,
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["p"]),
        helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ],
    "a type by an attribute": [
        helper.make_node("QuantizeLinear", ["x", "s"], ["r"], output_dtype=TensorProto.INT8),
        helper.make_node("DequantizeLinear", ["r", "s"], ["y"]),
    ],
    "padding by a quantised number": [QUANTISE, helper.make_node("Pad", ["q", "sides", "five"], ["r"]), DEQUANTISE],
    "padding by nothing, which is the number 0": [QUANTISE, helper.make_node("Pad", ["q", "sides"], ["r"]), DEQUANTISE],
    "one scale per channel, of an array that is computed": [
        *PER_CHANNEL,
        helper.make_node("Unsqueeze", ["i", "last"], ["j"]),
        helper.make_node("DequantizeLinear", ["j", "t"], ["b"], axis=1),
        helper.make_node("Squeeze", ["b", "last"], ["c"]),
        helper.make_node("Add", ["a", "c"], ["y"]),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_are_found(tmp_path, form):
    """Inputs are whole steps, so that nothing is rounded."""
    given = (("sides", [0, 1, 0, 1], np.int64), ("five", 5, np.uint8), ("last", [2], np.int64))
    constants = [*STEP, WEIGHT, *(constant(numbers, name, kind) for name, numbers, kind in given)]
    path = quantised_file(tmp_path, FORMS[form], constants, opset=21)
    x = RANDOM.integers(-4, 20, (6, 4)).astype(np.float32)
    with torch.no_grad():
        assert np.allclose(load_onnx(path)(torch.from_numpy(x)), theirs(path, x), atol=1e-6)


COMPUTES = "computes on quantised numbers"
BRANCH = helper.make_graph([helper.make_node("DequantizeLinear", ["q", "s", "z"], ["b"])], "b", [], [value("b")])
REFUSED = {
    "an operator that is not known": ([helper.make_node("QLinearTanh", ["q"], ["y"])], "QLinearTanh.*is not supported"),
    "one of the runtime": (
        [helper.make_node("QAttention", ["q"], ["y"], domain="com.microsoft")],
        "QAttention.*'com.microsoft'",
    ),
    "channels last": (
        [
            helper.make_node(
                "QLinearGlobalAveragePool", ["q", "s", "z", "s", "z"], ["y"], domain="com.microsoft", channels_last=1
            )
        ],
        "QLinearGlobalAveragePool.*'com.microsoft'",
    ),
    "the whole numbers themselves": ([helper.make_node("Cast", ["q"], ["y"], to=1)], f"Cast.*{COMPUTES}"),
    "the whole numbers in a branch": (
        [helper.make_node("If", ["c"], ["y"], then_branch=BRANCH, else_branch=BRANCH)],
        f"If.*{COMPUTES}",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_computed_as_floats_is_refused_by_name(tmp_path, what):
    nodes, said = REFUSED[what]
    with pytest.raises(UnsupportedOperationError, match=said):
        load_onnx(quantised_file(tmp_path, [QUANTISE, *nodes], [*STEP, constant(True, "c", bool)]))


@pytest.mark.parametrize("operator", sorted({*CASES, "QuantizeLinear", "DequantizeLinear", "MatMulInteger"}))
def test_a_node_without_its_inputs_is_refused(tmp_path, operator):
    domain = "com.microsoft" if operator in CASES and operator not in ("QLinearConv", "QLinearMatMul") else ""
    with pytest.raises(ModelError, match=f"{operator}.*lacks inputs"):
        load_onnx(quantised_file(tmp_path, [helper.make_node(operator, ["x"], ["y"], domain=domain)], []))


def test_one_scale_may_be_of_two_weights(tmp_path):
    """Its shape is made for each: along the outputs of a convolution, and along those of its bias."""
    weights = [constant(RANDOM.integers(-9, 9, (4, 2, 1, 1)), "w", np.int8), constant([0.5, 1, 2, 0.25], "t")]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "t"], ["a"], axis=0),
        helper.make_node("DequantizeLinear", ["w", "t"], ["b"], axis=0),
        helper.make_node("Conv", ["x", "a"], ["h"]),
        helper.make_node("Conv", ["x", "b"], ["i"]),
        helper.make_node("Add", ["h", "i"], ["y"]),
    ]
    path, x = quantised_file(tmp_path, nodes, weights, (2, 2, 3, 3)), RANDOM.normal(size=(2, 2, 3, 3))
    x = x.astype(np.float32)
    with torch.no_grad():
        assert np.allclose(load_onnx(path)(torch.from_numpy(x)), theirs(path, x), atol=1e-5)
