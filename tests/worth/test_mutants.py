"""Operators beside slow ones written from the paper's table, and mutants that tests are known to kill."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.datasets import Dataset
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.models.weights import fingerprint
from idc_core.worth import OPERATORS, mutants_after_training
from idc_core.worth.mutants import LEAST_ACCURACY, Mutant, Mutants, Sieve

RANDOM = np.random.default_rng(0)
CENTRES = RANDOM.standard_normal((4, 6)) * 2


def pool(count=200, task="classification"):
    targets = np.arange(count) % 4
    inputs = (CENTRES[targets] + RANDOM.standard_normal((count, 6))).astype(np.float32)
    return Dataset("points", "test", inputs, targets, tuple("abcd"), task, (), (), np.arange(count), "f")


POOL = pool()


@pytest.fixture(scope="module")
def model():
    """Scores by the distance to the four centres, through a hidden layer that keeps both signs of each input."""
    network = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4)).eval()
    both, signs = np.concatenate([np.eye(6), -np.eye(6)]), np.concatenate([np.eye(6), -np.eye(6)])
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor(both))
        network[0].bias.zero_()
        network[2].weight.copy_(torch.tensor(CENTRES @ signs.T))
        network[2].bias.copy_(torch.tensor(-(CENTRES**2).sum(1) / 2))
    return network


@pytest.fixture(scope="module")
def found(model):
    return mutants_after_training(model, POOL, count=20, seed=3)


def mutated(name, share, seed=1, rows=8):
    weights = np.random.default_rng(5).standard_normal((rows, 5)).astype(np.float32)
    biases = np.arange(1, rows + 1, dtype=np.float32)
    now, now_biases = weights.copy(), biases.copy()
    OPERATORS[name].apply(now, now_biases, share, np.random.default_rng(seed))
    return weights, biases, now, now_biases


def drawn(share, rows=8, seed=1, least=1):
    return sorted(np.random.default_rng(seed).permutation(rows)[: max(least, round(share * rows))].tolist())


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5])
def test_a_blocked_neuron_gives_nothing_and_an_inverted_one_its_opposite(share):
    for name, factor in (("neuron-block", 0), ("activation-inversion", -1)):
        weights, biases, now, now_biases = mutated(name, share)
        for row in range(8):
            by = factor if row in drawn(share) else 1
            assert now[row].tolist() == [by * value for value in weights[row]]
            assert now_biases[row] == by * biases[row]


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_shuffled_neurons_keep_their_weights_and_all_others_their_order(share):
    weights, biases, now, now_biases = mutated("weight-shuffling", share)
    changed = [row for row in range(8) if (now[row] != weights[row]).any()]
    assert set(changed) <= set(drawn(share))
    assert changed
    for row in range(8):
        assert sorted(now[row]) == sorted(weights[row])
    assert (now_biases == biases).all()


@pytest.mark.parametrize("share", [0.01, 0.5, 0.6])
def test_switched_neurons_trade_places_two_by_two(share):
    weights, biases, now, now_biases = mutated("neuron-switch", share)
    went = [int(np.flatnonzero((weights == row).all(1))[0]) for row in now]
    moved = [row for row in range(8) if went[row] != row]
    assert len(moved) == len(drawn(share, least=2)) // 2 * 2
    assert all(went[went[row]] == row for row in range(8))
    assert now_biases.tolist() == [biases[row] for row in went]


def test_fuzzing_adds_noise_as_large_as_the_weights_to_a_share_of_them():
    weights, _, now, _ = mutated("gaussian-fuzzing", 0.25, rows=400)
    added = (now - weights)[now != weights]
    assert len(added) == 500
    assert 0.85 < added.std() / weights.std() < 1.15


def right(network, data):
    """The same by one pass per input, without the engine."""
    with torch.no_grad():
        return np.array(
            [
                int(network(torch.tensor(row)[None]).argmax()) == target
                for row, target in zip(data.inputs, data.targets, strict=True)
            ]
        )


def test_a_planted_mutant_is_killed_by_the_tests_it_takes_from_the_network(model, monkeypatch):
    def mute(weights, biases, share, random):
        if len(biases) == 4:
            biases[2] -= 3

    monkeypatch.setitem(OPERATORS, "mute", type(OPERATORS["neuron-block"])("mute", "Mute", "", mute))
    mutant = copy.deepcopy(model)
    with torch.no_grad():
        mutant[2].bias[2] -= 3
    lost = right(model, POOL) & ~right(mutant, POOL)
    one = mutants_after_training(model, POOL, count=1, operators=["mute"])
    assert lost.any()
    assert one.killed[:, 0].tolist() == lost.tolist()
    assert one.mutants[0].accuracy == right(mutant, POOL).mean()


def test_mutants_are_accurate_and_killed_and_the_network_stays(model, found):
    before = fingerprint(model)
    again = mutants_after_training(model, POOL, count=20, seed=3)
    assert fingerprint(model) == before
    assert again.mutants == found.mutants
    assert (again.killed == found.killed).all()
    assert len(found.mutants) == 20
    original = right(model, POOL)
    assert all(mutant.accuracy >= LEAST_ACCURACY * original.mean() for mutant in found.mutants)
    assert found.killed.any(0).all()
    assert not found.killed[~original].any()
    fewer = mutants_after_training(model, POOL, count=4, operators=["neuron-block"], seed=3)
    assert fewer.mutants == tuple(one for one in found.mutants if one.operator == "neuron-block")


def test_by_class_the_share_found_is_the_papers_score(found):
    by_class, whole = found.yardstick(), found.yardstick(by_class=False)
    assert (whole.found == found.killed).all()
    chosen = np.arange(0, 200, 7)
    killed = killable = 0
    for number in range(len(found.mutants)):
        kills = np.flatnonzero(found.killed[:, number])
        killable += len({int(POOL.targets[test]) for test in kills})
        killed += len({int(POOL.targets[test]) for test in kills if test in chosen})
    assert by_class.targets == killable
    assert by_class.share(chosen) == killed / killable


def test_too_weak_and_equivalent_mutants_are_counted_out():
    sieve, some = Sieve(0.8), np.array([True, False])
    assert sieve.take(Mutant("a", "", 0.1, 0.73), some)
    assert not sieve.take(Mutant("b", "", 0.1, 0.71), some)
    assert not sieve.take(Mutant("c", "", 0.1, 0.8), ~some & some)
    kept = sieve.mutants("mutants", np.array([0, 1]))
    assert isinstance(kept, Mutants)
    assert [mutant.operator for mutant in kept.mutants] == ["a"]
    assert (kept.inaccurate, kept.equivalent) == (1, 1)


def test_what_cannot_be_mutated_is_refused(model, monkeypatch):
    with pytest.raises(DataError, match="regression"):
        mutants_after_training(model, pool(20, "regression"))
    with pytest.raises(ModelError, match="dense and convolutional"):
        mutants_after_training(nn.Identity(), POOL)
    with pytest.raises(SettingError, match="Unknown operator"):
        mutants_after_training(model, POOL, operators=["none"])
    keep = type(OPERATORS["neuron-block"])("keep", "Keep", "", lambda *_: None)
    monkeypatch.setitem(OPERATORS, "keep", keep)
    with pytest.raises(ModelError, match="10 killed by none"):
        mutants_after_training(model, POOL, count=1, operators=["keep"])
