"""Networks with several inputs: equal to the same network run row by row with the other inputs written into it."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.confusion.scaled_activation import collect_statistics
from idc_core.coverage.neuron import NC
from idc_core.errors import DataError, ModelError
from idc_core.experiments.ablation import ablate
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect, trace
from tests.lrp.networks import ROWS, settle

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0], [5, 8, 0, 0, 0], [3, 2, 3, 8, 0]])
MASK = (IDS != 0).long()
NAMED = {"input_ids": IDS, "attention_mask": MASK}


def part(rows):
    return {name: value[rows] for name, value in NAMED.items()}


RULES = ["z", "epsilon", "attnlrp", "value-path"]


class Attentive(nn.Module):
    """One head of attention with a mask, and the mean of the tokens that are read."""

    def __init__(self):
        super().__init__()
        self.words, self.q, self.k, self.v = nn.Embedding(10, 6), *(nn.Linear(6, 6) for _ in range(3))
        self.out = nn.Linear(6, 3)

    def forward(self, input_ids, *, attention_mask):
        x = self.words(input_ids)
        hidden = torch.where(attention_mask[:, None, :] == 0, -math.inf, 0.0)
        x = x + torch.softmax(self.q(x) @ self.k(x).transpose(1, 2) / 6**0.5 + hidden, -1) @ self.v(x)
        share = attention_mask[..., None] / attention_mask.sum(1)[:, None, None]
        return {"logits": self.out(torch.relu((x * share).sum(1)))}


class ForOneRow(nn.Module):
    """A network that takes the main input of one row alone."""

    def __init__(self, network, **others):
        super().__init__()
        self.network, self.others = network, others

    def forward(self, x):
        return self.network(x, **self.others)


@pytest.fixture(scope="module")
def network():
    return settle(Attentive())


@pytest.mark.parametrize("rule", RULES)
def test_relevance_equals_that_of_each_row_alone(network, rule):
    layers = ["input", "words", "v", "out"]
    found = idc.relevance(network, NAMED, layers, rule, bias="redistribute")
    for row in range(len(IDS)):
        alone = ForOneRow(network, attention_mask=MASK[row : row + 1])
        names = [name if name == "input" else f"network.{name}" for name in layers]
        expected = idc.relevance(alone, IDS[row : row + 1], names, rule, bias="redistribute")
        for layer, name in zip(layers, names, strict=True):
            np.testing.assert_allclose(found[layer][row], expected[name][0], rtol=1e-9, atol=1e-9, err_msg=layer)
    assert found["input"].shape == IDS.shape
    assert np.abs(found["input"][MASK.numpy() == 0]).max() < 1e-6  # what stabilises divisors


@pytest.mark.parametrize(
    "inputs",
    [
        {name: value.numpy() for name, value in NAMED.items()},
        [{name: value[:1] for name, value in NAMED.items()}, {name: value[1:] for name, value in NAMED.items()}],
        [
            ({name: value[:3] for name, value in NAMED.items()}, None),
            {name: value[3:] for name, value in NAMED.items()},
        ],
    ],
    ids=["arrays", "batches", "batches with targets"],
)
def test_forms_and_batches_give_the_same(network, inputs):
    settings = RelevanceSettings("z")
    expected = collect(network, NAMED, ["input", "v"], settings)
    found = collect(network, inputs, ["input", "v"], settings, batch_size=1)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6)
    for layer in ("input", "v"):
        np.testing.assert_allclose(found.activations[layer], expected.activations[layer], rtol=1e-6)
        np.testing.assert_allclose(found.relevance[layer], expected.relevance[layer], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(next(trace(network, NAMED, ["input"])).activations["input"], IDS)


# A dense layer on both: relevance of the first is w x / z of the score, that of the second is not looked at.
def test_the_second_input_is_a_constant(network):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Linear(6, 3, bias=False), nn.Linear(4, 3, bias=False)

        def forward(self, picture, table):
            return self.one(picture) + self.other(table)

    net, table = settle(Both()), ROWS[:, :4].flip(0)
    found = idc.relevance(net, {"picture": ROWS, "table": table}, "input", "z", target=1)["input"]
    expected = np.zeros_like(found)
    for row in range(4):
        for place in range(6):
            expected[row, place] = float(net.one.weight.detach()[1, place] * ROWS[row, place])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_coverage_and_the_rest_of_the_engine(network):
    many = {name: value.repeat(20, 1) for name, value in NAMED.items()}
    of_rows = collect(network, many, ["v", "out"], RelevanceSettings())
    criterion = idc.IDC(network, "v", 2).fit(many)
    expected = np.argsort(-of_rows.relevance["v"].sum(0), kind="stable")[:2]
    np.testing.assert_array_equal(sorted(criterion.important), sorted(expected))
    assert criterion.update(NAMED).score > 0
    assert NC(network, ["v"]).fit(many).update(NAMED).score > 0
    targets = of_rows.predictions
    found = ablate(network, many, targets, "v", [0, 1, 2], seeds=[0])
    assert found.baseline == 1.0
    assert collect_statistics(network, many, ["out"]).predictions.tolist() == targets.tolist()


def test_other_inputs_are_never_written_into():
    class Writes(Attentive):
        def forward(self, input_ids, *, attention_mask):
            attention_mask[:, 0] = 1
            input_ids.clamp_(max=8)
            return super().forward(input_ids, attention_mask=attention_mask)

    given = {"input_ids": IDS.clone(), "attention_mask": MASK.clone()}
    given["attention_mask"][0, 0] = 0
    before = {name: value.clone() for name, value in given.items()}
    idc.relevance(settle(Writes()), given, ["v"])
    assert all(torch.equal(given[name], value) for name, value in before.items())


@pytest.mark.parametrize(
    ("inputs", "kind", "said"),
    [
        ({"input_ids": IDS, "attention_mask": MASK[:2]}, DataError, "equal numbers of rows.*input_ids 4, attention_"),
        ({"input_ids": IDS, "attention_mask": 1}, DataError, r"expected arrays, not 'attention_mask' \(int\)"),
        ({}, DataError, "expected arrays, not none"),
        ({"input_ids": IDS[:0], "attention_mask": MASK[:0]}, DataError, "no inputs to run"),
        (
            {"input_ids": IDS, "mask": MASK},
            ModelError,
            r"inputs 'input_ids' of shape \(1, 5\) and type int64, 'mask' of .* unexpected keyword argument 'mask'",
        ),
        (IDS, ModelError, "missing 1 required keyword-only argument: 'attention_mask'"),
    ],
)
def test_mistakes(network, inputs, kind, said):
    with pytest.raises(kind, match=said):
        idc.relevance(network, inputs, ["v"])
