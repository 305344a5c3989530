"""The files of networks that this project writes and reads again: weights, cards, layer lists, checkpoints."""

import copy
import json
from dataclasses import replace

import numpy as np
import torch

from idc_core.models.card import ModelCard
from idc_core.models.checkpoints import Checkpoint, read_series
from idc_core.models.entry import ModelEntry, Recipe
from idc_core.models.lenet import LeNet
from idc_core.models.loading import load_model
from idc_core.models.weights import fingerprint, write_weights
from tests.guarded import crafted_binaries, crafted_texts, damage
from tests.guarded.own_files import ARCHIVED, MEMBERS, TEXT
from tests.guarded.reader import Reader

torch.set_num_threads(1)


with torch.random.fork_rng():
    torch.manual_seed(0)
    SMALL = LeNet((1, 1), (2,), 0)


def build():
    """A LeNet of a few weights, the same ones every time; copied, as that is quicker."""
    return copy.deepcopy(SMALL)


def entry(name, recipe):
    """Describe a small network; only the process that reads damaged files has it in its registry."""
    layers = ("conv1", "pool1", "conv2", "pool2", "fc1", "logits")
    return ModelEntry(name, name, "", build, layers, "digits", "fc1", None, recipe, "", "")


TRAINED = entry("toy-trained", Recipe("adamw", 0.01, 8, 4))
PUBLISHED = entry("toy-published", None)
CARD = TRAINED.card(build(), metrics={"test_accuracy": 0.9}, recipe={"optimizer": "adamw", "epochs": 4}, seed=0,
                    split="the first ones", versions={"torch": "2"})  # fmt: skip


def with_card(folder):
    """Weights and their card; the path of the weights."""
    path = folder / "data" / "toy.safetensors"
    write_weights(build(), path)
    path.with_suffix(".json").write_text(CARD.to_json(), encoding="utf-8")
    return path


def published(folder):
    """Weights in Keras's layout, and the layer list beside them; the path of the weights."""
    network = build()
    arrays, layers = {}, []
    shapes = {
        "conv1": [24, 24, 1],
        "pool1": [12, 12, 1],
        "conv2": [8, 8, 1],
        "pool2": [4, 4, 1],
        "fc1": [2],
        "logits": [10],
    }
    for name, part in network.named_children():
        kind = {"conv": "conv2d", "pool": "max_pool2d"}.get(name[:4], "dense")
        layer = {"name": name, "type": kind, "output_shape": shapes[name]}
        if kind == "conv2d":
            layer["padding"] = "valid"
        if hasattr(part, "weight"):
            kernel = part.weight.detach().numpy()
            arrays[f"{name}/kernel"] = np.ascontiguousarray(
                kernel.transpose(2, 3, 1, 0) if kernel.ndim == 4 else kernel.T
            )
            arrays[f"{name}/bias"] = part.bias.detach().numpy()
            layer["params"] = {
                "kernel": list(arrays[f"{name}/kernel"].shape),
                "bias": list(arrays[f"{name}/bias"].shape),
            }
        layers.append(layer)
    path = folder / "data" / "toy.npz"
    np.savez(path, **arrays)
    about = {
        "layers": layers,
        "mnist_accuracy": {"test_percent": 98.0},
        "source": {"repository": "r", "keras_version": "2"},
    }
    path.with_suffix(".json").write_text(json.dumps(about), encoding="utf-8")
    return path


def checkpoints(folder):
    """A training of four epochs, of which the second and the last are there; the path of the second's description."""
    kept = folder / "data"
    network, rounded = build(), build()
    for parameter in rounded.parameters():
        parameter.data = parameter.data.half().float()
    for epoch, one, stored in ((2, rounded, "float16"), (4, network, "float32")):
        card = replace(CARD, fingerprint=fingerprint(one))
        about = Checkpoint(epoch, 4, fingerprint(network), stored, card)
        (kept / f"{about.stem}.json").write_text(about.to_json(), encoding="utf-8")
        write_weights(one, kept / f"{about.stem}.safetensors", half=stored == "float16")
    return kept / "epoch-002.json"


def opened_series(path):
    """What a series of checkpoints is, and the network at its second epoch."""
    series = read_series("toy-trained", path.parent)
    return series.checkpoints, series.open(2)


NETWORK_FILES = (
    Reader(
        "weights, with their card",
        ("idc_core.models.weights", "idc_core.models.loading"),
        with_card,
        lambda path: load_model("toy-trained", weights=path),
        {"tensors": crafted_binaries.safetensors},
        heads=damage.all_of,
        tries=240,
        flips=200,
    ),
    Reader(
        "model card",
        ("idc_core.models.card",),
        lambda folder: with_card(folder).with_suffix(".json"),
        lambda path: ModelCard.read(path),
        {"values": crafted_texts.json_text},
        dict.fromkeys(("damage", "values"), TEXT),
        damage.all_of,
        tries=1800,
    ),
    Reader(
        "published weights",
        ("idc_core.models.published",),
        published,
        lambda path: load_model("toy-published", weights=path),
        ARCHIVED,
        dict.fromkeys(ARCHIVED, MEMBERS),
        damage.zip_heads,
        tries=360,
        flips=100,
    ),
    Reader(
        "published weights, layer list",
        ("idc_core.models.published",),
        lambda folder: published(folder).with_suffix(".json"),
        lambda path: load_model("toy-published", weights=path.with_suffix(".npz")),
        {"values": crafted_texts.json_text},
        dict.fromkeys(("damage", "values"), TEXT),
        damage.all_of,
        tries=480,
    ),
    Reader(
        "checkpoints, description",
        ("idc_core.models.checkpoints",),
        checkpoints,
        opened_series,
        {"values": crafted_texts.json_text},
        dict.fromkeys(("damage", "values"), TEXT),
        damage.all_of,
        tries=600,
    ),
    Reader(
        "checkpoints, weights",
        ("idc_core.models.checkpoints", "idc_core.models.weights"),
        lambda folder: checkpoints(folder).with_suffix(".safetensors"),
        lambda path: opened_series(path.with_suffix(".json")),
        {"tensors": crafted_binaries.safetensors},
        heads=damage.all_of,
        tries=240,
        flips=200,
    ),
)
