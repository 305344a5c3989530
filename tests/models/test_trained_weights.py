"""The committed weights: all there, small, and as good as their cards say."""

import os
from dataclasses import asdict

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from idc_core.models import MODELS, load_model
from idc_core.models.card import WEIGHTS_FOLDER
from idc_core.models.training import measure

TRAINED = [name for name, entry in MODELS.items() if not entry.published]
# What the studio promises of its networks on the whole test split.
ACCURACY = {
    "lenet1-digits": 0.97,
    "lenet4-digits": 0.97,
    "lenet5-digits": 0.97,
    "lenet1-mnist": 0.983,
    "lenet4-mnist": 0.985,
    "lenet5-mnist": 0.989,
    "convnet-cifar10": 0.77,
    "vit-cifar10": 0.75,
    "textcnn-20newsgroups": 0.80,
    "texttransformer-20newsgroups": 0.82,
    "charlstm-sql": 0.82,
}
LARGE = {
    "vit-cifar10": pytest.mark.rare,
    "texttransformer-20newsgroups": pytest.mark.slow,
    "charlstm-sql": pytest.mark.slow,
    "convnet-cifar10": pytest.mark.rare,
    "dave2-udacity": pytest.mark.rare,
}
"""Networks whose whole test set takes long."""


@pytest.fixture(params=TRAINED)
def network(request):
    return load_model(request.param)


def test_the_folder_holds_exactly_the_trained_networks_and_is_small():
    files = {file.name: file.stat().st_size for file in WEIGHTS_FOLDER.iterdir()}
    assert set(files) == {name + ending for name in TRAINED for ending in (".safetensors", ".json")}
    assert sum(files.values()) < 25_000_000


def test_card_describes_the_network_and_the_recipe_that_made_it(network):
    card = network.card
    entry = MODELS[card.name]
    assert card.parameters == entry.parameters == network.parameter_count
    assert card.layers == network.layers
    assert card.recipe == asdict(entry.recipe)
    assert (card.label, card.dataset, card.task) == (entry.label, entry.dataset, entry.task)
    assert card.default_layer == entry.default_layer
    assert card.citation == entry.citation
    assert card.licence.startswith("Weights: MIT. Data: ")
    assert card.seed == 0
    assert card.split
    assert card.versions["torch"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[LARGE[name]] if name in LARGE else []) for name in TRAINED])
def test_metrics_are_those_of_the_card_and_good_enough(name):
    network = load_model(name)
    card = network.card
    if card.dataset != "digits" and not os.environ.get("IDC_DATA"):
        pytest.skip("IDC_DATA is not set")
    test = load_dataset(card.dataset, "test")
    measured = measure(network, test)
    if card.task == "classification":
        # Processors round differently; that may turn an input or two.
        assert measured["accuracy"] == pytest.approx(card.metrics["test_accuracy"], abs=2.5 / len(test))
        assert measured["accuracy"] >= ACCURACY[card.name]
    else:
        assert measured["rmse"] == pytest.approx(card.metrics["test_rmse"], abs=1e-4)
        training_mean = load_dataset(card.dataset, "train").targets.mean(dtype=np.float64)
        constant = float(np.sqrt(np.mean((test.targets - training_mean) ** 2)))
        assert card.metrics["test_rmse_of_training_mean"] == pytest.approx(constant, abs=1e-4)
        assert measured["rmse"] < 0.8 * constant
