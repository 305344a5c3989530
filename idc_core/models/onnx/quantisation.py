"""Quantised operators, as the operators on floats that they stand for: rounding is left out, and all else is kept.

A rounding has no derivative to propagate relevance by, and a scale that is computed from a whole batch would let inputs
depend on each other. So a quantised array is held as the real numbers that it stands for, its scale 1 where it is
computed. What a narrow type cuts off is cut off: exporters leave a ReLU to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.models.onnx.subgraphs import graphs_of, needed_names

FUSED = "com.microsoft"
"""Domain of operators that onnxruntime makes of others."""

_LIMITS: dict[int, tuple[float, float]] = {
    TensorProto.INT8: (-128.0, 127.0),
    TensorProto.UINT8: (0.0, 255.0),
    TensorProto.INT16: (-32768.0, 32767.0),
    TensorProto.UINT16: (0.0, 65535.0),
}
_MOVES = (
    *("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "MaxPool", "Identity", "Slice", "Split", "Concat"),
    *("Gather", "Expand", "Tile", "Resize", "DepthToSpace", "SpaceToDepth"),
)
"""What a quantised array goes through as it is."""

_ORDERS = ("ArgMax", "ArgMin", "Shape", "Size")
"""What gives the same of a quantised array as of the real numbers that it stands for."""

_REMARK = "Quantised numbers are computed as floats, without rounding: scores differ from the file's own by that."


def compute_as_floats(graph: GraphProto, opset: int, where: str) -> tuple[str, ...]:
    """Put operators on floats in place of quantised ones; return a sentence on it where there were any."""
    found = [_Rewriting(one, opset, where).run() for one in _all_graphs(graph)]
    return (_REMARK,) if any(found) else ()


def _all_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for inner in graphs_of(node):
            yield from _all_graphs(inner)


class _Told(NamedTuple):
    """How an array is quantised in the file: the names of its scale and zero point, and its type.

    Both names are empty where the scale is computed from the array: it is 1 here.
    """

    scale: str
    zero: str
    kind: int


class _Rewriting:
    """The nodes of a graph while they are written anew."""

    def __init__(self, graph: GraphProto, opset: int, where: str) -> None:
        self.graph, self.opset, self._where = graph, opset, where
        self.made: list[NodeProto] = []
        self.weights = {one.name: one for one in graph.initializer} | {
            node.output[0]: one.t
            for node in graph.node
            for one in node.attribute
            if node.op_type == "Constant" and one.name == "value" and node.output
        }
        self.real: dict[str, _Told] = {}  # quantised arrays that are held as the numbers they stand for

    def run(self) -> bool:
        """Write all nodes anew; return whether one was quantised."""
        found = False
        for node in self.graph.node:
            before = len(self.made)
            if self._rewrite(node):
                found = True
            else:
                del self.made[before:]
                self.made.append(node)
                self._follow(node)
        if found:
            kept = [NodeProto.FromString(node.SerializeToString()) for node in self.made]
            del self.graph.node[:]
            self.graph.node.extend(kept)
        return found

    def _rewrite(self, node: NodeProto) -> bool:
        rewrite = _REWRITTEN.get((node.domain, node.op_type))
        try:
            return rewrite is not None and rewrite(self, node)
        except (IndexError, ValueError) as error:
            raise ModelError(
                f"{self._where}: node {node.name!r} ({node.op_type}) lacks inputs or outputs that its operator has, or "
                "names an axis that is not there; export the network again."
            ) from error

    def _follow(self, node: NodeProto) -> None:
        """Note what a node that stays makes of quantised arrays; refuse it where it computes on their numbers."""
        arrays = list(node.input) if node.op_type == "Concat" else list(node.input[:1])
        others = set(needed_names(node)) - set(arrays)
        if self.real.keys().isdisjoint(needed_names(node)) or node.domain not in ("", "ai.onnx"):
            return
        if node.op_type in _MOVES and self.real.keys() >= {*arrays} and self.real.keys().isdisjoint(others):
            places = node.output[:1] if node.op_type == "MaxPool" else node.output
            self.real.update(dict.fromkeys(places, self.real[arrays[0]]))
        elif node.op_type not in _ORDERS:
            raise UnsupportedOperationError(
                f"{self._where}: node {node.name!r} ({node.op_type}) computes on quantised numbers, which is not "
                "supported. Quantise the network without it, or export it with floats."
            )

    def add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node and return its output."""
        self.made.append(
            helper.make_node(operator, inputs, [output], f"{output}/{operator}", None, None, None, **attributes)
        )
        return output

    def copy(self, node: NodeProto, operator: str, inputs: Sequence[str], output: str) -> str:
        """Add a node on floats in place of another, with its name and its attributes; return its output."""
        made = helper.make_node(operator, inputs, [output], node.name)
        made.attribute.extend(one for one in node.attribute if one.name not in ("channels_last", "opset"))
        if node.op_type == "QGemm":  # its bias is added before the product is scaled
            made.attribute.extend(helper.make_attribute("beta", one.f) for one in node.attribute if one.name == "alpha")
        self.made.append(made)
        return output

    def constant(self, values: object, output: str, kind: type = np.float32) -> str:
        """Add a constant and return its name."""
        self.graph.initializer.append(numpy_helper.from_array(np.array(values, kind), output))
        return output

    def floats(self, name: str, scale: str, zero: str, output: str, axis: int) -> str:
        """Add (x - zero) times scale, scale and zero along an axis; a name that is empty is left out."""
        value = self.add("Cast", [name], f"{output}/float", to=TensorProto.FLOAT)
        if zero:
            lowest = self.add("Cast", [zero], f"{output}/zero", to=TensorProto.FLOAT)
            value = self.add("Sub", [value, self._along(name, zero, lowest, axis)], f"{output}/from_zero")
        if scale:
            factor = self.add("Identity", [scale], f"{output}/scale")
            value = self.add("Mul", [value, self._along(name, scale, factor, axis)], f"{output}/scaled")
        return value

    def _along(self, array: str, told: str, value: str, axis: int) -> str:
        """Return a value in the shape in which it is along an axis of an array, where it is not one number."""
        one = self.weights.get(told)
        if axis == -1 or (one is not None and prod(one.dims) == 1):
            return value
        return self.add("Along", [value, array], f"{value}/along", axis=axis)

    def meant(self, array: str, scale: str, zero: str, output: str, axis: int) -> str:
        """Return the numbers that a quantised array stands for."""
        return array if array in self.real else self.floats(array, scale, zero, output, axis)

    def kind(self, zero: str, otherwise: int) -> int:
        """Return the type that a zero point tells, or another where there is none; 0 where it is no constant."""
        weight = self.weights.get(zero)
        return int(weight.data_type) if weight is not None else 0 if zero else otherwise

    def cut(self, value: str, told: _Told, output: str, axis: int = -1) -> bool:
        """Add what holds a value between the limits of its type along an axis; return whether the type is known."""
        if told.kind not in _LIMITS:
            return False
        bounds = []
        for name, limit in zip(("least", "most"), _LIMITS[told.kind], strict=True):
            bound = self.constant(limit, f"{output}/{name}")
            if told.zero:
                lowest = self.add("Cast", [told.zero], f"{output}/{name}/zero", to=TensorProto.FLOAT)
                bound = self.add("Sub", [bound, lowest], f"{output}/{name}/from_zero")
            bound = self.add("Mul", [bound, told.scale], f"{output}/{name}/scaled")
            bounds.append(self._along(value, told.scale, bound, axis))
        self.add("Clip", [value, *bounds], output)
        self.real[output] = told
        return True


def _input(node: NodeProto, place: int) -> str:
    return str(node.input[place]) if place < len(node.input) else ""


def _attribute(node: NodeProto, name: str, default: int) -> int:
    return next((one.i for one in node.attribute if one.name == name), default)


def _dynamic(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite DynamicQuantizeLinear: the array itself, scale 1, zero 0."""
    array, *others = node.output
    graph.add("Identity", [node.input[0]], array)
    for name, value, kind in zip(others, (1, 0), (np.float32, np.uint8), strict=False):
        if name:
            graph.constant(value, name, kind)
    graph.real[array] = _Told("", "", TensorProto.UINT8)
    return True


def _quantised(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite QuantizeLinear: the array between the limits of the type."""
    zero = _input(node, 2)
    kind = graph.kind(zero, _attribute(node, "output_dtype", 0) or TensorProto.UINT8)
    told, axis = _Told(node.input[1], zero, kind), _attribute(node, "axis", 1)
    return not _attribute(node, "block_size", 0) and graph.cut(node.input[0], told, node.output[0], axis)


def _dequantised(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite DequantizeLinear: the array itself where it was quantised here, else its numbers times their scale."""
    axis, output = _attribute(node, "axis", 1), node.output[0]
    if _attribute(node, "block_size", 0):
        return False
    graph.add("Identity", [graph.meant(node.input[0], node.input[1], _input(node, 2), output, axis)], output)
    return True


def _padded(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite Pad of a quantised array: the number that it is filled with is quantised as well."""
    told = graph.real.get(node.input[0])
    if told is None or len(node.input) < 2:
        return False
    output = node.output[0]
    filled = _input(node, 2) or graph.constant(0, f"{output}/nothing")
    made = NodeProto.FromString(node.SerializeToString())
    number = graph.floats(filled, told.scale, told.zero, f"{output}/filled", -1)
    made.input[:] = [*node.input[:2], number, *node.input[3:]]
    graph.made.append(made)
    graph.real[output] = told
    return True


def _operand(graph: _Rewriting, node: NodeProto, place: int, zero: int, axis: int) -> str:
    """Return one of two arrays that are multiplied, from their zero points, in the steps that the file scales later."""
    array, output = str(node.input[place]), f"{node.output[0]}/{place}"
    told = graph.real.get(array)
    if told is None:
        return graph.floats(array, "", _input(node, zero), output, axis)
    return graph.add("Div", [array, told.scale], f"{output}/steps") if told.scale else array


def _product(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite MatMulInteger and ConvInteger, whose results the file scales in later nodes."""
    operator = node.op_type.removesuffix("Integer")
    operands = [_operand(graph, node, place, place + 2, axis) for place, axis in ((0, -2), (1, _axis(operator)))]
    graph.copy(node, operator, operands, node.output[0])
    return True


def _axis(operator: str) -> int:
    """Return the axis of a weight that its scale and zero point are along: its outputs."""
    return 0 if operator == "Conv" else -1


def _scaled_product(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite MatMulIntegerToFloat and DynamicQuantizeMatMul, whose products are scaled, and have a bias."""
    dynamic, output = node.op_type == "DynamicQuantizeMatMul", node.output[0]
    scale, zero, bias = (2, 3, 4) if dynamic else (3, 5, 6)
    first = node.input[0]
    if not dynamic:
        first = graph.meant(first, node.input[2], _input(node, 4), f"{output}/0", -2)
    second = graph.meant(node.input[1], node.input[scale], _input(node, zero), f"{output}/1", -1)
    result = f"{output}/product" if _input(node, bias) else output
    graph.add("MatMul", [first, second], result)
    if _input(node, bias):
        graph.add("Add", [result, node.input[bias]], output)
    return True


class _Form(NamedTuple):
    """Where an operator that quantises its result has its inputs; scale and zero point follow an array.

    No `arrays`: any number of them behind the result.
    """

    operator: str  # on floats
    arrays: tuple[int, ...]
    result: int  # place of the result's scale
    bias: int = 0
    condition: tuple[int, ...] = ()  # inputs that are not quantised


_FORMS = {
    ("", "QLinearConv"): _Form("Conv", (0, 3), 6, bias=8),
    ("", "QLinearMatMul"): _Form("MatMul", (0, 3), 6),
    (FUSED, "QGemm"): _Form("Gemm", (0, 3), 7, bias=6),
    (FUSED, "QLinearAdd"): _Form("Add", (0, 3), 6),
    (FUSED, "QLinearMul"): _Form("Mul", (0, 3), 6),
    (FUSED, "QLinearConcat"): _Form("Concat", (), 0),
    (FUSED, "QLinearWhere"): _Form("Where", (1, 4), 7, condition=(0,)),
    (FUSED, "QLinearSigmoid"): _Form("Sigmoid", (0,), 3),
    (FUSED, "QLinearLeakyRelu"): _Form("LeakyRelu", (0,), 3),
    (FUSED, "QLinearSoftmax"): _Form("Softmax", (0,), 3),
    (FUSED, "QLinearAveragePool"): _Form("AveragePool", (0,), 3),
    (FUSED, "QLinearGlobalAveragePool"): _Form("GlobalAveragePool", (0,), 3),
}


def _on_floats(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite an operator that takes quantised arrays and quantises its result."""
    form, output = _FORMS[node.domain, node.op_type], node.output[0]
    written_for = _attribute(node, "opset", graph.opset)  # a softmax was another one before opset 13
    if _attribute(node, "channels_last", 0) or (written_for < 13) != (graph.opset < 13):
        return False
    places = form.arrays or range(2, len(node.input), 3)
    turned = form.operator == "Gemm" and _attribute(node, "transB", 0)
    axes = (-2, -2 if turned else _axis(form.operator))
    values = [str(node.input[place]) for place in form.condition]
    for number, place in enumerate(places):
        array, scale, zero = node.input[place], node.input[place + 1], _input(node, place + 2)
        values.append(graph.meant(array, scale, zero, f"{output}/{place}", axes[number > 0]))
    if form.bias and _input(node, form.bias):
        scale = graph.add("Mul", [node.input[places[0] + 1], node.input[places[1] + 1]], f"{output}/bias/step")
        values.append(graph.floats(node.input[form.bias], scale, "", f"{output}/bias", -1))
    if not _input(node, form.result):  # a dense layer at the end may give floats
        graph.copy(node, form.operator, values, output)
        return True
    first = graph.real.get(node.input[places[0]])
    kind = graph.kind(_input(node, places[0] + 2), TensorProto.UINT8) if first is None else first.kind
    zero = _input(node, form.result + 1)
    value = graph.copy(node, form.operator, values, f"{output}/whole")
    return graph.cut(value, _Told(node.input[form.result], zero, graph.kind(zero, kind)), output)


def _recurrent(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite DynamicQuantizeLSTM, whose weights are (directions, inputs, gates x states)."""
    inputs = [*node.input, *[""] * (12 - len(node.input))]
    weights = []
    for place, scale, zero in ((1, 8, 9), (2, 10, 11)):
        value = graph.floats(inputs[place], inputs[scale], inputs[zero], f"{node.output[0]}/{place}", 0)
        weights.append(graph.add("Transpose", [value], f"{value}/turned", perm=[0, 2, 1]))
    made = helper.make_node("LSTM", [inputs[0], *weights, *inputs[3:8]], node.output, node.name)
    made.attribute.extend(node.attribute)
    graph.made.append(made)
    return True


_REWRITTEN: dict[tuple[str, str], Callable[[_Rewriting, NodeProto], bool]] = {
    ("", "DynamicQuantizeLinear"): _dynamic,
    ("", "QuantizeLinear"): _quantised,
    ("", "DequantizeLinear"): _dequantised,
    ("", "Pad"): _padded,
    ("", "MatMulInteger"): _product,
    ("", "ConvInteger"): _product,
    (FUSED, "QuantizeLinear"): _quantised,
    (FUSED, "DequantizeLinear"): _dequantised,
    (FUSED, "MatMulIntegerToFloat"): _scaled_product,
    (FUSED, "DynamicQuantizeMatMul"): _scaled_product,
    (FUSED, "DynamicQuantizeLSTM"): _recurrent,
    **dict.fromkeys(_FORMS, _on_floats),
}
