"""Graphs within the nodes of an ONNX graph, as the file has them."""

from __future__ import annotations

from onnx import AttributeProto, GraphProto, NodeProto


def needed_names(node: NodeProto) -> tuple[str, ...]:
    """Return the inputs of a node, then those values of the outer graph that graphs within it use, each once."""
    outer = (name for graph in graphs_of(node) for name in _captured(graph))
    return (*node.input, *dict.fromkeys(outer))


def graphs_of(node: NodeProto) -> list[GraphProto]:
    """Return the graphs that a node holds."""
    return [one.g for one in node.attribute if one.type == AttributeProto.GRAPH]


def _captured(graph: GraphProto) -> list[str]:
    """Return the values that a graph uses and does not make."""
    made = {one.name for one in (*graph.input, *graph.initializer)}
    captured: list[str] = []
    for node in graph.node:
        captured += [name for name in needed_names(node) if name and name not in made]
        made.update(node.output)
    return captured + [one.name for one in graph.output if one.name not in made]
