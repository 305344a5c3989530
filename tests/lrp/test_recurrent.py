"""GRU and plain recurrent layers against slow versions written from the papers, step by step; packed sequences."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from idc_core import relevance
from idc_core.errors import ModelError
from idc_core.tracing.trace import collect
from tests.lrp.networks import SEQUENCES, Written, numbers, settle
from tests.lrp.test_conservation import check
from tests.lrp.test_equation import share

KINDS = {
    "gru": nn.GRU,
    "rnn tanh": nn.RNN,
    "rnn relu": lambda *a, **o: nn.RNN(*a, nonlinearity="relu", **o),
    "lstm": nn.LSTM,
}
SHAPES = {
    "one layer": {},
    "two layers": {"num_layers": 2, "dropout": 0.5},
    "both ways": {"bidirectional": True},
    "two layers both ways": {"num_layers": 2, "bidirectional": True},
}
LENGTHS = [3, 5, 1, 4]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one_way(kind, weights, x, rule, bias):
    """Run a recurrent layer of one direction over (length, features).

    Returns its outputs and, given the relevance of each, a function that returns that of x: gates are constants and
    take none, the candidate is one weighted sum of input and state (Arras et al. 2017, 2019).
    """
    w_in, w_state, b_in, b_state = weights
    size = w_state.shape[1]
    state, states, notes = np.zeros(size), [], []
    for step in x:
        joined, connected = np.concatenate([step, state]), np.ones((len(step) + size, size), bool)
        if kind == "gru":
            reset, update = (
                sigmoid(w_in[rows] @ step + b_in[rows] + w_state[rows] @ state + b_state[rows])
                for rows in (slice(size), slice(size, 2 * size))
            )
            rows = slice(2 * size, None)
            w = np.concatenate([w_in[rows], reset[:, None] * w_state[rows]], 1).T
            b = b_in[rows] + reset * b_state[rows]
            candidate = np.tanh(joined @ w + b)
            parts = share(rule, bias, joined, w, connected, b)
            both = np.stack([update * state, (1 - update) * candidate], 1)
            # The new state is the sum of what is kept and what is new; at first nothing is kept.
            if states:
                one = np.ones((2, 1))
                sums = [share(rule, bias, pair, one, one > 0, np.zeros(1))[:, 0] for pair in both]
            else:
                one = np.ones((1, 1))
                sums = [(0.0, share(rule, bias, pair[1:], one, one > 0, pair[:1])[0, 0]) for pair in both]
            notes.append((parts, np.array(sums)))
            state = both.sum(1)
        else:
            w, b = np.concatenate([w_in, w_state], 1).T, b_in + b_state
            notes.append((share(rule, bias, joined, w, connected, b), None))
            state = joined @ w + b
            state = np.tanh(state) if kind == "rnn tanh" else np.maximum(state, 0)
        states.append(state)

    def back(above):
        found, behind = np.zeros_like(x), np.zeros(size)
        for t in reversed(range(len(x))):
            parts, sums = notes[t]
            whole = above[t] + behind
            kept, new = (0.0, whole) if sums is None else (sums[:, 0] * whole, sums[:, 1] * whole)
            below = parts @ new
            found[t], behind = below[: x.shape[1]], below[x.shape[1] :] + kept
            if t == 0:  # what falls to the state before the first step goes back to the input
                found[0] += (behind.sum() if bias == "redistribute" else 0.0) / x.shape[1]
        return found

    return np.array(states), back


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("rule", ["z", "epsilon", "gamma", "alpha-beta"])
@pytest.mark.parametrize("kind", ["gru", "rnn tanh", "rnn relu"])
def test_equal_to_a_slow_version(kind, rule, bias):
    x = numbers(4, 3)
    network = settle(
        Written(lambda net, x: net.out(net.a(x)[0].mean(1)), a=KINDS[kind](3, 4, batch_first=True), out=nn.Linear(4, 3))
    )
    found = relevance(network, x[None], ["input", "a"], rule, 0.05, gamma=0.4, alpha=3.0, bias=bias)
    weights = [getattr(network.a, f"{name}_l0").detach().numpy() for name in ("weight_ih", "weight_hh")]
    weights += [getattr(network.a, f"{name}_l0").detach().numpy() for name in ("bias_ih", "bias_hh")]
    states, back = one_way(kind, weights, x.numpy(), rule, bias)
    np.testing.assert_allclose(states, network.a(x[None])[0][0].detach(), rtol=1e-9)
    expected = back(direct(network, rule, bias, states))
    np.testing.assert_allclose(found["input"][0], expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())


def direct(network, rule, bias, states):
    """Return the relevance of the outputs that comes from the dense layer, not from the steps behind."""
    values = torch.tensor(states)[None].requires_grad_()
    head = Written(lambda net, x: net.out(x.mean(1)), out=network.out)
    return relevance(head, values.detach(), ["input"], rule, 0.05, gamma=0.4, alpha=3.0, bias=bias)["input"][0]


def recurrent(kind, shape, bias=True, **options):
    return KINDS[kind](6, 5, bias=bias, **SHAPES[shape], **options)


def with_head(kind, shape, read, bias=True, width=None, **options):
    ways = 2 if "both" in shape else 1
    out = nn.Linear(width or 5 * ways, 3, bias=bias)
    return settle(Written(lambda net, x: net.out(read(net, x)), a=recurrent(kind, shape, bias, **options), out=out))


def last_state(net, x):
    states = net.a(x)[1]
    states = states[0] if isinstance(states, tuple) else states
    return torch.hstack(tuple(states[-(2 if net.a.bidirectional else 1) :]))


@pytest.mark.parametrize("shape", ["one layer", "two layers", "two layers both ways"])
@pytest.mark.parametrize("kind", ["gru", "rnn relu"])
def test_conserved(kind, shape):
    for read in (lambda net, x: net.a(x)[0][:, -1], last_state):
        network = with_head(kind, shape, read, batch_first=True)
        for rule in ("epsilon", "alpha-beta"):
            check(network, SEQUENCES, ["input", "a", "out"], bias="redistribute", rule=rule)
        free = with_head(kind, shape, read, bias=False, batch_first=True)
        check(free, SEQUENCES, ["input", "a", "out"], 1e-7, bias="absorb", rule="z")


@pytest.mark.parametrize("kind", ["gru", "rnn tanh", "lstm"])
def test_length_first_is_the_same(kind):
    one = with_head(kind, "both ways", lambda net, x: net.a(x)[0].mean(1), batch_first=True)
    other = with_head(kind, "both ways", lambda net, x: net.a(x.transpose(0, 1))[0].mean(0))
    layers = ["input", "a"]
    found, same = (relevance(network, SEQUENCES, layers, bias="redistribute") for network in (one, other))
    for layer in layers:
        np.testing.assert_allclose(found[layer], same[layer], rtol=1e-12)


CELLS = {"gru": nn.GRUCell, "rnn tanh": nn.RNNCell, "lstm": nn.LSTMCell}


@pytest.mark.parametrize("kind", CELLS)
def test_cells_are_one_step_of_the_layer(kind):
    def by_cells(net, x):
        state = None
        for step in x.unbind(1):
            state = net.cell(step, state)
        return net.out(state[0] if kind == "lstm" else state)

    layered = with_head(kind, "one layer", lambda net, x: net.a(x)[0][:, -1], batch_first=True)
    network = settle(Written(by_cells, cell=CELLS[kind](6, 5), out=nn.Linear(5, 3)))
    for name, tensor in network.cell.named_parameters():
        tensor.data = getattr(layered.a, f"{name}_l0").data
    network.out.load_state_dict(layered.out.state_dict())
    for bias in ("absorb", "redistribute"):
        found, same = (relevance(one, SEQUENCES, ["input"], bias=bias)["input"] for one in (layered, network))
        np.testing.assert_allclose(found, same, rtol=1e-9)


def padded():
    inputs = SEQUENCES.clone()
    for row, length in zip(inputs, LENGTHS, strict=True):
        row[length:] = 0.0
    return inputs


def packed_state(net, x):
    lengths = (x.detach() != 0).any(2).sum(1)
    states = net.a(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))[1]
    states = states[0] if isinstance(states, tuple) else states
    return torch.hstack(tuple(states[-(2 if net.a.bidirectional else 1) :]))


def packed_outputs(net, x):
    lengths = (x.detach() != 0).any(2).sum(1)
    packed, _ = net.a(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    return pad_packed_sequence(packed, batch_first=True)[0].sum(1)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("read", [packed_state, packed_outputs])
@pytest.mark.parametrize("shape", ["one layer", "two layers both ways"])
@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences_are_each_as_alone(kind, shape, read):
    network = with_head(kind, shape, read, batch_first=True)
    found = check(network, padded(), ["input", "out"], bias="redistribute", rule="epsilon")["input"]
    alone = with_head(
        kind, shape, last_state if read is packed_state else lambda net, x: net.a(x)[0].sum(1), batch_first=True
    )
    for row, length, values in zip(padded(), LENGTHS, found, strict=True):
        expected = relevance(alone, row[None, :length], ["input"], bias="redistribute")["input"][0]
        np.testing.assert_allclose(values[:length], expected, rtol=1e-9)
        assert not values[length:].any()


@pytest.mark.parametrize("work", [collect, relevance])
def test_a_packed_layer_itself_is_refused_by_name(work):
    network = with_head("gru", "one layer", packed_state, batch_first=True)
    with pytest.raises(ModelError, match=r"'a' returns packed sequences.*Choose"):
        work(network, padded(), ["a"])


def test_decoders_start_from_a_state_that_depends_on_the_input():
    def forward(net, x):
        _, state = net.encoder(x)
        steps, _ = net.decoder(torch.zeros(len(x), 2, 6, dtype=x.dtype), state)
        return net.out(F.relu(steps[:, -1]))

    network = settle(
        Written(
            forward, encoder=nn.GRU(6, 5, batch_first=True), decoder=nn.GRU(6, 5, batch_first=True), out=nn.Linear(5, 3)
        )
    )
    check(network, SEQUENCES, ["input"], bias="redistribute", rule="epsilon")
