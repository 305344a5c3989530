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
def setup(request, reference_folder):
    folder = reference_folder / "deepimportance"
    correct = np.load(folder / f"{request.param}_activations.npz")["train_correct"]
    labels = np.load(folder / "images.npz", allow_pickle=False)["train_labels"]
    return request.param, folder, load_images(folder, "train"), labels, correct, load_images(folder, "test")


def rows(folder, name, **wanted):
    found = json.loads((folder / f"{name}_idc.json").read_text())["rows"]
    return [row for row in found if "exact_covered" in row and all(row[key] == wanted[key] for key in wanted)]


@pytest.fixture(scope="module")
def observed(setup):
    """The network, and what its layers show on the training inputs it gets right and on the tests, traced once."""
    name, folder, train, _, correct, test = setup
    network = load_network(folder, name)
    wanted = rows(folder, name, ranking="net/z/correct", train_set="correct")
    layers = sorted({row["layer"] for row in wanted} | {LAYER[name]})
    settings = RelevanceSettings("z")
    learnt = collect(network, train[correct], layers, settings)
    return network, layers, learnt, collect(network, test, layers)


def counted(observed, layer, m, **settings):
    """IDC with the tests' cells counted, from what is traced already."""
    network, _, learnt, seen = observed
    criterion = IDC(network, layer, m=m, **settings)
    importance = learnt.relevance[layer].sum(0, dtype=np.float64)
    dense = layer.startswith("fc")
    criterion.learn(learnt.activations[layer], importance, dense=dense)
    criterion.count(seen.activations[layer][:, criterion.important])
    return criterion


@pytest.mark.parametrize("m", M)
def test_table(setup, observed, m):
    name = setup[0]
    criterion = counted(observed, LAYER[name], m, drop_zeros=name == "LeNet5")
    assert (criterion.covered, criterion.total) == TABLE[name][M.index(m)]


def test_fitted_is_as_counted(setup, observed):
    name, folder, train, _, correct, test = setup
    criterion = IDC(load_network(folder, name), LAYER[name], m=12, rule="z", drop_zeros=name == "LeNet5")
    criterion.fit(train[correct]).update(test)
    assert criterion.important.tolist() == counted(observed, LAYER[name], 12).important.tolist()
    assert (criterion.covered, criterion.total) == TABLE[name][-1]


@pytest.mark.parametrize("m", M)
def test_original(setup, observed, m):
    # Zeros are dropped in dense layers only; wrongly classified training images are left out by the option itself.
    name, folder = setup[:2]
    criterion = counted(observed, LAYER[name], m, original=True)
    zeros = "kept" if name == "LeNet1" else "dropped"
    (row,) = rows(folder, name, layer=LAYER[name], m=m, train_set="correct", zeros=zeros, rounded=True)
    assert criterion.important.tolist() == row["neurons"]
    assert (criterion.covered, criterion.total) == (row["exact_covered"], row["exact_max"])


def test_original_assignments(setup):
    name, folder, train, labels, _, test = setup
    network = load_network(folder, name)
    criterion = IDC(network, LAYER[name], m=12, rule="z", original=True).fit(train, labels)
    stored = np.load(folder / f"{name}_assignments.npz")
    assert criterion.important.tolist() == stored["neurons"].tolist()
    active = collect(network, test, [LAYER[name]]).activations[LAYER[name]]
    np.testing.assert_array_equal(criterion.count(active[:, criterion.important]), stored["exact_rounded"])
    assert criterion.covered == len(np.unique(stored["exact_rounded"], axis=0))


def test_every_layer_and_number(setup, observed):
    name, folder = setup[:2]
    wanted = rows(folder, name, ranking="net/z/correct", train_set="correct", rounded=False)
    assert {row["m"] for row in wanted if (row["layer"], row["zeros"]) == (LAYER[name], "dropped")} >= set(M)
    assert len({row["layer"] for row in wanted}) > 1
    for row in wanted:
        criterion = counted(observed, row["layer"], row["m"], drop_zeros=row["zeros"] == "dropped")
        assert criterion.important.tolist() == row["neurons"]
        assert (criterion.covered, criterion.total) == (row["exact_covered"], row["exact_max"]), row
        assert 100 * criterion.score == pytest.approx(row["exact_idc"])


def test_single_precision(setup):
    name, folder, train, _, correct, test = setup
    network = load_network(folder, name, torch.float32)
    criterion = IDC(network, LAYER[name], m=12, rule="z", drop_zeros=name == "LeNet5")
    criterion.fit(train[correct]).update(test)
    covered, total = TABLE[name][-1]
    assert criterion.total == total
    assert abs(criterion.covered - covered) <= 1
