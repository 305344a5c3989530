"""Branches and loops whose course no number of an input changes: it is known, or follows from shapes.

Every input takes the same course then, so that relevance and neurons are those of the nodes that ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from idc_core.errors import ModelError
from idc_core.models.onnx.reading import Body
from idc_core.models.onnx.registry import Built, Function, Node, operator

_MOST_STEPS = 4096
"""Most steps of one loop."""


def _results(built: Built, *given: Tensor | None) -> tuple[Tensor, ...]:
    """Run the network of a graph within a node."""
    results = built.network(*given)
    return results if isinstance(results, tuple) else (results,)


def _check_single(node: Node) -> None:
    """Refuse a loop within a loop: their steps would multiply."""
    body = node.attributes.get("body")
    if isinstance(body, Body) and body.holds(("Loop", "Scan")):
        raise node.refuse("a loop within a loop")


def _repeated(node: Node, results: int, before: list[bool], states: list[bool], after: list[bool]) -> Built:
    """Return the network of what a loop repeats; a state is static only if it still is after a step."""
    while True:
        built = node.body("body", results, [*before, *states, *after])
        kept = [first and later for first, later in zip(states, built.static, strict=False)]
        if kept == states:
            return built
        states = kept


def _is_static(node: Node, *positions: int) -> bool:
    return all(node.known(position) or node.inputs[position] in node.static for position in positions)


@operator("If")
def _if(node: Node) -> Function:
    if not _is_static(node, 0):
        raise node.refuse("a branch that depends on the numbers of its input")
    names, results = ("else_branch", "then_branch"), len(node.outputs)
    if 0 in node.constants:
        name = names[bool(node.constants[0])]
        node.read.update(names)
        branch = node.body(name, results)
        return lambda condition, *captured: _results(branch, *captured)
    other, first = (node.body(name, results) for name in names)
    return lambda condition, *captured: _results(first if bool(condition) else other, *captured)


@operator("Loop")
def _loop(node: Node) -> Function:
    _check_single(node)
    own = len(node.inputs) - node.captured
    carried = range(2, own)
    if not _is_static(node, 0, 1):
        raise node.refuse("a loop whose number of steps depends on the numbers of its input")
    states = [True, *(_is_static(node, position) for position in carried)]
    built = _repeated(node, 1 + len(node.outputs), [True], states, [])
    if not built.static[0]:
        raise node.refuse("a loop whose end depends on the numbers of its input")

    def run(most: Tensor | None, going: Tensor | None, *given: Tensor) -> tuple[Tensor, ...]:
        values, captured = list(given[: len(carried)]), given[len(carried) :]
        rows: list[tuple[Tensor, ...]] = []
        for step in _steps(node, most):
            if going is not None and not bool(going):
                break
            at = torch.tensor(step, device=given[0].device if given else None)
            goes = torch.tensor(True) if going is None else going
            going, *results = _results(built, at, goes, *values, *captured)
            values = list(results[: len(carried)])
            rows.append(tuple(results[len(carried) :]))
        if not rows and len(node.outputs) > len(carried):  # of no length, in the shape that a step would have given
            _, *results = _results(built, torch.tensor(0), torch.tensor(True), *values, *captured)
            return (*values, *(y[None][:0] for y in results[len(carried) :]))
        return (*values, *_stacked(node, rows, [0] * (len(node.outputs) - len(carried))))

    return run


def _steps(node: Node, most: Tensor | None) -> Iterator[int]:
    """Count the steps of a loop, of which there are not too many."""
    for step in range(_MOST_STEPS + 1 if most is None else int(most)):
        if step == _MOST_STEPS:
            raise ModelError(f"{node} takes more than {_MOST_STEPS:,} steps. Export the network without it.")
        yield step


def _stacked(node: Node, rows: Sequence[tuple[Tensor, ...]], axes: Sequence[int]) -> tuple[Tensor, ...]:
    """Return what was made in each step, along an axis."""
    if axes and not rows:
        raise ModelError(
            f"{node} takes no step, so that its results have no shape; expected at least one. Give longer inputs, or "
            "export the network without it."
        )
    return tuple(torch.stack(values, axis) for values, axis in zip(zip(*rows, strict=True), axes, strict=False))


@operator("Scan")
def _scan(node: Node) -> Function:
    if node.opset < 9:
        raise node.refuse("the form that it had before opset 9")
    _check_single(node)
    count, own = node.need("num_scan_inputs"), len(node.inputs) - node.captured
    states = own - count
    body = node.attributes.get("body")
    if isinstance(body, Body) and not set(body.inputs).isdisjoint(body.outputs[:states]):
        raise node.refuse("a state that each step returns as it came, not by an Identity: onnxruntime loses it")
    static = [_is_static(node, position) for position in range(states)]
    built = _repeated(node, len(node.outputs), [], static, [False] * count)
    made = len(built.static) - states
    axes, backwards = (
        [0] * count if (given := node.get(f"scan_input_{what}")) is None else given for what in ("axes", "directions")
    )
    out_axes, out_backwards = (
        [0] * made if (given := node.get(f"scan_output_{what}")) is None else given for what in ("axes", "directions")
    )

    def run(*given: Tensor) -> tuple[Tensor, ...]:
        values, captured = list(given[:states]), given[own:]
        parts = [
            list(reversed(x.unbind(axis))) if turned else x.unbind(axis)
            for x, axis, turned in zip(given[states:own], axes, backwards, strict=True)
        ]
        rows: list[tuple[Tensor, ...]] = []
        for step in _steps(node, torch.tensor(len(parts[0]))):
            results = _results(built, *values, *(part[step] for part in parts), *captured)
            values = list(results[:states])
            rows.append(tuple(results[states:]))
        stacked = _stacked(node, rows, out_axes)
        return (
            *values,
            *(y.flip(axis) if turned else y for y, axis, turned in zip(stacked, out_axes, out_backwards, strict=True)),
        )

    return run
