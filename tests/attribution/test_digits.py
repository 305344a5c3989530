"""Relevance that loses all its digits is told, with the layer where it begins and a rule that holds there."""

import re

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.attribution.digits import first_lost, said_lost
from idc_core.errors import DataError
from idc_core.lrp.rules import RelevanceSettings


def deep(depth):
    """Dense layers with biases, in which shares nearly cancel."""
    torch.manual_seed(0)
    layers = [nn.Linear(8, 16), nn.Tanh()]
    for _ in range(depth):
        layers += [nn.Linear(16, 16), nn.Tanh()]
    network = nn.Sequential(*layers, nn.Linear(16, 3))
    for module in network:
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight)
            nn.init.normal_(module.bias, 0, 0.3)
    return network.eval()


ONE = torch.randn(1, 8, generator=torch.Generator().manual_seed(0))


def test_the_first_layer_that_keeps_no_digit_is_named():
    fine, large = np.ones(4, np.float32), np.full(4, 1e7, np.float32)
    assert first_lost({"b": fine, "a": fine}, 2.0) is None
    assert first_lost({"b": fine, "a": large, "input": large}, 1.0).layer == "a"
    assert first_lost({"b": fine, "a": large.astype(np.float64)}, 1.0) is None
    assert first_lost({"b": fine, "a": large}, 1e6) is None
    assert first_lost({"b": np.array([1, np.nan])}, 1.0).times == float("inf")
    assert first_lost({"b": np.array([3e38, 3e38], np.float32)}, 1.0).times > 1e38


def test_where_digits_are_lost_and_which_rule_holds_there():
    network, spread = deep(60), RelevanceSettings(bias="redistribute")
    said = said_lost(network, ONE, spread)
    begins = int(re.search(r"Relevance by LRP-epsilon with biases redistributed loses .* layer '(\d+)' on", said)[1])
    assert said.endswith("LRP-gamma with biases redistributed holds here (rule='gamma', bias='redistribute').")
    layers = [str(place) for place in range(0, len(network), 2)]
    lost, kept, whole = (
        idc.relevance(network.to(kind), ONE, layers, rule, bias="redistribute")
        for kind, rule in ((torch.float32, "epsilon"), (torch.float32, "gamma"), (torch.float64, "epsilon"))
    )
    score = float(network(ONE.double()).detach().max())
    sums = {layer: float(values.sum(dtype=np.float64)) for layer, values in lost.items()}
    size = {layer: float(np.abs(values).sum(dtype=np.float64)) for layer, values in lost.items()}
    assert size[str(begins)] > 0.1 / np.finfo(np.float32).eps * score > size[str(begins + 2)] * 0.3
    assert all(sums[layer] == pytest.approx(score, rel=0.2) for layer in layers if int(layer) > begins)
    assert max(abs(value - score) for value in sums.values()) > 10 * score
    assert all(values.sum() == pytest.approx(score, rel=1e-3) for values in kept.values())
    assert whole["0"].sum() == pytest.approx(score, rel=0.1)
    assert said_lost(network.float(), ONE, RelevanceSettings("gamma")) == ""


def test_relevance_that_is_not_finite_is_refused_with_the_rule_that_holds():
    network = deep(300)
    with pytest.raises(DataError, match=r"Input 0 gives relevance of layer 'input' that is not finite") as caught:
        idc.relevance(network, torch.cat([ONE, ONE]), ["input"], "epsilon", bias="redistribute", target=[0, 1])
    assert "loses all its digits from layer" in str(caught.value)
    assert "holds here (rule='gamma', bias='redistribute')" in str(caught.value)
    assert np.isfinite(idc.relevance(network, ONE, ["input"], "gamma", bias="redistribute")["input"]).all()


def test_a_shallow_network_has_nothing_to_tell():
    for rule in ("epsilon", "alpha-beta", "gamma"):
        for bias in ("absorb", "redistribute"):
            assert said_lost(deep(2), ONE, RelevanceSettings(rule, bias=bias)) == ""


def test_the_check_of_a_network_tells_it():
    from idc_core.analysis.network_check import check_network
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    inputs = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    network = deep(60)
    with torch.no_grad():
        targets = network(torch.from_numpy(inputs)).argmax(1).numpy()
    idc.dataset("deep-data", class_names=("a", "b", "c"))(lambda split: (inputs, targets))
    idc.network("deep", data="deep-data", layer="118")(lambda: deep(60))
    try:
        notes = check_network("deep").notes
    finally:
        del MODELS["deep"], DATASETS["deep-data"]
    assert any("with biases redistributed loses all its digits from layer" in note for note in notes)
