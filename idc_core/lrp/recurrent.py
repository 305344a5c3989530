"""Recurrent layers and cells, step by step: LSTM, GRU and plain ones, over padded and over packed sequences.

The gates are held constant and take no relevance ("signal-take-all" in [2]); it flows through the cell and its
candidate in an LSTM, through the state and its candidate in a GRU. The candidate is one weighted sum of input and
state; the reset gate of a GRU is to it a factor of the state's weights.

References
----------
.. [1] L. Arras, G. Montavon, K.-R. Müller, W. Samek, "Explaining recurrent neural network predictions in
   sentiment analysis", WASSA 2017.
.. [2] L. Arras, J. Arjona-Medina, M. Widrich, G. Montavon, M. Gillhofer, K.-R. Müller, S. Hochreiter, W. Samek,
   "Explaining and interpreting LSTMs", in Explainable AI, Springer LNCS 11700, 2019.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine
from idc_core.lrp.joining import concatenate, follow_join
from idc_core.lrp.operations import FASTER, OPERATIONS, affine, linear, operation, pass_on, scaled, summed
from idc_core.lrp.rules import RelevanceSettings

_State = tuple[Tensor, ...]
"""What a cell hands from step to step: its output, and for an LSTM the cell behind it."""

_Step = Callable[[RelevanceSettings, Tensor, _State, Sequence[Tensor]], _State]
"""``step(settings, input, state, weights) -> state``, weights as PyTorch lists them for one layer and direction."""


def _lstm_step(settings: RelevanceSettings, x: Tensor, state: _State, weights: Sequence[Tensor]) -> _State:
    hidden, cell = state
    joined = concatenate(settings, [x, hidden], 1)
    weight = torch.cat(tuple(weights[:2]), 1)
    bias = weights[2] + weights[3] if len(weights) > 2 else None
    into, forget, _, out = F.linear(joined.detach(), weight, bias).chunk(4, 1)
    rows = slice(2 * hidden.shape[1], 3 * hidden.shape[1])
    candidate = linear(settings, joined, weight[rows], None if bias is None else bias[rows])
    candidate = scaled(settings, pass_on(settings, torch.tanh, candidate), torch.sigmoid(into))
    kept = scaled(settings, cell, torch.sigmoid(forget))
    cell = summed(settings, kept, candidate)
    return scaled(settings, pass_on(settings, torch.tanh, cell), torch.sigmoid(out)), cell


def _gru_step(settings: RelevanceSettings, x: Tensor, state: _State, weights: Sequence[Tensor]) -> _State:
    (hidden,) = state
    biases = weights[2:4] if len(weights) > 2 else (None, None)
    from_input = F.linear(x.detach(), weights[0], biases[0]).chunk(3, 1)
    from_state = F.linear(hidden.detach(), weights[1], biases[1]).chunk(3, 1)
    reset, update = (torch.sigmoid(first + other) for first, other in zip(from_input[:2], from_state[:2], strict=True))
    last = slice(2 * hidden.shape[1], None)
    weight = torch.cat([weights[0][last], weights[1][last]], 1)
    bias = weights[2][last] + reset * weights[3][last] if len(weights) > 2 else None

    def weigh(v: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
        here, before = v[0].split((x.shape[1], hidden.shape[1]), 1)
        of_input, of_state = w.split((x.shape[1], hidden.shape[1]), 1)  # type: ignore[union-attr]
        z = F.linear(here, of_input) + reset * F.linear(before, of_state)
        return z if b is None else z + b

    def spread(v: tuple[Tensor, ...]) -> Tensor:
        return v[0].sum(1, keepdim=True).expand(-1, hidden.shape[1])

    joined = concatenate(settings, [x, hidden], 1)
    candidate = pass_on(
        settings, torch.tanh, affine(settings, Affine("dense", weigh, weight, bias, bias, spread), joined)
    )
    return (summed(settings, scaled(settings, hidden, update), scaled(settings, candidate, 1 - update)),)


def _plain_step(
    activation: Callable[[Tensor], Tensor],
    settings: RelevanceSettings,
    x: Tensor,
    state: _State,
    weights: Sequence[Tensor],
) -> _State:
    joined = concatenate(settings, [x, state[0]], 1)
    bias = weights[2] + weights[3] if len(weights) > 2 else None
    return (pass_on(settings, activation, linear(settings, joined, torch.cat(tuple(weights[:2]), 1), bias)),)


_STEPS: dict[str, _Step] = {
    "lstm": _lstm_step,
    "gru": _gru_step,
    "rnn_tanh": partial(_plain_step, torch.tanh),
    "rnn_relu": partial(_plain_step, torch.relu),
}
"""Kind of recurrent layer, by PyTorch's name of its operation -> one step of it."""


def _along(
    settings: RelevanceSettings, step: _Step, inputs: Sequence[Tensor], start: _State, weights: Sequence[Tensor]
) -> tuple[list[Tensor], _State]:
    """Run a cell along the steps of its inputs; return its outputs and the state in which each row ended.

    Of packed sequences, which are sorted by length, a step holds the first rows alone.
    """
    state = tuple(part[: len(inputs[0])] for part in start)
    outputs: list[Tensor] = []
    ended: list[_State] = []
    for x in inputs:
        before, now = len(state[0]), len(x)
        if now < before:
            ended.insert(0, tuple(part[now:] for part in state))
            state = tuple(part[:now] for part in state)
        if now <= before:
            state = step(settings, x, state, weights)
        else:  # rows that begin here start from a constant, to which no relevance must go
            begun = step(settings, x[before:], tuple(part[before:now] for part in start), weights)
            state = _joined(step(settings, x[:before], state, weights), begun)
        outputs.append(state[0])
    return outputs, _joined(state, *ended) if ended else state


def _joined(*states: _State) -> _State:
    """Put the rows of several states below each other."""
    return tuple(torch.cat(parts) for parts in zip(*states, strict=True))


def _layers(
    settings: RelevanceSettings,
    kind: str,
    inputs: Sequence[Tensor],
    start: _State,
    weights: list[Tensor],
    has_biases: bool,
    layers: int,
    _dropout: float,
    _training: bool,
    bidirectional: bool,
) -> tuple[Sequence[Tensor], _State]:
    """Run layers and directions one after the other; return outputs by step and the last states of all."""
    directions, each = 1 + bool(bidirectional), 4 if has_biases else 2
    if len(weights) != layers * directions * each:
        raise UnsupportedOperationError(f"{kind.upper()} with a projection")
    finals = []
    for layer in range(layers):
        by_direction = []
        for direction in range(directions):
            index = layer * directions + direction
            steps = inputs[::-1] if direction else inputs
            own = weights[index * each : (index + 1) * each]
            outputs, final = _along(settings, _STEPS[kind], steps, tuple(part[index] for part in start), own)
            by_direction.append(outputs[::-1] if direction else outputs)
            finals.append(final)
        inputs = [torch.cat(both, 1) for both in zip(*by_direction, strict=True)]
    return inputs, tuple(torch.stack(parts) for parts in zip(*finals, strict=True))


def _recurrent(kind: str) -> Callable[..., tuple[Tensor, ...]]:
    def handler(settings: RelevanceSettings, input: Tensor, *args: Any) -> tuple[Tensor, ...]:
        # Padded: start, weights, has_biases, ...; packed: number of rows in each step, start, weights, has_biases, ...
        packed = not isinstance(args[2], bool)
        start, weights, *options = args[1:] if packed else args
        start = (start,) if isinstance(start, Tensor) else tuple(start)
        batch_first = not packed and options.pop()
        x = input.transpose(0, 1) if batch_first else input
        inputs = x.split(args[0].tolist()) if packed else x.unbind(0)
        outputs, states = _layers(settings, kind, inputs, start, list(weights), *options)
        if packed:
            return torch.cat(tuple(outputs)), *states
        z = torch.stack(tuple(outputs))
        return z.transpose(0, 1) if batch_first else z, *states

    return handler


def _cell(kind: str) -> Callable[..., object]:
    def handler(settings: RelevanceSettings, input: Tensor, state: Tensor | _State, *weights: Tensor | None) -> object:
        start = (state,) if isinstance(state, Tensor) else tuple(state)
        states = _STEPS[kind](settings, input, start, [weight for weight in weights if weight is not None])
        return states[0] if isinstance(state, Tensor) else states

    return handler


@operation("_pad_packed_sequence")
def _padded(
    settings: RelevanceSettings, data: Tensor, sizes: Tensor, batch_first: bool, padding: float, length: int
) -> tuple[Tensor, Tensor]:
    """Lay packed sequences side by side; what falls to the padding goes back to the steps of its row."""
    numbers = torch.arange(len(data)).unsqueeze(1)
    places, lengths = torch._VF._pad_packed_sequence(numbers, sizes, True, -1, length)
    places = places.to(data.device)
    hidden = places.to(data.device) < 0
    rows = data[places[:, :, 0].clamp(min=0)]

    def join(x: tuple[Tensor, ...]) -> Tensor:
        return x[0].masked_fill(hidden, padding)

    z = follow_join(settings, join, (1,), rows)
    return z if batch_first else z.transpose(0, 1), lengths


for _kind in _STEPS:
    OPERATIONS[_kind], OPERATIONS[f"{_kind}_cell"] = _recurrent(_kind), _cell(_kind)


def with_last_states(module: nn.RNNBase, output: Tensor, states: Tensor | _State) -> tuple[Tensor, object]:
    """Return what a recurrent layer returns, its last states read off its output so that relevance finds back."""
    directions = 1 + module.bidirectional
    steps = output.transpose(0, 1) if module.batch_first else output  # (length, n, states)
    last = torch.stack([part[end] for end, part in zip((-1, 0), steps.chunk(directions, 2), strict=False)])
    hidden = states[0] if isinstance(states, tuple) else states
    hidden = torch.cat([hidden[:-directions], last])
    return output, (hidden, *states[1:]) if isinstance(states, tuple) else hidden


def _lstm_unwatched(*args: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Run LSTM layers that nobody follows: without a graph they keep no gates, which takes a quarter less time."""
    given = [value for arg in args for value in (arg if isinstance(arg, tuple | list) else (arg,))]
    followed = any(value.requires_grad for value in given if isinstance(value, Tensor))
    with torch.set_grad_enabled(torch.is_grad_enabled() and followed):
        return torch.lstm(*args)


FASTER["lstm"] = _lstm_unwatched
