"""The files that this project writes and reads again: cards, weights, checkpoints, and everything in the cache."""

import copy
import json
from dataclasses import replace

import numpy as np
import torch

from idc_core import cache
from idc_core.analysis.overview import Overview
from idc_core.coverage.cell_table import CellTable
from idc_core.experiments.retraining_results import RetrainedNetwork
from idc_core.guarded import seal_text, seal_zip
from idc_core.inspection import inspect
from idc_core.inspection.blocks import BlockStore
from idc_core.inspection.query import ask
from idc_core.inspection.store import keep
from idc_core.models.card import ModelCard
from idc_core.models.checkpoints import Checkpoint, read_series
from idc_core.models.entry import ModelEntry, Recipe
from idc_core.models.lenet import LeNet
from idc_core.models.loading import load_model
from idc_core.models.weights import fingerprint, write_weights
from idc_core.suites import open_saved, save_suite, saved_suites
from idc_core.suites.attacked import cached_block
from tests.guarded import crafted_arrays, crafted_binaries, crafted_texts, damage
from tests.guarded.own_files import ARCHIVED, CLASSES, MEMBERS, PICTURED, PICTURES, TEXT, of_suite, written
from tests.guarded.reader import AbsentError, Reader
from tests.inspection.planted import Table, is_letter, noisy_table, texts

FORGED = "the checksum is right: it finds damage, not forgery"
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


def suite(folder):
    """A saved suite."""
    return save_suite("Mine", PICTURES, CLASSES, like=PICTURED)


def listed(path):
    """What the list says of a saved suite; absent where it does not."""
    found = saved_suites()
    if path.stem not in found:
        raise AbsentError("it is not in the list")
    return found[path.stem]


def resealed(craft):
    """A craft of the content under a checksum, which is made anew."""

    def change(content, random):
        # The checksum is the comment of the file: without it the content is a plain zip file.
        changed = craft(content, random)
        if changed[-22:-18] != b"PK\x05\x06" or changed[-2:] != b"\0\0":
            return changed
        return seal_zip(changed)

    return change


SEALED = {**ARCHIVED, **{f"{name} under a new checksum": resealed(craft) for name, craft in ARCHIVED.items()}}
RESEALED = {name: FORGED for name in SEALED if "new" in name}
WEIGHTS = {f"{name}.{part}": values.numpy() for name, layer in build().named_children() if hasattr(layer, "weight")
           for part, values in layer.state_dict().items()}  # fmt: skip
NETWORK = RetrainedNetwork(np.array([[0.5, 0.25], [0.75, 1.0]]), 3, PICTURES[:2], CLASSES[:2], WEIGHTS)


def network(folder):
    """A retrained network."""
    cache.ArrayFolder(folder / "home")["one"] = NETWORK.arrays()
    return folder / "home" / "one.npz"


def read_network(path):
    """Return a retrained network; absent where it is damaged."""
    held = cache.ArrayFolder(path.parent).get(path.stem)
    if held is None:
        raise AbsentError("the entry is damaged")
    return RetrainedNetwork.of(held)


def never():
    """Make something anew, which no test wants."""
    raise AbsentError("the entry is damaged")


def block(folder):
    """A block of attacked inputs."""
    cached_block(PICTURES, "key", lambda: PICTURES / 2)
    (path,) = (folder / "home" / "suites").glob("*.npz")
    return path


RECORD = {"score": 0.25, "names": ["a", "b"], "none": None, "inner": {"count": 3}}


def record(folder):
    """A record of finished work."""
    cache.stored("toy", {"seed": 1}, lambda: RECORD)
    (path,) = (folder / "home" / "runs" / "toy").glob("*.json")
    return path


def inner_json(content, random):
    """Other JSON under a new checksum."""
    inner = json.dumps(json.loads(content)["content"]).encode()
    return seal_text(crafted_texts.json_text(inner, random).decode("utf-8", "replace"))


STORES = []
"""Stores of blocks, which end with the process."""


def blocks(folder):
    """A store of blocks on disk."""
    STORES.append(BlockStore(0))
    STORES[-1].put(("key",), [torch.from_numpy(PICTURES)])
    (path,) = folder.rglob("0-0.npy")
    return path


def database(folder):
    """A database with one inspection."""
    found = inspect(Table(noisy_table(units=2)), texts(20), [is_letter(4)], ["pearson"], ["units"])
    keep(found, "first", folder / "home" / "inspection.duckdb")
    return folder / "home" / "inspection.duckdb"


def asked(path):
    """What the database says of it."""
    for log in path.parent.glob("*.wal"):
        log.unlink()
    return [ask(f"SELECT * FROM {view}", path).rows for view in ("runs", "hypotheses", "units", "scores")][1:]


TABLE = CellTable(
    (2, 3), np.array([[0, 1], [1, 2]], np.uint8), np.array([3, 1]), np.array([0, 1]), np.zeros((2, 0), np.int64)
)
OVERVIEW = Overview(("a" * 16, "b" * 16, "c" * 16), 4, 0.75, None, "fc1", 9, (5, 2), 0.25, 0.5, (0, 1, 1), TABLE)

KEPT = (
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
    Reader(
        "saved suites",
        ("idc_core.suites.saved_suites",),
        suite,
        lambda path: of_suite(open_saved(path.stem)),
        ARCHIVED | {"about": crafted_arrays.members({"json": crafted_texts.json_text})},
        dict.fromkeys((*ARCHIVED, "about"), MEMBERS),
        damage.zip_heads,
        tries=900,
        flips=200,
    ),
    Reader(
        "saved suites, list",
        ("idc_core.suites.saved_suites",),
        suite,
        listed,
        {"about": crafted_arrays.members({"json": crafted_texts.json_text})},
        {"about": MEMBERS},
        damage.zip_heads,
        tries=600,
        flips=100,
    ),
    Reader(
        "blocks of attacked inputs",
        ("idc_core.cache",),
        block,
        lambda path: cached_block(PICTURES, "key", never),
        SEALED,
        RESEALED,
        damage.zip_heads,
        tries=1200,
    ),
    Reader(
        "retrained networks",
        ("idc_core.cache", "idc_core.experiments.retraining_results"),
        network,
        read_network,
        SEALED,
        RESEALED,
        damage.zip_heads,
        tries=600,
        flips=200,
    ),
    Reader(
        "records of finished work",
        ("idc_core.cache",),
        record,
        lambda path: cache.stored("toy", {"seed": 1}, never),
        {"values": crafted_texts.json_text, "values under a new checksum": inner_json},
        {"values under a new checksum": FORGED},
        damage.all_of,
        tries=1800,
    ),
    Reader(
        "blocks of an inspection",
        ("idc_core.inspection.blocks",),
        blocks,
        lambda path: STORES[-1].get(("key",)),
        heads=damage.all_of,
        tries=1800,
    ),
    Reader(
        "overview",
        ("idc_core.analysis.overview",),
        written("overview.json", OVERVIEW.to_json()),
        lambda path: Overview.from_json(path.read_text(encoding="utf-8", errors="replace")),
        {"values": crafted_texts.json_text},
        dict.fromkeys(("damage", "values"), TEXT),
        damage.all_of,
        tries=1800,
        special=False,
    ),
    Reader(
        "database of inspections",
        ("idc_core.inspection.database_process", "idc_core.inspection.query"),
        database,
        asked,
        heads=lambda content: {0, 8, 20, 4100, 8200, 12_300},
        tries=4,
        flips=1,
        special=False,
    ),
)
