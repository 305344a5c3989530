"""How the values of an ONNX graph are computed, as far as the endings of networks ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

from idc_core.errors import IdcError
from idc_core.lrp.endings import DEEPEST, Term
from idc_core.models.onnx.tensors import tensor_of

_OPERATIONS = {
    **{"Exp": "exp", "Log": "log", "Neg": "neg", "Tanh": "tanh", "Reciprocal": "reciprocal", "Sigmoid": "sigmoid"},
    **{"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"},
    **{"ReduceSum": "sum", "ReduceMax": "max", "ReduceLogSumExp": "logsumexp"},
    **{"Softmax": "softmax", "LogSoftmax": "log-softmax"},
    **dict.fromkeys(("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Dropout"), "move"),
}
_OF_TWO = ("add", "sub", "mul", "div")
_OVER_CLASSES = ("sum", "max", "logsumexp", "softmax", "log-softmax")
_PROBABILITIES = ("softmax", "sigmoid")
_FEW = 64
"""Numbers of a constant that is looked at: a factor, or axes."""


class Terms:
    """The terms of a graph's values by name, each made once."""

    def __init__(self, graph: GraphProto) -> None:
        self.makers: Mapping[str, NodeProto] = {name: node for node in graph.node for name in node.output if name}
        self._weights: Mapping[str, TensorProto] = {one.name: one for one in graph.initializer}
        self._made: dict[str, Term] = {}
        self._last = {one.name: len(one.type.tensor_type.shape.dim) - 1 for one in graph.output}

    def __call__(self, name: str, depth: int = DEEPEST) -> Term:
        """Return the term of a value; one of which nothing is known beyond some operations."""
        if name not in self._made:
            term = self._term(name, depth) if depth else Term("", (), name)
            self._made[name] = term
        return self._made[name]

    def _term(self, name: str, depth: int) -> Term:
        node = self.makers.get(name)
        if node is None or node.op_type == "Constant":
            numbers = self._numbers(name)
            return Term("", (), name) if len(numbers) != 1 else Term("number", (), numbers[0])
        if node.op_type == "Clip":  # probabilities that are kept off 0, or between the limits of a narrow type
            within = self(node.input[0], depth - 1)
            return Term("move", (within,), name) if within.operation in _PROBABILITIES else Term("", (), name)
        operation = _OPERATIONS.get(node.op_type, "")
        if node.op_type == "Max":  # the highest of a maximum and a constant, as JAX writes it
            rows = [one for one in node.input if not self._numbers(one)]
            return Term("move", (self(rows[0], depth - 1),), name) if len(rows) == 1 else Term("", (), name)
        needed = 2 if operation in _OF_TWO else 1
        if not operation or node.domain not in ("", "ai.onnx") or len(node.input) < needed:
            return Term("", (), name)
        if operation in _OVER_CLASSES and not self._over_classes(node):
            return Term("", (), name)
        return Term(operation, tuple(self(one, depth - 1) for one in node.input[:needed]), name)

    def _over_classes(self, node: NodeProto) -> bool:
        """Whether a node works over the axis of the classes: the second of maps, the last of anything else."""
        if node.op_type in ("Softmax", "LogSoftmax"):
            last = self._last.get(node.output[0], 1)  # of rows per step that an output holds
            return [one.i for one in node.attribute if one.name == "axis"] in ([], [1], [-1], [last])
        axes = [list(one.ints) for one in node.attribute if one.name == "axes" and one.type == AttributeProto.INTS]
        if not axes and len(node.input) > 1:
            axes = [[int(number) for number in self._numbers(node.input[1])]]
        return axes in ([[1]], [[-1]])

    def _numbers(self, name: str) -> Sequence[float]:
        """Return the numbers of a small constant; none of any other value."""
        node, weight = self.makers.get(name), self._weights.get(name)
        if node is not None and node.op_type == "Constant" and len(node.attribute) == 1:
            one = node.attribute[0]
            if one.name in ("value_float", "value_int"):
                return (float(one.f if one.name == "value_float" else one.i),)
            weight = one.t if one.name == "value" else None
        if weight is None or weight.data_location == TensorProto.EXTERNAL or sum(weight.dims) > _FEW:
            return ()
        try:
            value = tensor_of(weight, lambda location, offset, length: bytearray(), "a constant")
        except IdcError:  # refused by name where the graph is built
            return ()
        return [float(number) for number in value.flatten()[:_FEW].tolist()]
