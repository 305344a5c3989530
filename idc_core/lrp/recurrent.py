"""LSTM layers and cells, step by step.

The gates are held constant and take no relevance; it flows through the cell and its candidate.

References
----------
.. [1] L. Arras, G. Montavon, K.-R. Müller, W. Samek, "Explaining recurrent neural network predictions in
   sentiment analysis", WASSA 2017.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.joining import concatenate
from idc_core.lrp.operations import FASTER, add, linear, operation, pass_on, scaled
from idc_core.lrp.rules import RelevanceSettings


def _lstm_step(
    settings: RelevanceSettings, x: Tensor, state: tuple[Tensor, Tensor], weights: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    hidden, cell = state
    joined = concatenate(settings, [x, hidden], 1)
    weight = torch.cat(weights[:2], 1)
    bias = weights[2] + weights[3] if len(weights) > 2 else None
    into, forget, _, out = F.linear(joined.detach(), weight, bias).chunk(4, 1)
    rows = slice(2 * hidden.shape[1], 3 * hidden.shape[1])
    candidate = linear(settings, joined, weight[rows], None if bias is None else bias[rows])
    candidate = scaled(pass_on(torch.tanh, candidate), torch.sigmoid(into))
    kept = scaled(cell, torch.sigmoid(forget))
    cell = add(settings, kept, candidate)
    return scaled(pass_on(torch.tanh, cell), torch.sigmoid(out)), cell


@operation("lstm")
def _lstm(
    settings: RelevanceSettings,
    input: Tensor,
    initial: Any,
    weights: Any,
    has_biases: Any,
    layers: int = 1,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    if not isinstance(has_biases, bool):
        raise UnsupportedOperationError("LSTM over packed sequences; pad them instead")
    each = 4 if has_biases else 2
    if len(weights) != layers * (1 + bidirectional) * each:
        raise UnsupportedOperationError("LSTM with a projection")
    x = input.transpose(0, 1) if batch_first else input
    hidden: list[Tensor] = []
    cells: list[Tensor] = []
    for layer in range(layers):
        directions = []
        for backwards in range(1 + bidirectional):
            index = layer * (1 + bidirectional) + backwards
            state = (initial[0][index], initial[1][index])
            outputs = []
            for step in reversed(x.unbind(0)) if backwards else x.unbind(0):
                state = _lstm_step(settings, step, state, tuple(weights[index * each : (index + 1) * each]))
                outputs.append(state[0])
            directions.append(torch.stack(outputs[::-1] if backwards else outputs))
            cells.append(state[1])
        x = torch.cat(directions, 2)
        hidden.append(last_states(x, 1 + bidirectional))
    return x.transpose(0, 1) if batch_first else x, torch.cat(hidden), torch.stack(cells)


def last_states(output: Tensor, directions: int) -> Tensor:
    """Return where each direction of a recurrent layer ended, (directions, n, states), from (length, n, states)."""
    ends = zip((-1, 0), output.chunk(directions, 2), strict=False)
    return torch.stack([states[end] for end, states in ends])


def with_last_states(module: nn.RNNBase, output: Tensor, states: Any) -> tuple[Tensor, Any]:
    """Return what a recurrent layer returns, its last states read off its output so that relevance finds back."""
    directions = 1 + module.bidirectional
    last = last_states(output.transpose(0, 1) if module.batch_first else output, directions)
    hidden = states[0] if isinstance(states, tuple) else states
    hidden = torch.cat([hidden[:-directions], last])
    return output, (hidden, *states[1:]) if isinstance(states, tuple) else hidden


def _lstm_unwatched(*args: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Run LSTM layers that nobody follows: without a graph they keep no gates, which takes a quarter less time."""
    given = [one for arg in args for one in (arg if isinstance(arg, tuple | list) else (arg,))]
    followed = any(one.requires_grad for one in given if isinstance(one, Tensor))
    with torch.set_grad_enabled(torch.is_grad_enabled() and followed):
        return torch.lstm(*args)


FASTER["lstm"] = _lstm_unwatched


@operation("lstm_cell")
def _lstm_cell(settings: RelevanceSettings, input: Tensor, state: Any, *weights: Tensor) -> tuple[Tensor, Tensor]:
    return _lstm_step(settings, input, (state[0], state[1]), tuple(w for w in weights if w is not None))
