"""Which row is whose: every layer of an input in a batch holds what it holds of that input alone, or is refused."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence as packed

import idc_core as idc
from idc_core.errors import ModelError
from tests.lrp.networks import Written, numbers, settle

SEQUENCES = numbers(20, 5, 8)


class Packed(nn.Module):
    """Sorts texts by length for packing, and puts the scores back."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm = nn.Embedding(20, 8, padding_idx=0), nn.LSTM(8, 8, batch_first=True)
        self.hidden, self.out = nn.Linear(8, 6), nn.Linear(6, 3)

    def forward(self, ids):
        lengths, order = (ids != 0).sum(1).clamp(min=1).sort(descending=True)
        _, (state, _) = self.lstm(packed(self.words(ids[order]), lengths, batch_first=True))
        return self.out(torch.relu(self.hidden(state[-1])))[order.argsort()]


def texts(count, rng, longest=9):
    ids = np.zeros((count, 9), np.int64)
    for row in ids:
        length = rng.integers(1, longest + 1)
        row[:length] = rng.integers(1, 20, length)
    return ids


def of(forward):
    return settle(
        Written(
            forward,
            h=nn.Linear(8, 8),
            g=nn.Linear(8, 3),
            attention=nn.MultiheadAttention(8, 2),
            lstm=nn.LSTM(8, 8),
            encoder=nn.TransformerEncoderLayer(8, 2, 16),
            norm=nn.BatchNorm1d(8, track_running_stats=False),
        )
    )


def hidden(net, x):
    return torch.relu(net.h(x))


def sorted_and_back(net, x):
    order = x.mean((1, 2)).argsort()
    return net.g(hidden(net, x[order].mean(1)))[order.argsort()]


def state_of(rows):
    """Return a forward in which a batch size is written."""
    return lambda net, x: net.g(
        hidden(net, net.lstm(x.transpose(0, 1), (torch.zeros(1, rows, 8).double(),) * 2)[0][-1])
    )


APART = {
    "sorted": sorted_and_back,
    "time first": lambda net, x: net.g(hidden(net, x.transpose(0, 1)).mean(0)),
    "recurrent, time first": lambda net, x: net.g(hidden(net, net.lstm(x.transpose(0, 1))[0])[-1]),
    "encoder, time first": lambda net, x: net.g(hidden(net, net.encoder(x.transpose(0, 1))).mean(0)),
    "time first, one step": lambda net, x: net.g(hidden(net, x[:, :1].transpose(0, 1)).sum(0)),
    "squeeze": lambda net, x: net.g(hidden(net, x.mean(1, keepdim=True).squeeze())),
    "squeeze of one score": lambda net, x: net.g(hidden(net, x.mean(1)))[:, :1].squeeze(),
    "squeeze of a layer alone": lambda net, x: net.g(hidden(net, x.mean(1, keepdim=True).squeeze()))[..., :1],
    "a written batch of 10": state_of(10),
    "a written batch of one": lambda net, x: net.g(hidden(net, x.mean(1).view(1, 8))),
    "a view of four rows": lambda net, x: net.g(hidden(net, x.mean(1).view(4, -1))),
    "a batch of 12 on two axes": lambda net, x: net.g(hidden(net, x.mean(1).view(3, 4, 8).view(12, 8))),
    "a batch of 12 with its rows": lambda net, x: net.g(hidden(net, x.reshape(60, 8).view(12, 5, 8).mean(1))),
    "a batch of ten by broadcasting": lambda net, x: net.g(hidden(net, x.mean(1) + torch.zeros(10, 8).double())),
}


@pytest.mark.parametrize("kind", APART)
def test_rows_in_a_batch_are_those_of_each_input_alone(kind):
    network = of(APART[kind])
    size = next((int(word) for word in kind.split() if word.isdigit()), 0) or {"a view of four rows": 4}.get(kind, 0)

    def run(x):
        """Return what a layer gives of inputs that are copies of one, and the scores."""
        caught = []
        hook = network.h.register_forward_hook(lambda module, given, output: caught.append(torch.relu(output)))
        scores = network(x)
        hook.remove()
        return caught[0], scores.reshape(len(x), -1)

    rows = size or (10 if "ten" in kind else 2)
    rows = 1 if kind == "a written batch of one" else rows
    with torch.no_grad():
        alone = [run(x.expand(rows, 5, 8).contiguous()) for x in SEQUENCES]
    traces = list(idc.trace(network, SEQUENCES, ["h"], idc.RelevanceSettings(bias="redistribute")))
    scores, active, relevance = (
        np.concatenate([np.asarray(part) for part in parts])
        for parts in (
            [batch.scores for batch in traces],
            [batch.activations["h"] for batch in traces],
            [batch.relevance["h"] for batch in traces],
        )
    )
    np.testing.assert_allclose(scores, torch.stack([one[1][0] for one in alone]), rtol=1e-9)
    turned = "first" in kind
    expected = torch.stack([one[0][:, 0] if turned else one[0][0] for one in alone])
    np.testing.assert_allclose(active, expected, rtol=1e-9)
    np.testing.assert_allclose(relevance.reshape(len(scores), -1).sum(1), scores.max(1), rtol=1e-6)


def test_a_layer_that_folds_its_inputs_into_another_axis_is_refused():
    network = of(lambda net, x: net.g(hidden(net, x.mean(1).view(3, 4, 8)).view(12, 8)))
    with pytest.raises(ModelError, match="invalid for input of size 8"):
        list(idc.trace(network, SEQUENCES, ["h"]))


def test_a_sorted_batch_of_texts_gives_each_text_its_own_neurons():
    torch.manual_seed(0)
    network, ids = Packed().eval(), texts(40, np.random.default_rng(0))
    alone = torch.cat(
        [next(iter(idc.trace(network, ids[i : i + 1], ["hidden"]))).activations["hidden"] for i in range(40)]
    )
    batch = next(iter(idc.trace(network, ids, ["hidden"])))
    assert batch.scores.shape == (40, 3)
    torch.testing.assert_close(batch.activations["hidden"], alone)
    criterion = idc.IDC(network, "hidden", m=2).fit(ids)
    cells = [criterion.profile(ids[i : i + 1]).covered for i in range(40)]
    whole = idc.relevance(network, ids, ["hidden"])["hidden"]
    for row in range(40):
        one = idc.relevance(network, ids[row : row + 1], ["hidden"])["hidden"]
        np.testing.assert_allclose(whole[row], one[0], atol=1e-6)
    assert len(cells) == 40


def test_texts_of_one_length_do_not_settle_what_longer_ones_show():
    torch.manual_seed(0)
    network, rng = Packed().eval(), np.random.default_rng(1)
    equal, ids = rng.integers(1, 20, (12, 9)), texts(12, rng)
    next(iter(idc.trace(network, equal, ["hidden"])))
    batch = next(iter(idc.trace(network, ids, ["hidden"]))).activations["hidden"]
    alone = [next(iter(idc.trace(network, ids[i : i + 1], ["hidden"]))).activations["hidden"] for i in range(12)]
    torch.testing.assert_close(batch, torch.cat(alone))


MIXED = {
    "attention over the batch": (
        lambda net, x: net.g(hidden(net, net.attention(x, x, x)[0].mean(1))),
        "'multi_head_attention_forward' in module 'attention' mixes them.*batch_first=True",
    ),
    "recurrence over the batch": (
        lambda net, x: net.g(net.lstm(x)[0][:, -1]),
        "'lstm' in module 'lstm' mixes them.*batch_first=True",
    ),
    "encoder over the batch": (
        lambda net, x: net.g(net.encoder(x).mean(1)),
        "in module 'encoder.self_attn' mixes them.*batch_first=True",
    ),
    "softmax over the batch": (
        lambda net, x: net.g(torch.softmax(net.h(x.mean(1)), 0)),
        "'softmax' mixes them. The first axis holds the inputs: compute it over another one",
    ),
    "centred over the batch": (
        lambda net, x: net.g(net.h(x.mean(1)) - net.h(x.mean(1)).mean(0)),
        "'mean' mixes them.*numbers kept from training",
    ),
    "scaled by the batch": (lambda net, x: net.g(net.h(x.mean(1)) / net.h(x.mean(1)).abs().max()), "'max' mixes them"),
    "normalised over the batch": (lambda net, x: net.g(F.normalize(net.h(x.mean(1)), dim=0)), "'normalize' mixes them"),
    "summed up": (lambda net, x: net.g(net.h(x.mean(1)).cumsum(0)), "'cumsum' mixes them"),
    "sorted and not put back": (lambda net, x: net.g(net.h(x.mean(1)).sort(0)[0]), "'sort' mixes them"),
    "moments of the batch": (
        lambda net, x: net.g(net.norm(net.h(x.mean(1)))),
        "'batch_norm' in module 'norm' mixes them, since it takes its moments.*track_running_stats=True",
    ),
}


@pytest.mark.parametrize("kind", MIXED)
def test_scores_that_depend_on_the_batch_are_refused_by_the_operation_that_mixes_it(kind):
    forward, said = MIXED[kind]
    with pytest.raises(ModelError, match=f"(?s)depend on which others are in its batch.*{said}") as caught:
        next(iter(idc.trace(of(forward), SEQUENCES, ["g"])))
    assert ("batch_norm" in str(caught.value)) == (kind == "moments of the batch")


def test_the_advice_against_a_mixed_batch_leads_on():
    network = of(lambda net, x: net.g(hidden(net, net.attention(x, x, x)[0].mean(1))))
    network.attention.batch_first = True
    batch = next(iter(idc.trace(network, SEQUENCES, ["h"])))
    with torch.no_grad():
        torch.testing.assert_close(batch.scores, torch.cat([network(x[None]) for x in SEQUENCES]))


def test_what_a_batch_shows_of_a_network_is_asked_for_once():
    calls = []
    network = of(lambda net, x: (calls.append(len(x)), net.g(hidden(net, x.mean(1))))[1])
    next(iter(idc.trace(network, SEQUENCES, ["h"])))
    first = len(calls)
    next(iter(idc.trace(network, SEQUENCES, ["h"])))
    assert len(calls) - first < first
    assert sum(calls) < 3 * len(SEQUENCES)
