"""Parity of whole criteria with the original program: covered and total, with exact partitions."""

import json

import numpy as np
import pytest
import torch

from idc_core import IDC
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect
from tests.lrp.reference_networks import load_images, load_network

LAYER = {"LeNet1": "conv2", "LeNet5": "fc2"}
# The table "exact partitions, unrounded": zeros are kept for LeNet-1, a convolution, and dropped for LeNet-5.
TABLE = {
    "LeNet1": [(85, 96), (251, 576), (368, 2304), (513, 18432)],
    "LeNet5": [(67, 96), (126, 384), (228, 3072), (341, 18432)],
}
M = (6, 8, 10, 12)


@pytest.fixture(scope="module", params=["LeNet1", "LeNet5"])
def bench(request, reference_folder):
    folder = reference_folder / "deepimportance"
    correct = np.load(folder / f"{request.param}_activations.npz")["train_correct"]
    labels = np.load(folder / "images.npz", allow_pickle=False)["train_labels"]
    return request.param, folder, load_images(folder, "train"), labels, correct, load_images(folder, "test")


def rows(folder, name, **wanted):
    found = json.loads((folder / f"{name}_idc.json").read_text())["rows"]
    return [row for row in found if "exact_covered" in row and all(row[key] == wanted[key] for key in wanted)]


@pytest.mark.parametrize("m", M)
def test_zeros_dropped(bench, m):
    name, folder, train, _, correct, test = bench
    criterion = IDC(load_network(folder, name), LAYER[name], m=m, rule="z", drop_zeros=True)
    criterion.fit(train[correct]).update(test)
    (row,) = rows(folder, name, layer=LAYER[name], m=m, train_set="correct", zeros="dropped", rounded=False)
    assert criterion.important.tolist() == row["neurons"]
    assert (criterion.covered, criterion.total) == (row["exact_covered"], row["exact_max"])
    assert 100 * criterion.score == pytest.approx(row["exact_idc"])


@pytest.mark.parametrize("m", M)
def test_table(bench, m):
    name, folder, train, _, correct, test = bench
    criterion = IDC(load_network(folder, name), LAYER[name], m=m, rule="z", drop_zeros=name == "LeNet5")
    criterion.fit(train[correct]).update(test)
    assert (criterion.covered, criterion.total) == TABLE[name][M.index(m)]


@pytest.mark.parametrize("m", M)
def test_original(bench, m):
    # Zeros are dropped in dense layers only; wrongly classified training images are left out by the option itself.
    name, folder, train, labels, _, test = bench
    criterion = IDC(load_network(folder, name), LAYER[name], m=m, rule="z", original=True)
    criterion.fit(train, labels).update(test)
    zeros = "kept" if name == "LeNet1" else "dropped"
    (row,) = rows(folder, name, layer=LAYER[name], m=m, train_set="correct", zeros=zeros, rounded=True)
    assert criterion.important.tolist() == row["neurons"]
    assert (criterion.covered, criterion.total) == (row["exact_covered"], row["exact_max"])


def test_original_assignments(bench):
    name, folder, train, labels, _, test = bench
    network = load_network(folder, name)
    criterion = IDC(network, LAYER[name], m=12, rule="z", original=True).fit(train, labels)
    stored = np.load(folder / f"{name}_assignments.npz")
    assert criterion.important.tolist() == stored["neurons"].tolist()
    active = collect(network, test, [LAYER[name]]).activations[LAYER[name]]
    np.testing.assert_array_equal(criterion.count(active[:, criterion.important]), stored["exact_rounded"])
    assert criterion.covered == len(np.unique(stored["exact_rounded"], axis=0))


def test_every_layer_and_number(bench):
    name, folder, train, _, correct, test = bench
    network = load_network(folder, name)
    wanted = rows(folder, name, ranking="net/z/correct", train_set="correct", rounded=False)
    layers = sorted({row["layer"] for row in wanted})
    assert len(layers) > 1
    settings = RelevanceSettings("z")
    learnt, seen = collect(network, train, layers, settings), collect(network, test, layers)
    for layer in layers:
        importance = learnt.relevance[layer][correct].sum(0, dtype=np.float64)
        for row in (row for row in wanted if row["layer"] == layer):
            criterion = IDC(network, layer, m=row["m"], drop_zeros=row["zeros"] == "dropped")
            criterion.learn(learnt.activations[layer][correct], importance)
            criterion.count(seen.activations[layer][:, criterion.important])
            assert criterion.important.tolist() == row["neurons"]
            assert (criterion.covered, criterion.total) == (row["exact_covered"], row["exact_max"]), row


def test_single_precision(bench):
    name, folder, train, _, correct, test = bench
    network = load_network(folder, name, torch.float32)
    criterion = IDC(network, LAYER[name], m=12, rule="z", drop_zeros=name == "LeNet5")
    criterion.fit(train[correct]).update(test)
    covered, total = TABLE[name][-1]
    assert criterion.total == total
    assert abs(criterion.covered - covered) <= 1
