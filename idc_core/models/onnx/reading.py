"""An ONNX file as plain data: its size, types, names and order are checked, and nothing in it is run."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorShapeProto, ValueInfoProto
from torch import Tensor

from idc_core.errors import ModelError, UnsupportedOperationError, of_a_network
from idc_core.guarded import Budget, opened
from idc_core.guarded.opening import size_of
from idc_core.models.onnx.class_names import names_in
from idc_core.models.onnx.held_inputs import hold_inputs
from idc_core.models.onnx.linear_models import DOMAIN as LEARNING
from idc_core.models.onnx.linear_models import make_dense
from idc_core.models.onnx.other_models import refuse_others
from idc_core.models.onnx.quantisation import compute_as_floats
from idc_core.models.onnx.registry import OPERATORS
from idc_core.models.onnx.scores import FLOATS, Asked, keep_scores
from idc_core.models.onnx.subgraphs import needed_names
from idc_core.models.onnx.tensors import HALVES, Read, inside, tensor_of, torch_type

_OLDEST_OPSET = 6
_DOMAINS = ("", "ai.onnx")
_LEARNT = ("Scaler",)
"""Operators of scikit-learn's own domain that are known as they are."""


@dataclass(frozen=True)
class Value:
    """An input of the network."""

    name: str
    dtype: torch.dtype
    shape: tuple[int | None, ...] | None  # None for a size, or all sizes, that are open


@dataclass(frozen=True)
class RawNode:
    """A node as it lies in the file.

    Of a node that holds graphs, `inputs` end with the values of the outer graph that those use: `captured` of them.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, object]
    captured: int = 0


@dataclass(frozen=True)
class Body:
    """A graph within a node: a branch, or what a loop repeats."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Tensor]
    nodes: tuple[RawNode, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of its constants, and of those within its nodes."""
        return sum(value.nbytes for value in self.constants.values()) + within(self.nodes)

    def holds(self, operators: tuple[str, ...]) -> bool:
        """Whether one of these operators is among its nodes, or in a graph within them."""
        inner = (value for node in self.nodes for value in node.attributes.values() if isinstance(value, Body))
        return any(node.operator in operators for node in self.nodes) or any(body.holds(operators) for body in inner)


@dataclass(frozen=True)
class Graph:
    """What a file holds."""

    where: str  # the file, for messages
    opset: int
    inputs: tuple[Value, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Tensor]
    nodes: tuple[RawNode, ...]
    budget: Budget  # what its constants, and what is computed of it, may hold
    remarks: tuple[str, ...] = ()  # what was left out
    class_names: tuple[str, ...] = ()  # of the scores
    taken: str = ""  # the value that scores are read from, where that is not plain


_HALVES_REMARK = "Numbers of half precision are computed in single precision, as onnxruntime does on a processor."

# The file's content, what the parser makes of it, and the arrays that are taken from that.
_COPIES = 3


def _read_bytes(
    path: Path, where: str, budget: Budget, offset: int = 0, length: int | None = None, copies: int = 1
) -> bytearray:
    """Return the content of a file, or a part of it; this is the one place that opens files.

    Raises ModelError if it is no regular file, takes more memory than is allowed, or is shorter than the part.
    """
    try:
        with of_a_network(), opened(path, where) as stream:
            size = size_of(stream)
            needed = size - offset if length is None else length
            if needed < 0 or offset + needed > size:
                raise ModelError(f"{where} has {size:,} bytes; byte {offset + max(0, needed):,} is wanted from it.")
            budget.take(copies * needed, "its content")
            stream.seek(offset)
            content = bytearray(needed)
            if stream.readinto(content) != needed:  # type: ignore[attr-defined]
                raise ModelError(f"{where} changed while it was read; read it again.")
            return content
    except OSError as error:
        raise ModelError(f"{where} cannot be read: {error.strerror}.") from error


def read_graph(path: Path, scores: Asked | None = None) -> Graph:
    """Read and check an ONNX file; of several outputs only that of the `scores`, before any softmax, where asked."""
    where = f"The ONNX file {path}"
    proto, budget = ModelProto(), Budget(where)
    try:
        proto.ParseFromString(_read_bytes(path, where, budget, copies=_COPIES))
    except (DecodeError, RecursionError) as error:
        raise ModelError(f"{where} is damaged, or no ONNX file ({error}).") from error
    graph = _graph_of(proto, where, path.parent, budget, scores)
    held = sum(value.nbytes for value in graph.constants.values()) + within(graph.nodes)
    budget.held = held  # the rest goes with the parser
    return graph


def within(nodes: tuple[RawNode, ...]) -> int:
    """Return the bytes of the constants of graphs within nodes."""
    return sum(value.nbytes for node in nodes for value in node.attributes.values() if isinstance(value, Body))


def axes_of_input(path: Path) -> int:
    """Return how many axes the one input of an ONNX file has, the batch among them; 0 where that is not told."""
    kinds = [info.type.tensor_type for info in _inputs_of(_sketch(path).graph)]
    alone = len(kinds) == 1 and kinds[0].HasField("shape") and kinds[0].elem_type in FLOATS
    return len(kinds[0].shape.dim) if alone else 0


def interface_of(path: Path) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the names of the inputs of an ONNX file, and how many axes each output has, 0 where that is not told."""
    graph = _sketch(path).graph
    outputs = tuple(len(info.type.tensor_type.shape.dim) for info in graph.output)
    return tuple(str(info.name) for info in _inputs_of(graph)), outputs  # bytes where they are no text


def _sketch(path: Path) -> ModelProto:
    """Return what a file holds, unchecked; nothing of a damaged one, which is told where it is read."""
    proto, where = ModelProto(), f"The ONNX file {path}"
    try:
        proto.ParseFromString(_read_bytes(path, where, Budget(where)))
    except (DecodeError, RecursionError):
        return ModelProto()
    return proto


def _inputs_of(graph: GraphProto) -> list[ValueInfoProto]:
    """Return the inputs of a graph; older files list their weights among them."""
    weights = {one.name for one in graph.initializer}
    return [info for info in graph.input if info.name not in weights]


def _graph_of(
    proto: ModelProto, where: str, folder: Path | None = None, budget: Budget | None = None, scores: Asked | None = None
) -> Graph:
    """Check a network that has been parsed; without a folder nothing may lie beside it."""
    held = budget or Budget(where)

    def read(location: str, offset: int, length: int | None) -> bytearray:
        if folder is None:
            raise ModelError(f"{where} has weights in another file, {location!r}; expected them in the file itself.")
        path = inside(folder, location, where)
        return _read_bytes(path, f"{where}: its weights file {location!r}", held, offset, length)

    graph = proto.graph
    called, used = (
        {(node.domain, node.op_type) for node in graph.node},
        {one for node in graph.node for one in needed_names(node)},
    )
    functions = [one.name for one in proto.functions if (one.domain, one.name) in called]
    if functions:
        raise UnsupportedOperationError(
            f"{where} uses functions of its own ({functions[0]}); export it with functions inlined."
        )
    if any(one.values.name in used for one in graph.sparse_initializer):
        raise UnsupportedOperationError(f"{where} has sparse weights; export it with dense ones.")
    if not graph.node and not graph.output:
        raise ModelError(f"{where} holds no network: it has no nodes and no outputs.")
    _check_names(graph, where)
    weights = {one.name for one in graph.initializer}  # of files before IR 4 inputs too, also those that nothing needs
    class_names = names_in(proto) if scores else ()
    refuse_others(graph, where)
    opset = _opset(proto, where)
    remarks = (*(hold_inputs(graph, scores.held, where) if scores else ()), *compute_as_floats(graph, opset, where))
    remarks += make_dense(graph, where) if scores else ()
    remarks += (_HALVES_REMARK,) if _holds_halves(graph) else ()
    kept, taken = keep_scores(graph, scores, class_names, where) if scores else ((), "")
    constants = _constants(graph, read, where)
    inputs = tuple(_value(info, where) for info in graph.input if info.name not in weights)
    nodes = tuple(_node(node, number, opset, read, where) for number, node in enumerate(graph.node))
    outputs = tuple(info.name for info in graph.output)
    result = Graph(where, opset, inputs, outputs, constants, nodes, held, (*remarks, *kept), class_names, taken)
    _check_order(result, graph)
    return result


def _holds_halves(graph: GraphProto) -> bool:
    """Whether there are numbers of half precision among the weights, the inputs, or what nodes make."""
    kinds = {one.data_type for one in graph.initializer} | {one.type.tensor_type.elem_type for one in graph.input}
    said = (one for node in graph.node for one in node.attribute if one.name in ("to", "dtype", "value"))
    return not (kinds | {one.t.data_type or one.i for one in said}).isdisjoint(HALVES)


def _constants(graph: GraphProto, read: Read, where: str) -> dict[str, Tensor]:
    constants: dict[str, Tensor] = {}
    for initializer in graph.initializer:
        if initializer.name in constants:
            raise ModelError(f"{where} has two weights named {initializer.name!r}.")
        constants[initializer.name] = tensor_of(initializer, read, f"{where}: weight {initializer.name!r}")
    return constants


def _body(graph: GraphProto, opset: int, read: Read, where: str) -> Body:
    """Read a graph within a node; its nodes may use values of the graphs around it."""
    _check_names(graph, where)
    if graph.sparse_initializer:
        raise UnsupportedOperationError(f"{where} has sparse weights; export it with dense ones.")
    nodes = tuple(_node(node, number, opset, read, where) for number, node in enumerate(graph.node))
    outputs = tuple(info.name for info in graph.output)
    return Body(tuple(info.name for info in graph.input), outputs, _constants(graph, read, where), nodes)


def _check_names(graph: GraphProto, where: str) -> None:
    """Refuse names that are no text: the parser gives bytes where they are not UTF-8."""
    of_nodes = (
        (
            node.name,
            node.op_type,
            node.domain,
            *node.input,
            *node.output,
            *(attribute.name for attribute in node.attribute),
        )
        for node in graph.node
    )
    of_values = ((value.name,) for value in (*graph.input, *graph.output, *graph.initializer))
    for name in itertools.chain.from_iterable((*of_nodes, *of_values)):
        if not isinstance(name, str):
            raise ModelError(f"{where} is damaged: the name {bytes(name)[:60]!r} is no text in UTF-8.")


def _opset(proto: ModelProto, where: str) -> int:
    # Both names of the one domain may be there.
    versions = sorted({entry.version for entry in proto.opset_import if entry.domain in _DOMAINS})
    newest = onnx.defs.onnx_opset_version()
    if len(versions) != 1 or not _OLDEST_OPSET <= versions[0] <= newest:
        raise UnsupportedOperationError(
            f"{where} is written for opset {', '.join(map(str, versions)) or 'nothing'}; expected one from "
            f"{_OLDEST_OPSET} to {newest}. Export it again for one of these."
        )
    return int(versions[0])


def _value(info: onnx.ValueInfoProto, where: str) -> Value:
    if info.type.WhichOneof("value") != "tensor_type":
        kind = info.type.WhichOneof("value") or "nothing"
        raise UnsupportedOperationError(f"{where}: input {info.name!r} is a {kind}; expected an array.")
    array = info.type.tensor_type
    shape = tuple(_length(dimension) for dimension in array.shape.dim) if array.HasField("shape") else None
    return Value(info.name, torch_type(array.elem_type, f"{where}: input {info.name!r}"), shape)


def _length(dimension: TensorShapeProto.Dimension) -> int | None:
    return int(dimension.dim_value) if dimension.HasField("dim_value") and dimension.dim_value > 0 else None


def _node(node: NodeProto, number: int, opset: int, read: Read, where: str) -> RawNode:
    label = f"{where}: node {node.name or number!r} ({node.op_type}, opset {opset})"
    if node.domain not in _DOMAINS and not (node.domain == LEARNING and node.op_type in _LEARNT):
        raise UnsupportedOperationError(
            f"{label} is of the domain {node.domain!r}; only operators of ONNX itself are supported. "
            "Export the network without it."
        )
    if node.op_type not in OPERATORS and node.op_type != "Constant":
        raise UnsupportedOperationError(
            f"{label} of the domain 'ai.onnx' is an operator that is not supported. Export the network without it, or "
            "build it in a setup file."
        )
    attributes: dict[str, object] = {
        item.name: _body(item.g, opset, read, f"{label}: {item.name}")
        if item.type == AttributeProto.GRAPH
        else _attribute(item, read, label)
        for item in node.attribute
    }
    inputs, own = needed_names(node), len(node.input)
    return RawNode(node.name, node.op_type, inputs, tuple(node.output), attributes, len(inputs) - own)


def _attribute(attribute: AttributeProto, read: Read, label: str) -> object:
    kind, where = attribute.type, f"{label}: attribute {attribute.name!r}"
    plain = {AttributeProto.FLOAT: "f", AttributeProto.INT: "i"}
    lists = {AttributeProto.FLOATS: "floats", AttributeProto.INTS: "ints"}
    if attribute.ref_attr_name:
        raise ModelError(f"{where} refers to a function, and there is none.")
    if kind in plain:
        return getattr(attribute, plain[kind])
    if kind in lists:
        return list(getattr(attribute, lists[kind]))
    if kind == AttributeProto.STRING:
        return attribute.s.decode("utf-8", "replace")
    if kind == AttributeProto.STRINGS:
        return [text.decode("utf-8", "replace") for text in attribute.strings]
    if kind == AttributeProto.TENSOR:
        return tensor_of(attribute.t, read, where)
    raise UnsupportedOperationError(
        f"{where} is of the kind {AttributeProto.AttributeType.Name(kind)}, which is not supported."
    )


def _check_order(graph: Graph, proto: GraphProto) -> None:
    """Refuse values that come twice, are used before they are made, or are never made."""
    made = [value.name for value in graph.inputs] + list(graph.constants)
    made += [name for node in graph.nodes for name in node.outputs if name]
    twice = [name for name, count in Counter(made).items() if count > 1]
    if twice:
        raise ModelError(f"{graph.where}: the value {twice[0]!r} is made more than once; export the network again.")
    there = {value.name for value in graph.inputs} | set(graph.constants)
    for node in graph.nodes:
        for name in node.inputs:
            if name and name not in there:
                later = "only a later node makes it, or the node itself" if name in made else "nothing makes it"
                raise ModelError(
                    f"{graph.where}: node {node.name!r} ({node.operator}) uses {name!r}, but {later}; export the "
                    "network again."
                )
        there.update(node.outputs)
    missing = [name for name in graph.outputs if name not in there]
    if missing or not graph.outputs:
        raise ModelError(f"{graph.where}: its output {(missing or ['(none)'])[0]!r} is made by no node.")
