"""A folder opened by its path: from predictions to covered cells, on texts and on pictures."""

import numpy as np
import pytest
import torch

from idc_core.analysis.analysis import analyze
from idc_core.datasets import DATASETS, load_dataset
from idc_core.datasets.dataset import Items
from idc_core.datasets.registry import dataset
from idc_core.datasets.tokenizing import tokenize
from idc_core.experiments.rq1 import _replace_words
from idc_core.inspection.hypothesis import Records
from idc_core.lrp.rules import RelevanceSettings
from idc_core.models import load_model
from idc_core.models.network_file import NetworkFile, open_network
from idc_core.models.registry import MODELS
from idc_core.tracing.neurons import axis_in, neuron_axes
from idc_core.tracing.parts import padding_of
from idc_core.tracing.trace import collect
from tests.models.huggingface.folders import LENGTH, NAMES, TEXTS, picture_folder, text_folder


@pytest.fixture
def opened(tmp_path):
    """Opens a folder of a kind on data made for it; what was entered is taken out again."""
    before = dict(DATASETS), dict(MODELS)
    random = np.random.default_rng(0)

    def open_one(kind):
        pictured = kind in ("vit", "convnext", "swin")
        folder = (picture_folder if pictured else text_folder)(tmp_path, kind)

        @dataset(f"data-{kind}", class_names=NAMES)
        def read(split):
            targets = np.arange(12) % 3
            if pictured:
                return Items(random.random((12, 3, 32, 32)).astype(np.float32), targets)
            words = " ".join(TEXTS).split()
            texts = [" ".join(random.choice(words, 9)) for _ in targets]
            ids, vocabulary, special = tokenize(texts, folder, LENGTH)
            return Items(ids, targets, vocabulary, tuple(texts), special=special)

        return open_network(NetworkFile(folder), f"data-{kind}")

    yield open_one
    for registry, old in zip((DATASETS, MODELS), before, strict=True):
        registry.clear()
        registry.update(old)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "vit", "convnext"])
def test_from_folder_to_cells(opened, kind):
    entry = opened(kind)
    assert 4 <= len(entry.layers) <= 14
    assert entry.default_layer in entry.layers
    train, test = (load_dataset(f"data-{kind}", split) for split in ("train", "test"))
    # What lies before the last but one needs relevance through attention.
    layer = [name for name in entry.layers if "@" not in name][-2]
    found = analyze(load_model(entry.name), train, test, layer, 3)
    assert found.score > 0


def test_names_of_layers_are_those_of_transformers(opened):
    entry = opened("bert")
    network = load_model(entry.name)
    assert entry.layers[:3] == (
        "bert.encoder.layer.0.attention",
        "bert.encoder.layer.0.intermediate.dense",
        "bert.encoder.layer.0",
    )
    assert network.class_names == NAMES
    inputs = DATASETS["data-bert"].load("test", None, None).inputs
    traces = collect(network, inputs, list(entry.layers))
    assert {layer: values.shape[1] for layer, values in traces.activations.items()}["bert.encoder.layer.1"] == 16
    relevance = collect(network, inputs, ["classifier"], RelevanceSettings()).relevance["classifier"]
    assert np.isfinite(relevance).all()


def test_neurons_of_blocks_are_features(opened):
    for kind, wanted in (("bert", 2), ("vit", 2), ("swin", 2), ("convnext", 1), ("gpt2", 2)):
        network = load_model(opened(kind).name)
        blocks = [name for name in network.offered_layers if name.endswith(("layer.0", "layers.0", "h.0", "blocks.0"))]
        assert blocks
        dimensions = 4 if kind == "convnext" else 3
        assert {axis_in(dimensions, axis) for axis in neuron_axes(network, blocks).values()} == {wanted}, kind


@pytest.mark.parametrize(("kind", "read"), [("bert", "class"), ("gpt2", "last"), ("vit", "class"), ("swin", "")])
def test_heads_are_offered_and_the_token_that_is_read(opened, kind, read):
    entry = opened(kind)
    parts = {name.rpartition("@")[2] for name in entry.layers if "@" in name}
    assert parts == {"heads", read} - {""}
    network, data = load_model(entry.name), load_dataset(f"data-{kind}", "test")
    traces = collect(network, data, [name for name in entry.layers if name.endswith("@heads")])
    assert {values.shape[1] for values in traces.activations.values()} == {2}
    assert padding_of(network) == (None if kind in ("vit", "swin") else data.padding)


def test_special_tokens_are_no_words(opened):
    opened("gpt2")
    data = load_dataset("data-gpt2", "test")
    there = Records(data, np.arange(len(data))).present
    np.testing.assert_array_equal(there, data.inputs != data.special[0])
    assert data.only(np.arange(3)).special == data.special
    tokens = torch.from_numpy(data.inputs.copy())
    changed, counts = _replace_words(tokens, torch.ones(tokens.shape), 0.2, data.special)
    assert (counts > 0).all()
    np.testing.assert_array_equal((changed != tokens).sum(1), counts)
    assert set(changed[changed != tokens].tolist()) == {data.special[1]}
