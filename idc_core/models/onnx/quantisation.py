"""Quantised operators, as the operators on floats that they stand for: rounding is left out, and all else is kept.

A rounding has no derivative to propagate relevance by, and a scale that is computed from a whole batch would let inputs
depend on each other. So a quantised array is held as the real numbers that it stands for, its scale 1 where it is
computed. What a narrow type cuts off is cut off: exporters leave a ReLU to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from idc_core.models.onnx.subgraphs import graphs_of

FUSED = "com.microsoft"
"""Domain of operators that onnxruntime makes of others."""

_LIMITS = {
    TensorProto.INT8: (-128.0, 127.0),
    TensorProto.UINT8: (0.0, 255.0),
    TensorProto.INT16: (-32768.0, 32767.0),
    TensorProto.UINT16: (0.0, 65535.0),
}
_MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "MaxPool", "Identity", "Slice", "Split", "Concat")
"""What a quantised array goes through as it is."""

_REMARK = "Quantised numbers are computed as floats, without rounding: scores differ from the file's own by that."


def compute_as_floats(graph: GraphProto) -> tuple[str, ...]:
    """Put operators on floats in place of quantised ones; return a sentence on it where there were any."""
    found = [_Rewriting(one).run() for one in _all_graphs(graph)]
    return (_REMARK,) if any(found) else ()


def _all_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for inner in graphs_of(node):
            yield from _all_graphs(inner)


class _Rewriting:
    """The nodes of a graph while they are written anew."""

    def __init__(self, graph: GraphProto) -> None:
        self.graph = graph
        self.made: list[NodeProto] = []
        self.weights = {one.name: one for one in graph.initializer}
        self.real: set[str] = set()  # quantised arrays that are held as the numbers they stand for

    def run(self) -> bool:
        """Write all nodes anew; return whether one was quantised."""
        found = False
        for node in self.graph.node:
            rewrite = _REWRITTEN.get((node.domain, node.op_type))
            before = len(self.made)
            if rewrite is not None and rewrite(self, node):
                found = True
            else:
                del self.made[before:]
                self.made.append(node)
            if node.op_type in _MOVES and node.input and self.real.issuperset(self._arrays(node)):
                self.real.update(node.output)
        if found:
            kept = [NodeProto.FromString(node.SerializeToString()) for node in self.made]
            del self.graph.node[:]
            self.graph.node.extend(kept)
        return found

    def _arrays(self, node: NodeProto) -> list[str]:
        return list(node.input) if node.op_type == "Concat" else list(node.input[:1])

    def add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node and return its output."""
        self.made.append(
            helper.make_node(operator, inputs, [output], f"{output}/{operator}", None, None, None, **attributes)
        )
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
            value = self.add("Mul", [value, self._along(name, scale, scale, axis)], f"{output}/scaled")
        return value

    def _along(self, array: str, told: str, value: str, axis: int) -> str:
        """Return a value in the shape in which it is along an axis of an array, where both are known."""
        weight, one = self.weights.get(array), self.weights.get(told)
        if weight is None or one is None or not 0 < len(one.dims) < len(weight.dims):
            return value
        shape = [1] * len(weight.dims)
        shape[axis] = one.dims[0]
        shape[len(shape) - len(one.dims) + 1 :] = one.dims[1:]  # of recurrent layers: directions, and their gates
        return self.add("Reshape", [value, self.constant(shape, f"{value}/shape{axis}", np.int64)], f"{value}/{axis}")


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
    graph.real.add(array)
    return True


def _quantised(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite QuantizeLinear: the array between the limits of the type."""
    scale, zero, output = node.input[1], _input(node, 2), node.output[0]
    weight = graph.weights.get(zero)
    limits = _LIMITS.get(weight.data_type if weight is not None else TensorProto.UINT8)
    if limits is None or (zero and weight is None):
        return False
    bounds = []
    for name, value in zip(("least", "most"), limits, strict=True):
        bound = graph.constant(value, f"{output}/{name}")
        if zero:
            lowest = graph.add("Cast", [zero], f"{output}/{name}/zero", to=TensorProto.FLOAT)
            bound = graph.add("Sub", [bound, lowest], f"{output}/{name}/from_zero")
        bounds.append(graph.add("Mul", [bound, scale], f"{output}/{name}/scaled"))
    graph.add("Clip", [node.input[0], *bounds], output)
    graph.real.add(output)
    return True


def _dequantised(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite DequantizeLinear: the array itself where it was quantised here, else its numbers times their scale."""
    array, output = node.input[0], node.output[0]
    if array not in graph.real:
        array = graph.floats(array, node.input[1], _input(node, 2), output, _attribute(node, "axis", 1))
    graph.add("Identity", [array], output)
    return True


def _operand(graph: _Rewriting, node: NodeProto, place: int, zero: int, axis: int) -> str:
    """Return one of two arrays that are multiplied, its zero point subtracted unless it is held as it is meant."""
    array = node.input[place]
    if array in graph.real:
        return str(array)
    return graph.floats(array, "", _input(node, zero), f"{node.output[0]}/{place}", axis)


def _product(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite MatMulInteger and ConvInteger."""
    first, second = (_operand(graph, node, place, place + 2, axis) for place, axis in ((0, -1), (1, _axis(node))))
    made = helper.make_node("Conv" if node.op_type == "ConvInteger" else "MatMul", [first, second], node.output)
    made.name = node.name
    made.attribute.extend(node.attribute)
    graph.made.append(made)
    return True


def _axis(node: NodeProto) -> int:
    """Return the axis of a weight that its scale and zero point are along: its outputs."""
    return 0 if node.op_type == "ConvInteger" else -1


def _scaled_product(graph: _Rewriting, node: NodeProto) -> bool:
    """Rewrite MatMulIntegerToFloat and DynamicQuantizeMatMul, whose products are scaled, and have a bias."""
    dynamic, output = node.op_type == "DynamicQuantizeMatMul", node.output[0]
    scale, zero, bias = (2, 3, 4) if dynamic else (3, 5, 6)
    first = node.input[0]
    if not dynamic and first not in graph.real:
        first = graph.floats(first, node.input[2], _input(node, 4), f"{output}/0", -1)
    second = graph.floats(node.input[1], node.input[scale], _input(node, zero), f"{output}/1", -1)
    result = f"{output}/product" if _input(node, bias) else output
    graph.add("MatMul", [first, second], result)
    if _input(node, bias):
        graph.add("Add", [result, node.input[bias]], output)
    return True


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
    ("", "MatMulInteger"): _product,
    ("", "ConvInteger"): _product,
    (FUSED, "QuantizeLinear"): _quantised,
    (FUSED, "DequantizeLinear"): _dequantised,
    (FUSED, "MatMulIntegerToFloat"): _scaled_product,
    (FUSED, "DynamicQuantizeMatMul"): _scaled_product,
    (FUSED, "DynamicQuantizeLSTM"): _recurrent,
}
