"""Recurrent layers as `torch.nn.LSTM` and its like, their gates put into PyTorch's order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypedDict

from torch import Tensor, nn

from idc_core.errors import UnsupportedOperationError
from idc_core.models.onnx.registry import Function, Node, operator

_KINDS: dict[str, tuple[Callable[..., nn.RNNBase], tuple[int, ...]]] = {
    "LSTM": (nn.LSTM, (0, 2, 3, 1)),  # ONNX: input, output, forget, cell; PyTorch: input, forget, cell, output
    "GRU": (nn.GRU, (1, 0, 2)),  # ONNX: update, reset, hidden; PyTorch: reset, update, new
    "RNN": (nn.RNN, (0,)),
}
_STATES = (5, 6)
"""Places of the first hidden state and the first cell state among the inputs."""

_LENGTHS = 4
"""Place of the number of steps of each sequence among the inputs."""

_RESET = "linear_before_reset 0"
_ADVICE = "Write the steps of the layer as single operations before the export"
_WHOLE = "Export the network for sequences of one length (in PyTorch without pack_padded_sequence)."
_AS_PYTORCH = ", or train it with torch.nn.GRU, which resets after the product"

_USUAL = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


class _Options(TypedDict):
    direction: str
    rows_first: bool  # whether the batch is the first axis, not time
    relu: bool


class Recurrent(nn.Module):
    """A recurrent layer whose results have the axes of ONNX: (length, directions, n, states)."""

    def __init__(self, node: Node, weights: tuple[Tensor, Tensor, Tensor | None], options: _Options) -> None:
        super().__init__()
        self.cells = _cells(node, *weights, options)
        self._node = str(node)
        self.backwards, self.rows_first = options["direction"] == "reverse", options["rows_first"]
        self.open = [place for place in range(len(node.inputs)) if node.has(place) and place not in node.constants]
        for position in (_LENGTHS, *_STATES):
            self.register_buffer(f"given_{position}", node.constants.get(position))

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        """Return outputs and last states."""
        by_place = dict(zip(self.open, given, strict=True))
        x = by_place[0].transpose(0, 1) if self.rows_first else by_place[0]
        lengths, *states = (
            by_place.get(position, getattr(self, f"given_{position}")) for position in (_LENGTHS, *_STATES)
        )
        _check_lengths(self._node, x, lengths)
        return _run_cells(self.cells, x, states, self.backwards, self.rows_first)


def _check_lengths(node: str, x: Tensor, lengths: Tensor | None) -> None:
    """Refuse sequences of which a node reads only the first steps."""
    if lengths is not None and bool((lengths != len(x)).any()):
        raise UnsupportedOperationError(
            f"{node} reads {int(lengths.min())} of {len(x)} steps (sequence lengths), which is not supported. {_WHOLE}"
        )


def _cells(node: Node, w: Tensor, r: Tensor, b: Tensor | None, options: _Options) -> nn.RNNBase:
    """Return PyTorch's layer with the weights (directions, gates x states, inputs) of a node."""
    make, order = _KINDS[node.operator]
    states = r.shape[2]
    more = {"nonlinearity": "relu"} if options["relu"] else {}
    cells = make(w.shape[2], states, bias=b is not None, bidirectional=len(w) == 2, device="meta", **more)

    def ordered(x: Tensor) -> nn.Parameter:
        gates = x.reshape(len(order), states, *x.shape[1:])
        return nn.Parameter(gates[list(order)].flatten(0, 1).clone())

    for direction, end in enumerate(("", "_reverse")[: len(w)]):
        setattr(cells, f"weight_ih_l0{end}", ordered(w[direction]))
        setattr(cells, f"weight_hh_l0{end}", ordered(r[direction]))
        if b is not None:
            for part, half in zip(("ih", "hh"), b[direction].chunk(2), strict=True):
                setattr(cells, f"bias_{part}_l0{end}", ordered(half))
    return cells


def _run_cells(
    cells: nn.RNNBase, x: Tensor, states: Sequence[Tensor | None], backwards: bool, rows_first: bool
) -> tuple[Tensor, ...]:
    """Run a layer over (length, n, inputs) and return outputs and last states with the axes of ONNX.

    `states` are the first hidden state and the first cell state; None: zeros.
    """
    directions, n = 1 + cells.bidirectional, x.shape[1]
    initial = [
        x.new_zeros(directions, n, cells.hidden_size)
        if state is None
        else (state.transpose(0, 1) if rows_first else state).expand(directions, n, -1).contiguous()
        for state in states[: 1 + isinstance(cells, nn.LSTM)]
    ]
    given = (
        None if all(state is None for state in states) else tuple(initial) if isinstance(cells, nn.LSTM) else initial[0]
    )
    y, last = cells(x.flip(0) if backwards else x, given)
    y = (y.flip(0) if backwards else y).unflatten(2, (directions, -1)).transpose(1, 2)
    ends = list(last) if isinstance(last, tuple) else [last]
    if rows_first:
        return (y.permute(2, 0, 1, 3), *(end.transpose(0, 1) for end in ends))
    return (y, *ends)


@operator("LSTM", "GRU", "RNN")
def _recurrent(node: Node) -> nn.Module | Function:
    direction = node.get("direction", "forward")
    names = [name.capitalize() for name in node.get("activations") or _USUAL[node.operator]]
    usual = _USUAL[node.operator] * (len(names) // len(_USUAL[node.operator]))
    relu = node.operator == "RNN" and set(names) == {"Relu"}
    node.get("hidden_size"), node.get("activation_alpha"), node.get("activation_beta")  # these functions take none
    peepholes = node.constants.get(7)
    options: _Options = {"direction": direction, "rows_first": bool(node.get("layout", 0)), "relu": relu}
    reason = {
        "other activation functions": names != usual and not relu,
        "clip": node.get("clip", math.inf) != math.inf,
        "peepholes": node.has(7) and (peepholes is None or bool(peepholes.any())),
        "input_forget": bool(node.get("input_forget", 0)),
        _RESET: node.operator == "GRU" and not node.get("linear_before_reset", 0),
    }
    for what, there in reason.items():
        if there:
            raise node.refuse(what, f"{_ADVICE}{_AS_PYTORCH if what == _RESET else ''}.")
    if node.has(_LENGTHS) and not node.known(_LENGTHS) and node.inputs[_LENGTHS] not in node.static:
        raise node.refuse("sequence lengths that are an input", _WHOLE)
    if 1 in node.constants and 2 in node.constants and node.known(3) and 0 not in node.constants:
        weights = node.constants[1], node.constants[2], node.constants.get(3)
        return Recurrent(node, weights, options)

    def run(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, *more: Tensor | None) -> tuple[Tensor, ...]:
        x = x.transpose(0, 1) if options["rows_first"] else x
        _check_lengths(str(node), x, more[0] if more else None)
        states = [*more[1:3], None, None][:2]
        return _run_cells(_cells(node, w, r, b, options), x, states, direction == "reverse", options["rows_first"])

    return run
