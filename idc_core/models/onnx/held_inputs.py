"""Inputs of an ONNX graph that are held at one number, so that the network takes the others alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, ValueInfoProto, helper, numpy_helper

from idc_core.errors import ModelError


def hold_inputs(graph: GraphProto, held: Mapping[str, float], where: str) -> tuple[str, ...]:
    """Put arrays of one number in place of inputs; return a sentence on each.

    An axis that is open is as long as that of the input that is left which has its name, else as the batch.

    Raises ModelError if there is no such input, or none would be left.
    """
    weights = {one.name for one in graph.initializer}
    inputs = {one.name: one for one in graph.input if one.name not in weights}
    strangers = [name for name in held if name not in inputs]
    if strangers:
        raise ModelError(
            f"{where} has no input {strangers[0]!r:.60} to hold; its inputs are {', '.join(inputs)[:400]}."
        )
    left = [name for name in inputs if name not in held]
    if held and not left:
        raise ModelError(f"{where}: all of its inputs are held; leave the one that is analysed.")
    for name, value in held.items():
        _hold(graph, inputs[name], value, inputs[left[0]])
    kept = [one for one in graph.input if one.name not in held]
    del graph.input[:]
    graph.input.extend(kept)
    return tuple(f"Its input {name!r:.60} is held at {value:g}." for name, value in held.items())


def _hold(graph: GraphProto, info: ValueInfoProto, value: float, main: ValueInfoProto) -> None:
    """Put an array of one number in place of an input; its open axes are as long as those of the main input."""
    kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    sides = [one.dim_value if one.dim_value > 0 else 0 for one in info.type.tensor_type.shape.dim]
    if 0 not in sides:
        graph.initializer.append(numpy_helper.from_array(np.full(sides, value, kind), info.name))
        return
    name = info.name
    named = {one.dim_param: axis for axis, one in reversed([*enumerate(main.type.tensor_type.shape.dim)])}
    alike = [named.get(one.dim_param, 0) if one.dim_param else 0 for one in info.type.tensor_type.shape.dim]
    ends = {f"side{axis}": [side or alike[axis]] for axis, side in enumerate(sides)}
    for part, numbers in ends.items():
        graph.initializer.append(numpy_helper.from_array(np.array(numbers, np.int64), f"{name}/{part}"))
    filling = helper.make_tensor("", info.type.tensor_type.elem_type, [1], [kind.type(value)])
    shape = [f"{name}/side{axis}" if side else f"{name}/length{axis}" for axis, side in enumerate(sides)]
    nodes = [
        helper.make_node("Shape", [main.name], [f"{name}/main"]),
        *(
            helper.make_node("Gather", [f"{name}/main", f"{name}/side{axis}"], [f"{name}/length{axis}"])
            for axis, side in enumerate(sides)
            if not side
        ),
        helper.make_node("Concat", shape, [f"{name}/shape"], axis=0),
        helper.make_node("ConstantOfShape", [f"{name}/shape"], [name], value=filling),
    ]
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])
