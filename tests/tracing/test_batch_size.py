"""How many inputs one batch takes: within a bound of memory, and enough to be worth reading the weights for."""

import pytest
from torch import nn

from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.batch_size import MOST_INPUTS, inputs_at_once
from idc_core.tracing.batching import probe
from idc_core.tracing.trace import trace
from tests.lrp.networks import Written, numbers, settle


def test_the_batch_size_keeps_to_the_budget(monkeypatch):
    monkeypatch.setattr("idc_core.tracing.batch_size._MEMORY", 2**16)
    network = settle(nn.Sequential(nn.Linear(2, 200), nn.ReLU(), nn.Linear(200, 3)))
    sizes = [len(batch.scores) for batch in trace(network, numbers(100, 2), ["0"])]
    assert sum(sizes) == 100
    # 200 numbers of 8 bytes before the activation function and as many behind it.
    assert 10 <= max(sizes) <= 2**16 // (2 * 200 * 8)


def test_the_owner_sets_the_memory_of_a_batch(monkeypatch, tmp_path):
    (tmp_path / "config.toml").write_text("[limits]\nbatch_mib = 1\n", encoding="utf-8")
    monkeypatch.setenv("IDC_CONFIG", str(tmp_path / "config.toml"))
    network = settle(nn.Sequential(nn.Linear(2, 2_000), nn.ReLU(), nn.Linear(2_000, 3)))
    sizes = [len(batch.scores) for batch in trace(network, numbers(100, 2), ["0"])]
    assert sum(sizes) == 100
    assert 10 <= max(sizes) <= 2**20 // (2 * 2_000 * 8)


def test_only_what_is_in_memory_at_the_same_time_counts(monkeypatch):
    monkeypatch.setattr("idc_core.tracing.batch_size._MEMORY", 2**16)
    parts = [part for _ in range(9) for part in (nn.Linear(200, 200), nn.ReLU())]
    network = settle(nn.Sequential(nn.Linear(2, 200), *parts, nn.Linear(200, 3)))

    def largest(layer, settings):
        return max(len(batch.scores) for batch in trace(network, numbers(100, 2), [layer], settings))

    held = {layer: largest(layer, RelevanceSettings()) for layer in ("0", "17")}
    assert held["0"] <= 2**16 // (20 * 200 * 8) < 2 * held["0"] + 1
    assert held["17"] > 2 * held["0"]
    assert largest("0", None) > 2 * held["0"]


@pytest.mark.parametrize(
    ("footprint", "uses", "expected"),
    [
        (50_000, 7, MOST_INPUTS),  # a small network: all that is near the caches
        (8 << 20, 50, 40),  # a ResNet-18 on pictures of 32 x 32: eight would be near the caches
        (51 << 20, 197, 10),  # a ViT-S/16: one would
        (2 << 30, 197, 1),
        (1 << 20, float("inf"), 64),
    ],
)
def test_weights_are_used_often_enough_in_a_batch(footprint, uses, expected):
    assert inputs_at_once(footprint, uses) == expected


def test_weights_and_what_they_are_multiplied_by_are_counted():
    def forward(net, x):
        return net.out(net.conv(x).mean((2, 3)))

    network = settle(Written(forward, conv=nn.Conv2d(2, 4, 3, bias=False), out=nn.Linear(4, 3)))
    found = probe(network, numbers(1, 2, 7, 7), ["conv"], None)
    assert found.uses == (25 * 72 + 12) / (72 + 12)


@pytest.mark.parametrize("rule", ["epsilon", "attnlrp"])
def test_what_lies_in_the_memory_of_another_value_is_recorded_once(rule):
    def moved(net, x):
        return net.out(net.first(x).view(-1, 20, 30).transpose(1, 2).transpose(1, 2).reshape(-1, 600))

    def recorded(forward):
        network = settle(Written(forward, first=nn.Linear(2, 600), out=nn.Linear(600, 3)))
        return probe(network, numbers(1, 2), ["first"], RelevanceSettings(rule)).watched[0].counts.recorded

    assert recorded(moved) == recorded(lambda net, x: net.out(net.first(x)))
    assert recorded(lambda net, x: net.out(net.first(x).flip(1))) == recorded(moved) + 600


def test_relevance_of_watched_layers_is_held_as_well():
    network = settle(nn.Sequential(*[nn.Linear(50, 50) for _ in range(20)]))

    def held(*layers):
        return probe(network, numbers(1, 50), layers, RelevanceSettings()).held

    assert held("0", "5", "9") == held("0") + 2 * 50 * 8
