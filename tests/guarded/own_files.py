"""The files that a person gives: tests, predictions, masks, and the config file."""

from functools import partial

import numpy as np
import onnx
import torch
from PIL import Image

from idc_core import CRITERIA, load_criterion
from idc_core.base.config import config
from idc_core.confusion import own_evidence
from idc_core.datasets import Dataset
from idc_core.inspection.families.custom import mask_hypothesis
from idc_core.models.network_file import NetworkFile
from idc_core.opening import setup_files
from idc_core.suites import custom_suite
from tests.guarded import crafted_arrays, crafted_binaries, crafted_texts, damage
from tests.guarded.reader import Reader

MEMBERS = "the checksums of the members are right: somebody else's file"
TEXT = "a text without a checksum: what a cell or a value says may be changed"
HEADER = "a file without a checksum: its header may say another type or order, and its values are any"


def dataset(inputs, targets, task="classification", vocabulary=()):
    """A data set in memory."""
    names = ("cat", "dog", "bird") if task == "classification" else ()
    ids = np.arange(len(inputs))
    return Dataset("toy", "test", inputs, targets, names, task, vocabulary, (), ids, "0" * 16)


random = np.random.default_rng(0)
CLASSES = np.array([0, 2, 1])
PICTURES = random.random((3, 1, 4, 5)).astype(np.float32)
TOKENS = random.integers(0, 9, (3, 6))
PICTURED = dataset(PICTURES, CLASSES)
STEERED = dataset(PICTURES, np.array([0.1, -0.2, 0.3], np.float32), "regression")
WRITTEN = dataset(TOKENS, CLASSES, vocabulary=tuple("abcdefghi"))
ARCHIVED = {
    "archive": crafted_arrays.archive,
    "headers": crafted_arrays.members({"npy": crafted_arrays.array}),
    "values": crafted_arrays.members({"npy": damage.anything}),
}
FORGED = dict.fromkeys(ARCHIVED, MEMBERS)


def saved(save, **arrays):
    """Write an npz file."""

    def prepare(folder):
        save(folder / "data" / "mine.npz", **arrays)
        return folder / "data" / "mine.npz"

    return prepare


def of_suite(suite):
    """All that a suite is."""
    inputs = suite.take(np.arange(len(suite)))
    return inputs, suite.targets, suite.origin, suite.name, suite.label, suite.provenance, suite.shape, suite.task


def fitting(like, suite):
    """Whether tests are such as the network takes."""
    inputs, targets = suite[:2]
    classes = targets.min() >= 0 and targets.max() < 3 if like.task == "classification" else np.isfinite(targets).all()
    top = 8 if len(like.vocabulary) else 1
    kinds = inputs.dtype == like.inputs.dtype and targets.dtype == like.targets.dtype
    return bool(
        kinds and inputs.shape[1:] == like.inputs.shape[1:] and inputs.min() >= 0 and inputs.max() <= top and classes
    )


def own_tests(what, inputs, targets=CLASSES, like=PICTURED, save=np.savez, tries=360, flips=100):
    """An entry for own tests."""
    return Reader(
        f"own tests, {what}",
        ("idc_core.suites.custom_tests",),
        saved(save, inputs=inputs, targets=targets),
        lambda path: of_suite(custom_suite(path, like)),
        ARCHIVED,
        FORGED,
        damage.zip_heads,
        tries=tries,
        flips=flips,
        valid=partial(fitting, like),
    )


PREDICTED = {
    "activations": random.random((4, 3)).astype(np.float32),
    "layer_sizes": np.array([1, 2]),
    "predicted": np.array([0, 2, 1, 1]),
    "true": np.array([0, 2, 2, 1]),
    "class_names": np.array(["cat", "dog", "bird"]),
    "ids": np.arange(4),
    "label_ids": np.arange(4),
}
SEVERAL = {"activations": PREDICTED["activations"], "predicted": random.random((4, 3)) < 0.5}
PREDICTIONS = ("idc_core.confusion.predictions_file", "idc_core.confusion.predictions_parts")
TABLES = {
    "activations": "n1,n2,predicted,true,id\n0.5,0.25,cat,cat,1\n0.75,0,dog|cat,dog,2\n1e-3,1,dog,,3\n0,1,fox,fox,4\n",
    "probabilities": "neuron,cat,dog,bird\n1,0.5,0.25,0\n2,0,1,0.125\n3,.5,1.,0\n",
    "numbers": "n1,predicted\n0.5,0\n0.75,1\n2,2\n",
}


def whole(evidence):
    """Whether predictions are such as everything else takes: shares, unknown only of a class without inputs."""
    values = evidence.values
    if values is None:
        values = evidence.probability[~np.isnan(evidence.probability)]
    return bool(values.dtype.kind == "f" and ((values >= 0) & (values <= 1)).all())


def predictions(what, arrays):
    """An entry for own predictions as arrays."""
    return Reader(
        f"own predictions, {what}",
        PREDICTIONS,
        saved(np.savez, **arrays),
        own_evidence,
        ARCHIVED,
        FORGED,
        damage.zip_heads,
        valid=whole,
        tries=480,
        flips=100,
    )


def written(name, content):
    """Write a text or other content."""

    def prepare(folder):
        path = folder / "data" / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return prepare


def table(what, text):
    """An entry for own predictions as a table."""
    return Reader(
        f"own predictions, table of {what}",
        ("idc_core.confusion.predictions_table",),
        written("mine.csv", text),
        own_evidence,
        {"cells": crafted_texts.csv_text},
        dict.fromkeys(("damage", "cells"), TEXT),
        damage.all_of,
        valid=whole,
        tries=900,
    )


MASK = np.zeros((4, 5), bool)
MASK[1:3, 2:] = True


def picture(folder):
    path = folder / "data" / "mine.png"
    Image.fromarray(np.where(MASK, 255, 0).astype(np.uint8)).save(path, "PNG")
    return path


def mask(path):
    """What a mask says of every record."""

    class Records:
        positions = np.arange(2)

    found = mask_hypothesis(path.name, path.read_bytes(), PICTURED)
    return found.name, found.kind, np.array(found.behave(Records))


def onnx_network(folder):
    """Write two dense layers as ONNX."""
    values = np.random.default_rng(0).normal(size=24).astype(np.float32)
    numbers, output = onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["n", 2])
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"], "fc1", transB=1),
            onnx.helper.make_node("Relu", ["y"], ["r"], "relu1"),
            onnx.helper.make_node("MatMul", ["r", "v"], ["z"], "fc2"),
        ],
        "small",
        [onnx.helper.make_tensor_value_info("x", numbers, ["n", 4])],
        [output],
        [
            onnx.numpy_helper.from_array(values[:12].reshape(3, 4), "w"),
            onnx.numpy_helper.from_array(values[12:15], "b"),
            onnx.numpy_helper.from_array(values[15:21].reshape(3, 2), "v"),
        ],
    )
    path = folder / "small.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def own_network(path):
    """The network of a file, and the digest of the file."""
    build = NetworkFile(path)
    return build(), build.digest


ROWS = random.normal(size=(40, 4)).astype(np.float32)


def small_network():
    """Two dense layers."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))


def criterion(name, **options):
    """An entry for a saved criterion."""

    def prepare(folder):
        path = folder / "data" / "criterion"
        CRITERIA[name](small_network(), "0", **options).fit(ROWS).update(ROWS[:9]).save(path)
        return path

    def read(path):
        found = load_criterion(path, small_network())
        return found.score, found._settings(), found._state()

    return Reader(
        f"a saved criterion, {name}",
        ("idc_core.coverage.saved",),
        prepare,
        read,
        ARCHIVED,
        heads=damage.zip_heads,
        tries=120,
        flips=60,
    )


SETUP = """import idc_core as idc

@idc.dataset("toy-setup", class_names=("a", "b"))
def read(split):
    return [[0.0, 1.0]] * 4, [0, 1, 0, 1]
"""


def set_up(path):
    """What a setup file registers, which is taken out again."""
    try:
        return setup_files.open_setup(path).datasets
    finally:
        setup_files._close_all()


OWN = (
    own_tests("stored", PICTURES, tries=1200),
    own_tests("deflated", PICTURES, save=np.savez_compressed, tries=1200),
    own_tests("bytes", np.rint(PICTURES * 255).astype(np.uint8)),
    own_tests("another order of axes", np.asfortranarray(PICTURES)),
    own_tests("big-endian", PICTURES.astype(">f8"), CLASSES.astype(">i2")),
    own_tests("texts", TOKENS, like=WRITTEN),
    own_tests("numbers as targets", PICTURES, STEERED.targets, STEERED),
    *(criterion(name, **options) for name, options in (("idc", {"m": 3}), ("lsc", {}), ("tknp", {"k": 2}))),
    predictions("activations", PREDICTED),
    predictions("several labels", SEVERAL),
    predictions("probabilities", {"probability": random.random((4, 3)), "class_names": PREDICTED["class_names"]}),
    *(table(what, text) for what, text in TABLES.items()),
    Reader(
        "masks, arrays",
        ("idc_core.inspection.families.custom",),
        written("mine.npy", crafted_arrays.npy(MASK)),
        mask,
        {"headers": crafted_arrays.array},
        dict.fromkeys(("damage", "headers"), HEADER),
        tries=1500,
        special=False,
    ),
    Reader(
        "masks, pictures",
        ("idc_core.inspection.families.custom",),
        picture,
        mask,
        {"parts": crafted_binaries.png},
        {"parts": "the checksums of the parts are right: somebody else's file"},
        damage.all_of,
        tries=1500,
        special=False,
    ),
    Reader(
        "config file",
        (
            "idc_core.base.config",
            "idc_core.clustering.methods",
            "idc_core.datasets.remote",
            "idc_core.base.devices",
            "idc_core.base.growing",
            "idc_core.base.threads",
            "idc_core.tracing.batch_size",
            "idc_core.tracing.sources",
        ),
        lambda folder: written("../home/config.toml", "# mine\n[limits]\nmemory_mib = 256\n")(folder),
        lambda path: config(),
        {"texts": crafted_texts.toml_text},
        dict.fromkeys(("damage", "texts", "special"), TEXT),
        damage.all_of,
        valid=lambda found: type(found.memory_mib) is int and found.memory_mib >= 1,
        tries=360,
    ),
    Reader(
        "setup file",
        ("idc_core.opening.setup_files",),
        written("setup.py", SETUP),
        set_up,
        {"comment": lambda content, random: content + b"# %d" % random.randrange(1000)},
        {"damage": "a person's own code: another one does something else"},
        heads=lambda content: set(),
        tries=8,
        flips=0,
    ),
    Reader(
        "a network in ONNX",
        ("idc_core.models.onnx.reading", "idc_core.models.formats", "idc_core.models.network_file"),
        onnx_network,
        own_network,
        differs={"damage": "weights, names and sizes that are others"},
        tries=180,
        flips=150,
    ),
)
