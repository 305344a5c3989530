"""Nodes as onnxruntime computes them: resizing of all kinds, optional inputs left out in turn, numbers of half size."""

import random
from itertools import product

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper, numpy_helper

from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.models import load_model
from idc_core.models.onnx import OPERATORS, build_network
from idc_core.models.onnx.reading import _graph_of

OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional
RANDOM = np.random.default_rng(0)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def model_of(node, values, given, opset):
    """A graph of one node: the values are weights, but for those that are `given` when it runs."""
    kinds = {name: numpy_helper.from_array(value, name) for name, value in values.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name].data_type, values[name].shape) for name in given]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    weights = [kinds[name] for name in dict.fromkeys(node.input) if name and name not in given]
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def theirs(model, values):
    """What onnxruntime returns; None where it refuses the node."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        return session.run(None, {one.name: values[one.name] for one in model.graph.input})
    except Exception:
        return None


def ours(model, values):
    with torch.no_grad():
        found = build_network(_graph_of(model, "the test"))(
            *(torch.from_numpy(np.asarray(values[one.name])) for one in model.graph.input)
        )
    return found if isinstance(found, tuple) else (found,)


def compare(model, values):
    """Return whether onnxruntime runs a node; fail where it gives other numbers."""
    expected = theirs(model, values)
    if expected is None:
        return False
    for one, other in zip(ours(model, values), expected, strict=True):
        torch.testing.assert_close(one, torch.from_numpy(np.asarray(other)), rtol=1e-4, atol=2e-5, equal_nan=True)
    return True


COORDINATES = (
    *("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"),
    *("tf_crop_and_resize", "half_pixel_symmetric"),
)
FACTORS = (0.35, 0.5, 0.6, 0.7, 0.9, 1, 1.1, 1.2, 1.5, 2, 2.5, 3, 1 / 3, 4 / 7)


def resizing(draw):
    """A node that resizes, drawn at random: opset, shape, attributes, scales or sizes, all axes or some."""
    opset = draw.choice([7, 9, 10, 11, 13, 18, 19, 19])
    attributes = {"mode": draw.choice(["nearest", "linear", "cubic"][: 2 + (opset > 10)])}
    rank = draw.choice([1, 2, 3, 4, 4, 5])
    shape = [draw.randint(1, 13) if axis > 1 or rank < 4 else draw.randint(1, 3) for axis in range(rank)]
    spatial = list(range(rank)) if rank < 4 else list(range(2, rank))
    scales = np.ones(rank, np.float32)
    scales[spatial] = [max(draw.choice(FACTORS), opset < 10) for _ in spatial]
    if opset == 7:
        return opset, helper.make_node("Upsample", ["x"], ["y"], scales=scales, **attributes), {"x": floats(*shape)}
    if opset < 11:
        name = "Upsample" if opset == 9 else "Resize"
        return opset, helper.make_node(name, ["x", "s"], ["y"], **attributes), {"x": floats(*shape), "s": scales}
    attributes["coordinate_transformation_mode"] = draw.choice(COORDINATES[: 6 + (opset > 18)])
    if attributes["mode"] == "nearest":
        attributes["nearest_mode"] = draw.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    elif opset > 17 and draw.random() < 0.4:
        attributes["antialias"] = 1
    if attributes["mode"] == "cubic":
        attributes["cubic_coeff_a"] = draw.choice([-0.75, -0.5])
    if attributes["mode"] == "cubic" or "antialias" in attributes:
        attributes["exclude_outside"] = draw.choice([0, 1])
    attributes["extrapolation_value"] = draw.choice([0.0, 3.5])
    axes = spatial if opset > 17 and draw.random() < 0.4 else list(range(rank))
    if len(axes) < rank:
        attributes["axes"] = axes
    region = np.array([[draw.uniform(-0.1, 0.4), draw.uniform(0.5, 1.2)] for _ in spatial], np.float32)
    whole = np.array([[0, 1]] * rank, np.float32)
    whole[spatial] = region
    values = {"x": floats(*shape), "r": whole[axes].T.flatten(), "s": scales[axes], "none": np.zeros(0, np.float32)}
    if draw.random() < 0.4:
        if opset > 17:
            attributes["keep_aspect_ratio_policy"] = draw.choice(["stretch", "not_larger", "not_smaller"])
        values["z"] = np.maximum(1, np.rint(np.array(shape) * scales)).astype(np.int64)[axes]
        return opset, helper.make_node("Resize", ["x", "r", "none", "z"], ["y"], **attributes), values
    return opset, helper.make_node("Resize", ["x", "r", "s"], ["y"], **attributes), values


def resized(seed, count):
    """Return how many of so many nodes onnxruntime runs, each of which must be equal."""
    draw = random.Random(seed)
    return sum(
        compare(model_of(node, values, ["x"], opset), values)
        for opset, node, values in (resizing(draw) for _ in range(count))
    )


def test_resizing():
    assert resized(0, 60) > 40


@pytest.mark.slow
def test_resizing_of_many_kinds():
    assert resized(1, 3000) > 2000


STATES, INPUTS, STEPS = 3, 4, 5


def recurrent(gates, directions, cell=False):
    values = {
        "x": floats(STEPS, 2, INPUTS),
        "w": floats(directions, gates * STATES, INPUTS),
        "r": floats(directions, gates * STATES, STATES),
        "b": floats(directions, 2 * gates * STATES),
        "lengths": np.full(2, STEPS, np.int32),
        "h": floats(directions, 2, STATES),
    }
    return values | ({"c": floats(directions, 2, STATES), "p": np.zeros((directions, 9), np.float32)} if cell else {})


BOTH = {"direction": "bidirectional", "hidden_size": STATES}
IMAGE = {"x": floats(2, 3, 6, 5), "w": floats(4, 3, 3, 3), "b": floats(4)}
WHOLE = {"x": floats(2, 3, 4), "axes": np.array([1])}
OPTIONALS = {
    "Attention": ({name: floats(2, 2, 3, 4) for name in "qkv"} | {"mask": floats(3, 3)}, {}),
    "Clip": ({"x": floats(2, 5), "low": np.float32(-0.5), "high": np.float32(0.4)}, {}),
    "Conv": (IMAGE, {}),
    "ConvTranspose": ({"x": floats(2, 4, 6, 5), "w": floats(4, 3, 3, 3), "b": floats(3)}, {"strides": [2, 2]}),
    "Dropout": ({"x": floats(2, 5), "ratio": np.float32(0.3), "training": np.array(False)}, {}),
    "Gemm": ({"x": floats(2, 3), "w": floats(3, 4), "c": floats(4)}, {}),
    "GRU": (recurrent(3, 2), {"linear_before_reset": 1, **BOTH}),
    "LSTM": (recurrent(4, 2, cell=True), BOTH),
    "RNN": (recurrent(1, 2), BOTH),
    "LayerNormalization": ({"x": floats(2, 3, 4), "scale": floats(4), "b": floats(4)}, {}),
    "Pad": ({"x": floats(2, 3), "pads": np.array([0, 1]), "value": np.float32(2), "axes": np.array([1])}, {}),
    "Resize": ({"x": floats(1, 2, 5), "r": np.zeros(0, np.float32), "s": np.float32([1, 1, 1.5])}, {}),
    "Slice": ({"x": floats(4, 5), "a": np.array([1, 0]), "b": np.array([3, 4]), "axes": np.array([1, 0]),
               "steps": np.array([2, 1])}, {}),
    "Split": ({"x": floats(4, 6), "split": np.array([1, 3])}, {"outputs": 2}),
    "Squeeze": ({"x": floats(2, 1, 3, 1), "axes": np.array([1])}, {}),
    "Trilu": ({"x": floats(4, 5), "k": np.array(1)}, {}),
    **{name: (WHOLE, {}) for name in OPERATORS if name.startswith("Reduce")},
}  # fmt: skip
"""An operator with optional inputs -> all of its inputs in order, and attributes."""

SETTINGS = {"training", "lengths", "p"}
"""Inputs that are refused where they are not known beforehand."""

ELSEWHERE = {"Loop": "test_a_loop_without_its_optional_inputs_or_without_a_step"}


def optional_places(operator):
    schema = onnx.defs.get_schema(operator)
    return [place for place, one in enumerate(schema.inputs) if one.option == OPTIONAL]


def test_every_operator_with_optional_inputs_is_here():
    known = {name for name in OPERATORS if onnx.defs.has(name) and optional_places(name)}
    assert known == {*OPTIONALS, *ELSEWHERE}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("operator", OPTIONALS)
def test_optional_inputs_left_out(operator):
    """Each alone, all but each, and all from each on; as weights, and given when it runs; outputs unnamed too."""
    values, attributes = dict(OPTIONALS[operator][0]), dict(OPTIONALS[operator][1])
    names, opset = list(values), 23 if operator == "Attention" else 20
    places = [place for place in optional_places(operator) if place < len(names)]
    several = attributes.pop("outputs", 3 if operator == "LSTM" else 2 if operator in ("GRU", "RNN") else 1)
    results = [f"y{number}" for number in range(several)]
    left_out = {(), *((place,) for place in places), tuple(places)}
    left_out |= {tuple(other for other in places if other != place) for place in places}
    left_out |= {tuple(other for other in places if other >= place) for place in places}
    ran = 0
    for missing, weights, unnamed in product(
        left_out, (True, False), range(1 if operator == "Split" else len(results))
    ):
        inputs = ["" if place in missing else name for place, name in enumerate(names)]
        while not inputs[-1]:
            inputs.pop()
        outputs = [name if not unnamed or number == unnamed else "" for number, name in enumerate(results)]
        node = helper.make_node(operator, inputs, outputs, **attributes)
        given = inputs[:1] if weights else [name for name in inputs if name and name not in SETTINGS]
        ran += compare(model_of(node, values, given, opset), values)
    assert ran > len(places)


@pytest.mark.parametrize("ceil_mode", [-1, 1, 2])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_windows_are_rounded_up_only_where_it_says_one(operator, ceil_mode):
    node = helper.make_node(operator, ["x"], ["y"], kernel_shape=[2], strides=[2], ceil_mode=ceil_mode)
    values = {"x": floats(1, 2, 5)}
    assert compare(model_of(node, values, ["x"], 20), values)


def test_an_output_of_a_split_that_nothing_names():
    node = helper.make_node("Split", ["x", "split"], ["y", ""], axis=1)
    values = {"x": floats(2, 5), "split": np.array([2, 3])}
    (found,) = ours(model_of(node, values, ["x"], 13), values)
    assert np.array_equal(found, values["x"][:, :2])


KINDS = {"half": np.float16, "double": np.float64}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ends", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("layer", ["Conv", "MatMul", "LayerNormalization"])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_another_precision(kind, layer, ends, tmp_path):
    """In- and outputs are floats, as converters leave them, or numbers of that precision as well."""
    number = KINDS[kind]
    code = helper.np_dtype_to_tensor_dtype(np.dtype(number))
    shapes = {"Conv": [(8, 8, 5), (8,)], "MatMul": [(5, 6)], "LayerNormalization": [(5,), (5,)]}[layer] + [(8, 3)]
    names = [*(f"w{place}" for place in range(len(shapes) - 1)), "d"]
    weights = [
        numpy_helper.from_array(floats(*shape).astype(number), name) for name, shape in zip(names, shapes, strict=True)
    ]
    first = helper.make_node("Cast", ["x"], ["a"], to=code) if ends[0] else helper.make_node("Identity", ["x"], ["a"])
    sums = helper.make_node("ReduceSum", ["b", "axis"], ["s"], keepdims=0)
    dense = helper.make_node("MatMul", ["s", "d"], ["c"])
    last = helper.make_node("Cast", ["c"], ["y"], to=1) if ends[1] else helper.make_node("Identity", ["c"], ["y"])
    nodes = [first, helper.make_node(layer, ["a", *names[:-1]], ["b"]), sums, dense, last]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1 if ends[0] else code, ["n", 8, 5])],
        [helper.make_tensor_value_info("y", 1 if ends[1] else code, None)],
        [*weights, numpy_helper.from_array(np.array([2]), "axis")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "a.onnx"
    path.write_bytes(model.SerializeToString())
    x = floats(3, 8, 5).astype(np.float32 if ends[0] else number)
    expected = theirs(model, {"x": x})
    with torch.no_grad():
        found = load_model(path)(torch.from_numpy(x)).double().numpy()
    if expected is None:
        assert (kind, layer) == ("double", "Conv")  # which onnxruntime lacks
        return
    steps = 2e-3 if kind == "half" else 1e-5  # of half numbers at both ends
    assert np.allclose(found, expected[0], rtol=steps, atol=steps * np.abs(expected[0]).max())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_poolings_with_dilation_and_padding_of_their_own(operator, auto, dilation):
    values = {"x": floats(1, 2, 11, 9)}
    for strides, kernel in product([[1, 1], [2, 3]], [[2, 2], [3, 2]]):
        sizes = {"kernel_shape": kernel, "strides": strides, "dilations": [dilation, 2]}
        node = helper.make_node(operator, ["x"], ["y"], auto_pad=auto, **sizes)
        assert compare(model_of(node, values, ["x"], 19), values)


WHOLE_NUMBERS = np.random.default_rng(5)


@pytest.mark.parametrize("zeros", [np.int8(3), np.array([1, -5, 9], np.int8)], ids=["one", "per channel"])
@pytest.mark.parametrize("given", [["x"], ["x", "x_zero", "w_zero"]], ids=["weights", "given"])
@pytest.mark.parametrize("operator", ["ConvInteger", "MatMulInteger"])
def test_products_of_whole_numbers_from_their_zero_points(operator, given, zeros):
    """Against the sum itself: onnxruntime takes zero points per channel for products of matrices alone."""
    shapes = {"ConvInteger": [(1, 2, 5, 5), (3, 2, 1, 1)], "MatMulInteger": [(4, 2), (2, 3)]}[operator]
    x = WHOLE_NUMBERS.integers(0, 255, shapes[0]).astype(np.uint8)
    w = WHOLE_NUMBERS.integers(-128, 127, shapes[1]).astype(np.int8)
    values = {"x": x, "w": w, "x_zero": np.uint8(120), "w_zero": zeros}
    node = helper.make_node(operator, list(values), ["y"])
    (found,) = ours(model_of(node, values, given, 13), values)
    whole = x.astype(int) - 120
    weight = w.reshape(3, 2).T.astype(int) if operator == "ConvInteger" else w.astype(int)
    sums = np.einsum("ncij,ck->nkij" if operator == "ConvInteger" else "nc,ck->nk", whole, weight - zeros)
    assert np.array_equal(found.numpy(), sums)


def test_weights_that_are_quantised_in_the_file_per_channel():
    values = {"x": 5 * floats(3, 4), "scale": np.float32([0.01, 0.02, 0.03]), "zero": np.int8([1, -2, 3])}
    node = helper.make_node("QuantizeLinear", list(values), ["y"], axis=0)
    (found,) = ours(model_of(node, values, ["x"], 13), values)
    steps, zeros = values["scale"][:, None], values["zero"][:, None].astype(np.float32)
    limits = (-128 - zeros) * steps, (127 - zeros) * steps
    assert np.allclose(found, np.clip(values["x"], *limits), atol=1e-6)


def stepwise(last):
    """A sum over steps that begins at a constant; how each step returns its state."""
    sums, rows = ("t", [helper.make_node("Add", ["s", "r"], ["t"])]) if last == "sum" else ("s", [])
    if last == "identity":
        sums, rows = "t", [helper.make_node("Identity", ["s"], ["t"])]
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [*rows, helper.make_node("Mul", [sums, "r"], ["row"])],
        "steps",
        [info("s", 1, [2, 3]), info("r", 1, [2, 3])],
        [info(sums, 1, [2, 3]), info("row", 1, [2, 3])],
    )
    return helper.make_node("Scan", ["first", "x"], ["end", "y"], body=body, num_scan_inputs=1)


def test_a_scan_whose_state_begins_at_a_constant():
    values = {"x": floats(4, 2, 3), "first": floats(2, 3)}
    assert all(compare(model_of(stepwise(last), values, ["x"], 13), values) for last in ("sum", "identity"))
    with pytest.raises(UnsupportedOperationError, match="onnxruntime loses it"):
        ours(model_of(stepwise("nothing"), values, ["x"], 13), values)


def test_an_output_that_nothing_gives_is_named():
    values = {"x": floats(2, 4)}
    model = model_of(helper.make_node("Split", ["x"], ["y", "z"], axis=1, num_outputs=2), values, ["x"], 18)
    model.graph.node[0].output.append("lacking")
    model.graph.output.append(helper.make_empty_tensor_value_info("lacking"))
    with pytest.raises(ModelError, match="'lacking'"):
        ours(model, values)


FOUR = floats(2, 3, 4, 5)
ODD = {
    "a batch normalisation that takes from the variance": (
        "BatchNormalization", {"x": FOUR, "s": floats(3), "b": floats(3), "m": floats(3), "v": np.float32([3, 4, 5])},
        {"epsilon": -1.0}, 15),
    "a scale of more axes than are normalised": ("LayerNormalization", {"x": FOUR, "s": floats(4, 5)}, {}, 17),
    "no axes to squeeze": ("Squeeze", {"x": FOUR[:1], "axes": np.zeros(0, np.int64)}, {}, 13),
    "a zero of a shape that is kept": ("Reshape", {"x": FOUR[0], "s": np.array([0, -1])}, {"allowzero": 2}, 19),
    "no reduction": ("ScatterND", {"x": FOUR, "i": np.array([[1]]), "u": FOUR[:1]}, {"reduction": ""}, 18),
    "no padding of its own": ("MaxPool", {"x": FOUR}, {"kernel_shape": [2, 2], "auto_pad": ""}, 12),
    "axes that are not there": ("MeanVarianceNormalization", {"x": FOUR[0]}, {}, 13),
}  # fmt: skip
"""Attributes at odd values: operator, inputs, attributes, opset."""


@pytest.mark.parametrize("named", ODD)
def test_attributes_at_odd_values(named):
    operator, values, attributes, opset = ODD[named]
    node = helper.make_node(operator, list(values), ["y"], **attributes)
    assert sum(compare(model_of(node, values, given, opset), values) for given in (["x"], list(values)))


def test_a_channel_of_equal_numbers_is_normalised_to_zero():
    """Where onnxruntime divides by its deviation, 0."""
    values = {"x": np.full((2, 3, 4, 4), 3.3, np.float32)}
    (found,) = ours(model_of(helper.make_node("MeanVarianceNormalization", ["x"], ["y"]), values, ["x"], 13), values)
    assert not found.any()


def test_attention_to_numbers_that_are_none_is_none():
    values = {name: floats(1, 1, 2, 4) for name in "qkv"}
    values["q"][0, 0, 0, 0] = np.nan
    assert compare(model_of(helper.make_node("Attention", ["q", "k", "v"], ["y"]), values, ["q"], 23), values)
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], scale=np.inf)
    with pytest.raises(UnsupportedOperationError, match="'scale' inf; expected a finite number"):
        ours(model_of(node, values, ["q"], 23), values)


def looping(steps):
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["goes"]), helper.make_node("Add", ["s", "s"], ["t"])],
        "steps",
        [info("i", 7, []), info("c", 9, []), info("s", 1, [2, 3])],
        [info("goes", 9, []), info("t", 1, [2, 3]), info("s", 1, [2, 3])],
    )
    return helper.make_node("Loop", steps, ["end", "rows"], body=body)


@pytest.mark.parametrize(
    "steps", [["n", "on", "x"], ["n", "", "x"], ["none", "on", "x"], ["n", "off", "x"], ["", "off", "x"]]
)
def test_a_loop_without_its_optional_inputs_or_without_a_step(steps):
    values = {"x": floats(2, 3), "n": np.array(3), "none": np.array(0), "on": np.array(True), "off": np.array(False)}
    assert compare(model_of(looping(steps), values, ["x"], 13), values)


def test_what_does_not_fit_is_told_in_our_words():
    values = {"x": floats(2, 3), "w": floats(4, 5)}
    with pytest.raises(ModelError, match=r"Add, no attributes\) cannot be computed of float32 \[2, 3\]\. Expected"):
        ours(model_of(helper.make_node("Add", ["x", "w"], ["y"]), values, ["x"], 13), values)
    with pytest.raises(ModelError, match=r"inputs float32 \[2, 3\], float32 \[4, 5\], which do not fit together"):
        ours(model_of(helper.make_node("Add", ["x", "w"], ["y"]), values, [], 13), values)
