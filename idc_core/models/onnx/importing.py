"""From the nodes of a graph to the modules of a network: naming, folding of constants, dense layers put together."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import onnx
import torch
from onnx import AttributeProto
from torch import Tensor, nn

from idc_core.errors import IdcError, ModelError, UnsupportedOperationError
from idc_core.models.bounded import Bounded
from idc_core.models.onnx import operators  # noqa: F401 - they enter themselves
from idc_core.models.onnx.network import OnnxNetwork, Operation, Step, check_batches
from idc_core.models.onnx.reading import Body, Graph, RawNode, Value, read_graph
from idc_core.models.onnx.registry import MISTAKES, OPERATORS, Built, Node, WrittenBatch
from idc_core.models.onnx.scores import Asked

_Made = TypeVar("_Made")

_OF_SHAPES = ("Shape", "Size")
"""Operators whose results follow from shapes alone."""

_STATES = {"Loop": (2, 1), "Scan": (0, 0)}
"""Where the states of a loop begin among the inputs and the results of what it repeats."""

_MAYBE_ENDLESS = ("min", "max", "value", "extrapolation_value", "clip")
"""Attributes that may be infinite: limits, and what is filled in."""

_RAGGED = ("NonZero", "Compress", "Unique", "NonMaxSuppression")
"""Operators whose shapes follow from numbers."""

_TAKEN = {name.lower() for name in dir(OnnxNetwork)} | {"input", "inputs", "card", "training"}
"""Names that a child cannot have: those of the module itself, and what relevance calls the network's own input."""


def load_onnx(
    path: Path | str, scores: bool = False, output: str = "", classes: int = 0, held: Mapping[str, float] | None = None
) -> OnnxNetwork:
    """Turn an ONNX file into a network.

    Parameters
    ----------
    path : Path or str
        A file of opset 6 to the newest, whose operators are in `OPERATORS`. Weights may lie beside it, in its folder.
    scores : bool
        Whether only the output that holds scores is kept, before any softmax; `remarks` says what was left out.
    output : str
        Its name, or its number; "": the likeliest one, told by its width, what makes it, and its name.
    classes : int
        How many classes there are; 0 where that is not known.
    held : mapping of str to float, optional
        Inputs that are held at one number, all of theirs, by name: a rate, a state that begins at 0.

    Returns
    -------
    OnnxNetwork
        A `torch.nn.Module` in eval mode with one module per node, named after the node. Convolutions, dense layers,
        recurrent layers and batch normalisations with constant weights are PyTorch's own modules with parameters.

    Raises
    ------
    ModelError
        If the file is damaged, too large, or its predictions depend on the batch size.
    UnsupportedOperationError
        If it uses an operator, a domain, a type or a setting that is not supported; the node is named.

    Notes
    -----
    Nothing in the file is executed. What depends on no input is computed once. A batch size that the exporter wrote
    into the shapes of reshapes is opened; if the predictions still depend on it, the file is refused.
    """
    graph = read_graph(Path(path), Asked(output, classes, held or {}) if scores else None)
    if not graph.inputs:
        raise ModelError(f"{graph.where} has no input.")
    sizes = {value.shape[0] if value.shape else None for value in graph.inputs}
    fixed = sizes.pop() if len(sizes) == 1 else None
    batch = None if fixed is None else WrittenBatch(fixed)
    network = build_network(graph, batch)
    network.remarks, network.class_names, network.taken = graph.remarks, graph.class_names, graph.taken
    check_batches(network, graph.where, batch, graph.budget)
    return network


def build_network(graph: Graph, batch: WrittenBatch | None = None) -> OnnxNetwork:
    """Turn a graph into a network in eval mode; `batch` is the batch size that it was written for, if it is fixed."""
    try:
        return _Building(graph, batch).network()
    except IdcError as error:
        raise type(error)(f"{graph.where}: {error}") from error


class _Building:
    """A network while its nodes are added. `static` are inputs that no number of the network's own input changes."""

    def __init__(self, graph: Graph, batch: WrittenBatch | None, static: Iterable[str] = ()) -> None:
        self.graph, self.batch = graph, batch
        self.constants, self.static = dict(graph.constants), set(static)
        self.ragged: set[str] = set()
        self.modules: dict[str, nn.Module] = {}
        self.steps: list[tuple[Node, tuple[str, ...]]] = []
        self.maker: dict[str, Node] = {}
        self.uses = Counter(name for node in graph.nodes for name in node.inputs) + Counter(graph.outputs)
        self._seen: Counter[str] = Counter()

    def add(self, raw: RawNode) -> None:
        """Add a node, or compute it now where it depends on no input."""
        if raw.operator == "Constant":
            self.constants[raw.outputs[0]] = _constant(raw)
            return
        known = {place: self.constants[name] for place, name in enumerate(raw.inputs) if name in self.constants}
        given = tuple(name for name in raw.inputs if name and name not in self.constants)
        node = Node(
            self._name(raw), raw.operator, self.graph.opset, raw.inputs, raw.outputs, raw.attributes, known, self.batch
        )
        node.static, node.captured = frozenset(self.static & set(given)), raw.captured
        node.make_body = partial(self._make_body, raw)
        if raw.operator == "Add" and self._adds_bias(node, given):
            module: nn.Module = nn.Identity()
        else:
            module = _build(node)
        if not given:
            self._fold(node, module)
            return
        self.modules[node.name] = module.eval()
        self.steps.append((node, given))
        if raw.operator in _RAGGED or not self.ragged.isdisjoint(given):
            self.ragged.update(raw.outputs)
        elif raw.operator in _OF_SHAPES or self.static.issuperset(given):
            self.static.update(raw.outputs)
        self.maker.update(dict.fromkeys(raw.outputs, node))

    def _make_body(self, raw: RawNode, attribute: str, static: Sequence[bool]) -> Built | None:
        """Build the network of a graph within a node; what it captures are inputs of it, constants known."""
        body = raw.attributes.get(attribute)
        if not isinstance(body, Body):
            return None
        captured = raw.inputs[len(raw.inputs) - raw.captured :]
        known = {name: self.constants[name] for name in captured if name in self.constants} | self._kept(raw, body)
        inputs = tuple(Value(name, torch.float32, None) for name in (*body.inputs, *captured))
        graph = replace(
            self.graph, inputs=inputs, outputs=body.outputs, constants=known | body.constants, nodes=body.nodes
        )
        fixed = {name for name, one in zip(body.inputs, static, strict=False) if one}
        within = _Building(graph, self.batch, fixed | (self.static & {*captured}))
        network = within.network()
        known_after = {*within.static, *within.constants}
        return Built(network, len(body.inputs), tuple(name in known_after for name in body.outputs))

    def _kept(self, raw: RawNode, body: Body) -> dict[str, Tensor]:
        """Return the states of a loop that begin as a constant and that no step changes, by their names within."""
        first, result = _STATES.get(raw.operator, (0, 0))
        scanned = raw.attributes.get("num_scan_inputs", 0) if raw.operator in _STATES else len(raw.inputs)
        states = raw.inputs[first : len(raw.inputs) - raw.captured - (scanned if isinstance(scanned, int) else 0)]
        same = {node.outputs[0]: node.inputs[0] for node in body.nodes if node.operator == "Identity"}
        kept = zip(states, body.inputs[first:], body.outputs[result:], strict=False)
        return {
            name: self.constants[initial]
            for initial, name, after in kept
            if initial in self.constants and same.get(after, after) == name
        }

    def network(self) -> OnnxNetwork:
        """Add all nodes and return the network of them."""
        for raw in self.graph.nodes:
            self.add(raw)
        last = {name: place for place, (_, given) in enumerate(self.steps) for name in given}
        kept = set(self.graph.outputs)
        steps = []
        for place, (node, given) in enumerate(self.steps):
            ends = [name for name in dict.fromkeys(given) if last[name] == place and name not in kept]
            unused = [name for name in node.outputs if name and name not in last and name not in kept]
            done = (*ends, *unused)
            steps.append(Step(node.name, node.operator, node.settings, given, node.outputs, done))
        fixed = {name: self.constants[name] for name in self.graph.outputs if name in self.constants}
        return OnnxNetwork(self.graph.inputs, self.modules, steps, self.graph.outputs, fixed).eval()

    def _name(self, raw: RawNode) -> str:
        """Return a new identifier for a node: its own name, or its operator and a number."""
        self._seen[raw.operator] += 1
        plain = re.sub(r"\W+", "_", raw.name, flags=re.ASCII).strip("_")
        name = plain or f"{raw.operator}_{self._seen[raw.operator]}"
        name = name if not name[0].isdigit() and name.lower() not in _TAKEN else f"{raw.operator}_{name}"
        number, unique = 1, name
        while unique in self.modules:
            number += 1
            unique = f"{name}_{number}"
        return unique

    def _adds_bias(self, node: Node, given: tuple[str, ...]) -> bool:
        """Give the bias of an addition to the product of matrices before it, if that is a dense layer without one."""
        if len(given) != 1 or len(node.constants) != 1 or given[0] not in self.maker:
            return False
        layer = self.modules[self.maker[given[0]].name]
        (bias,) = node.constants.values()
        if type(layer) is not nn.Linear or layer.bias is not None or self.uses[given[0]] > 1:
            return False
        if bias.dim() not in (1, 2) or bias.numel() != bias.shape[-1] or bias.numel() != layer.out_features:
            return False
        layer.bias = nn.Parameter(bias.flatten().clone())
        return True

    def _fold(self, node: Node, module: nn.Module) -> None:
        """Compute a node that depends on no input."""
        with torch.no_grad(), Bounded(self.graph.budget):
            result = _attempt(node, module)
        results = result if isinstance(result, tuple | list) else (result,)
        self.constants.update((name, tensor) for name, tensor in zip(node.outputs, results, strict=False) if name)


def _build(node: Node) -> nn.Module:
    """Build a node's module; attributes that its operator does not read are refused."""
    endless = [
        name
        for name, value in node.attributes.items()
        if isinstance(value, float) and not math.isfinite(value) and name not in _MAYBE_ENDLESS
    ]
    if endless:
        raise UnsupportedOperationError(
            f"{node} has the attribute {endless[0]!r} {node.attributes[endless[0]]}; expected a finite number. Export "
            "the network again with one."
        )
    built = _attempt(node, OPERATORS[node.operator], node)
    left = [name for name in sorted(set(node.attributes) - node.read) if not _is_default(node, name)]
    if left:
        raise UnsupportedOperationError(f"{node} has the attribute {left[0]!r}, which is not supported.")
    if not isinstance(built, nn.Module):
        built = Operation(node, built)
        for name, body in node.bodies.items():
            built.add_module(name, body)
        return built
    if node.known(*range(len(node.inputs))):
        layer = built  # of nothing but constants: it is called with the first of them
        return Operation(node, lambda x, *_: layer(x))
    return built


def _is_default(node: Node, attribute: str) -> bool:
    """Return whether an attribute says what the operator does without it."""
    if not onnx.defs.has(node.operator):
        return False
    known = onnx.defs.get_schema(node.operator, node.opset).attributes.get(attribute)
    return (
        known is not None
        and known.default_value.type != AttributeProto.UNDEFINED
        and onnx.helper.get_attribute_value(known.default_value) == node.attributes[attribute]
    )


def _attempt(node: Node, function: Callable[..., _Made], *arguments: object) -> _Made:
    """Call a function on behalf of a node; what is wrong with the node is a ModelError."""
    try:
        return function(*arguments)
    except IdcError as error:
        if str(node) in str(error):
            raise
        raise type(error)(f"{node}: {error}") from error
    except MISTAKES as error:
        raise node.misfit() from error


def _constant(raw: RawNode) -> Tensor:
    """Return the value of a Constant node."""
    kinds = {"value": None, "value_float": torch.float32, "value_floats": torch.float32}
    kinds |= {"value_int": torch.int64, "value_ints": torch.int64}
    ((name, value),) = raw.attributes.items() if len(raw.attributes) == 1 else (("", None),)
    if name not in kinds or len(raw.outputs) != 1:
        raise UnsupportedOperationError(
            f"Node {raw.name!r} (Constant) has {list(raw.attributes) or 'no attributes'}; expected one of "
            f"{', '.join(kinds)}."
        )
    return value if isinstance(value, Tensor) else torch.tensor(value, dtype=kinds[name])
