"""Units replaced and held: the network read step by step is the network, and a planted detector is found."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from idc_core.datasets import load_dataset
from idc_core.errors import DataError, SettingError
from idc_core.experiments.unit_changes import _correlations, follow, force_units, replace_units
from idc_core.inspection import Hypothesis
from idc_core.models.charlstm import CharLSTM


@pytest.fixture(scope="module")
def data():
    return load_dataset("sql", "test", 60)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return CharLSTM(12).eval()


def mark(data, character):
    code = data.vocabulary.index(character)
    return Hypothesis(f"is {character}", "own", "binary", lambda records: records.inputs == code)


def test_read_step_by_step_the_network_is_itself(model, data):
    scores, states = follow(model, data.inputs)
    with torch.no_grad():
        expected = model(torch.tensor(data.inputs))
        inside, _ = model.lstm(model.embedding(torch.tensor(data.inputs)))
    torch.testing.assert_close(scores, expected)
    torch.testing.assert_close(states, inside)


def test_a_changed_state_goes_on_into_the_next_symbol(model, data):
    def zero(place, hidden):
        return hidden * 0 if place == 9 else hidden

    scores, states = follow(model, data.inputs[:3], zero)
    assert not states[:, 9].any()
    _, before = follow(model, data.inputs[:3])
    torch.testing.assert_close(states[:, :9], before[:, :9])
    assert (states[:, 10] - before[:, 10]).abs().max() > 1e-3
    # Slowly: torch's own cell, with the hidden state of zeros after the tenth symbol.
    cell = torch.nn.LSTMCell(32, 12)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in model.lstm.state_dict().items()})
    hidden = memory = torch.zeros(3, 12)
    with torch.no_grad():
        for place in range(data.inputs.shape[1]):
            hidden, memory = cell(model.embedding(torch.tensor(data.inputs[:3, place])), (hidden, memory))
            hidden = zero(place, hidden)
        torch.testing.assert_close(scores, model.logits(hidden))


def test_correlations_are_numpys(model, data):
    states = follow(model, data.inputs)[1].numpy()
    states[:, :, 3] = 0.5
    true = np.random.default_rng(0).random(states.shape[:2]) < 0.3
    found = _correlations(states, true)
    for unit in (0, 7):
        assert found[unit] == pytest.approx(np.corrcoef(states[:, :, unit].ravel(), true.ravel())[0, 1], abs=1e-6)
    assert found[3] == 0


def planted(data, character):
    """A network with one unit that is high just after a character, and that makes space follow wherever it is high."""
    model = CharLSTM(2)
    own = model.lstm
    with torch.no_grad():
        for value in model.parameters():
            value.zero_()
        model.embedding.weight[data.vocabulary.index(character), 0] = 1.0
        # Gates in torch's order: enter, forget, fresh, leave; unit 0 sees the character, unit 1 nothing.
        own.bias_ih_l0[:] = torch.tensor([20.0, 20, -20, -20, -3, 0, 20, 20])
        own.weight_ih_l0[4, 0] = 6.0
        model.logits.weight[data.class_names.index("space"), 0] = 30.0
    return model.eval()


def test_a_detector_can_be_replaced_by_its_hypothesis_and_not_by_its_mean(data):
    model = planted(data, "e")
    ends = np.flatnonzero(data.inputs[:, -1] == data.vocabulary.index("e"))
    kept = np.concatenate([np.repeat(ends, 5), np.arange(len(data))])[:80]
    kept = np.random.default_rng(0).permutation(kept)
    space = data.class_names.index("space")
    some = replace(data, inputs=data.inputs[kept], ids=data.ids[kept], fingerprint="planted")
    some = replace(some, targets=np.where(np.isin(kept, ends), space, 5))
    rows = replace_units(model, some, [mark(data, "e")], (1,))
    costs = {row.by: row.cost for row in rows}
    assert rows[0].correlation == pytest.approx(1, abs=1e-3)
    assert abs(costs["the hypothesis"]) < 0.01
    assert costs["their mean"] > 0.5
    assert costs["the hypothesis of other records"] > 0.5
    assert abs(costs["the hypothesis, random units"]) < 1e-6


def test_holding_a_writer_makes_it_write(data):
    model = planted(data, "e")
    rows = {row.which: row for row in force_units(model, data, [mark(data, "e")], (1,), length=20)}
    assert rows["best"].share < 0.01  # all that follows are spaces
    with torch.no_grad():
        model.logits.weight.zero_()
        model.logits.weight[data.vocabulary.index("e") - 2, 0] = 30.0
    rows = {row.which: row for row in force_units(model, data, [mark(data, "e")], (1,), length=20)}
    assert rows["best"].share > 0.99
    assert rows["random"].share == pytest.approx(rows["random"].free, abs=0.1)
    assert rows["best"].low <= rows["best"].share <= rows["best"].high


def test_hypotheses_that_say_nothing_of_a_symbol_are_refused(model, data):
    whole = Hypothesis("one a record", "own", "binary", lambda records: np.ones(len(records), bool))
    always = Hypothesis("always", "own", "binary", lambda records: np.ones_like(records.inputs, bool))
    with pytest.raises(DataError, match="every symbol"):
        replace_units(model, data, [whole])
    with pytest.raises(DataError, match="of all symbols of 30 records or of none"):
        replace_units(model, data, [always])
    with pytest.raises(SettingError, match="not known of what a network writes"):
        force_units(model, data, [replace(always, recomputable=False)])
