"""Parity with values measured on the original DeepImportance program: relevance, rankings, activations."""

import json

import numpy as np
import pytest

from idc_core.importance.important_neurons import most_important
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect, trace
from tests.lrp.reference_networks import LAYERS, channels_last, load_images, load_network

RULES = {
    "z": RelevanceSettings("z"),
    "eps": RelevanceSettings("epsilon", epsilon=0.01),
    "ab3": RelevanceSettings("alpha-beta", alpha=3.0),
}
SINGLE = {"z": 1e-5, "eps": 1e-4, "ab3": 1e-5}  # relative to the layer's largest value, from the reference's README
SUMMED = 1e-4
GAP = 1e-3  # rankings are compared where the reference itself separates two neurons by more than this


@pytest.fixture(scope="module", params=["LeNet1", "LeNet5"])
def reference(request, reference_folder):
    folder = reference_folder / "deepimportance"
    return request.param, folder, load_network(folder, request.param)


def assert_close(found, expected, tolerance, what):
    assert found.shape == expected.shape, what
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error <= tolerance, f"{what}: {error:.1e} of the largest value"


@pytest.mark.parametrize("rule", RULES)
def test_relevance_of_single_inputs(reference, rule):
    name, folder, network = reference
    measured = np.load(folder / f"{name}_relevance.npz", allow_pickle=False)
    images = load_images(folder, "train")[measured["example_indices"]]
    batch = next(trace(network, images, LAYERS[name], RULES[rule]))
    for layer in LAYERS[name]:
        found = channels_last(batch.relevance[layer].numpy())
        assert_close(found, measured[f"net.{rule}.{layer}"], SINGLE[rule], layer)


@pytest.mark.parametrize("rule", ["z", "eps", pytest.param("ab3", marks=pytest.mark.slow)])
def test_total_relevance_and_rankings(reference, rule):
    name, folder, network = reference
    measured = np.load(folder / f"{name}_total_relevance.npz", allow_pickle=False)
    rankings = json.loads((folder / f"{name}_topm.json").read_text())["rankings"]
    correct = np.load(folder / f"{name}_activations.npz", allow_pickle=False)["train_correct"]
    sets = {"sum200": np.arange(1000) < 200, "all1000": np.full(1000, True), "correct": correct}
    layers = [layer for layer in LAYERS[name] if f"net.{rule}.correct.{layer}" in measured]
    assert set(rankings) <= set(layers)
    maps = {(one, layer): 0.0 for one in sets for layer in layers}
    for batch in trace(network, load_images(folder, "train"), layers, RULES[rule], batch_size=250):
        for layer, values in batch.relevance.items():
            values = channels_last(values.numpy())
            for one, chosen in sets.items():
                maps[one, layer] += values[chosen[batch.start : batch.start + len(values)]].sum(0)
    for (one, layer), found in maps.items():
        expected = measured[f"net.{rule}.{one}.{layer}"]
        assert_close(found, expected, SUMMED, f"{one} {layer}")
        neurons, expected = (values.reshape(-1, values.shape[-1]).sum(0) for values in (found, expected))
        assert_close(neurons, expected, SUMMED, f"neurons of {one} {layer}")
        if layer in rankings:
            assert_same_ranking(neurons, rankings[layer][f"net/{rule}/{one}"])


def assert_same_ranking(neurons, ranking):
    order, sums = ranking["order"], np.array(ranking["relevance_sum"])
    found = most_important(neurons, len(neurons)).tolist()
    assert found[:12] == order[:12]
    # Further down, ranks are exact up to neighbours that the reference itself hardly tells apart.
    np.testing.assert_allclose(sums[found], sums[order], atol=GAP * np.abs(sums).max())
    for m, gap in ranking["relative_gap_after_m"].items():
        if gap > GAP:
            assert set(found[: int(m)]) == set(order[: int(m)])


def test_activations(reference):
    name, folder, network = reference
    measured = np.load(folder / f"{name}_activations.npz", allow_pickle=False)
    layers = [layer for layer in LAYERS[name] if f"train.{layer}" in measured]
    assert layers
    for split in ("train", "test"):
        found = collect(network, load_images(folder, split), layers)
        np.testing.assert_allclose(found.scores, measured[f"logits_{split}"], atol=1e-4, rtol=0)
        for layer in layers:
            expected = measured[f"{split}.{layer}"]
            np.testing.assert_allclose(found.activations[layer], expected, atol=5e-5, rtol=0, err_msg=layer)
    examples = load_images(folder, "train")[measured["example_indices"]]
    batch = next(trace(network, examples, [layer for layer in LAYERS[name] if layer not in ("input", "logits")]))
    for layer, values in batch.activations.items():
        expected = measured[f"example.{layer}"]
        np.testing.assert_allclose(channels_last(values.numpy()), expected, atol=5e-5, rtol=0, err_msg=layer)
