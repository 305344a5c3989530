"""Perturbation curves: on a linear network the right order is known, and so is every point of the curves."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.datasets.dataset import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.experiments.faithfulness import COMPARED, faithfulness
from idc_core.perturbation.removal import parts_of, with_parts

WEIGHTS = np.array([3.0, -1.0, 2.0, 0.5])
"""Of the four squares of a picture; the other class's score is 0."""


def dataset(inputs, **more):
    n = len(inputs)
    settings = {"vocabulary": (), "texts": (), "task": "classification", "class_names": ("a", "b")} | more
    return Dataset("toy", "test", inputs, np.zeros(n, np.int64), ids=np.arange(n), fingerprint="", **settings)


def linear():
    """The first class's score is the weighted sum of the squares' means."""
    network = nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(4, 2, bias=False)).double()
    with torch.no_grad():
        network[2].weight[:] = torch.tensor(np.stack([WEIGHTS, np.zeros(4)]))
    return network


def pictures(n=6):
    return np.random.default_rng(0).uniform(0.5, 1, (n, 1, 4, 4)).astype(np.float32)


@pytest.mark.parametrize("method", ["attnlrp", "gradient-x-input", "integrated-gradients"])
def test_curves_of_a_linear_network_are_those_of_its_contributions(method, monkeypatch):
    monkeypatch.setattr("idc_core.experiments.faithfulness._SETTINGS", {})
    data = dataset(pictures())
    found = faithfulness(linear(), data, [method], seeds=1, steps=4, side=2, colour=np.zeros(1))
    contributions = pictures().reshape(6, 2, 2, 2, 2).mean((2, 4), dtype=np.float64).reshape(6, 4) * WEIGHTS
    ordered = -np.sort(-contributions, axis=1)
    whole = ordered.sum(1)
    for column, gone in enumerate((ordered, ordered[:, ::-1])):
        left = np.stack([whole, *(whole - gone[:, : k + 1].sum(1) for k in range(4))])
        np.testing.assert_allclose(found.logit[0, column, 0], left.mean(1), atol=1e-6)
        np.testing.assert_allclose(found.probability[0, column, 0], (1 / (1 + np.exp(-left))).mean(1), atol=1e-6)
    np.testing.assert_array_equal(found.removed, [0, 0.25, 0.5, 0.75, 1])
    curve = found.logit[0, 0, 0]
    assert found.areas("logit")[0, 0, 0] == pytest.approx((curve[0] / 2 + curve[1:4].sum() + curve[4] / 2) / 4)


def test_no_order_beats_the_contributions_of_a_linear_network():
    found = faithfulness(linear(), dataset(pictures()), seeds=3, steps=4, side=2, colour=np.zeros(1))
    assert set(found.refused) == {"attention-rollout"}
    assert "none ran" in found.refused["attention-rollout"]
    assert found.methods == tuple(name for name in COMPARED if name != "attention-rollout")
    assert (found.inputs, found.parts, found.seeds) == (6, 4.0, (0, 1, 2))
    most, least = found.areas("logit")[:, 0], found.areas("logit")[:, 1]
    assert (most[0] < most[-1]).all()
    assert (least[0] > least[-1]).all()
    assert (found.between("logit")[0] > 0).all()


def test_seeds_draw_inputs_and_orders_and_nothing_else():
    data = dataset(pictures(40))
    first, again = (faithfulness(linear(), data, inputs=5, seeds=2, steps=3, side=2) for _ in range(2))
    np.testing.assert_array_equal(first.probability, again.probability)
    assert (first.probability[:, :, 0] != first.probability[:, :, 1]).any()
    (second,) = faithfulness(linear(), data, inputs=5, seeds=[1], steps=3, side=2).probability[0].transpose(1, 0, 2)
    np.testing.assert_array_equal(second, first.probability[0, :, 1])
    batches = faithfulness(linear(), data, inputs=5, seeds=2, steps=3, side=2, batch_size=2)
    np.testing.assert_allclose(batches.logit, first.logit, atol=1e-6)


def test_words_are_replaced_and_padding_and_marks_stay():
    ids = np.array([[9, 4, 5, 6, 0], [9, 7, 0, 0, 0]])
    parts = parts_of(dataset(ids, vocabulary=tuple("abcdefghij"), special=(0, 1, 9)), 4)
    assert parts.counts.tolist() == [3, 1]
    places = parts.places(parts.relevance(np.array([[9.0, 1, 3, 2, 9], [9, -1, 9, 9, 9]])))
    assert places[0, 1:4].tolist() == [2, 0, 1]
    assert parts.without(places < np.array([[2], [0]])).tolist() == [[9, 4, 1, 1, 0], [9, 7, 0, 0, 0]]
    assert parts.without(places < parts.counts[:, None]).tolist() == [[9, 1, 1, 1, 0], [9, 1, 0, 0, 0]]


def test_empty_texts_are_left_out():
    ids = np.array([[4, 5, 0], [1, 0, 0], [0, 0, 0], [7, 1, 0]])
    kept = with_parts(dataset(ids, vocabulary=tuple("abcdefgh")))
    assert kept.ids.tolist() == [0, 3]
    assert with_parts(kept) is kept


def test_squares_have_the_mean_colour():
    images = np.random.default_rng(0).random((2, 3, 4, 6)).astype(np.float32)
    parts = parts_of(dataset(images), 2)
    removed = np.zeros((2, 6), np.bool_)
    removed[1, 4] = True  # second row of squares, second column
    changed = parts.without(removed)
    np.testing.assert_array_equal(changed[0], images[0])
    mean = images.mean((0, 2, 3))[:, None, None]
    np.testing.assert_allclose(changed[1, :, 2:, 2:4], np.broadcast_to(mean, (3, 2, 2)), rtol=1e-5)
    assert (changed[1] != images[1]).sum() == 12
    np.testing.assert_allclose(parts.relevance(images)[1, 4], images[1, :, 2:, 2:4].sum(), rtol=1e-6)


def test_mistakes_get_a_sentence():
    data = dataset(pictures())
    with pytest.raises(SettingError, match="not magic"):
        faithfulness(linear(), data, ["magic"])
    with pytest.raises(SettingError, match="toy, a regression"):
        faithfulness(linear(), dataset(pictures(), task="regression"))
    with pytest.raises(SettingError, match="side must divide pictures of 4 x 4"):
        faithfulness(linear(), data, side=3)
    with pytest.raises(SettingError, match="steps must be a whole number of at least 2"):
        faithfulness(linear(), data, steps=1)
    with pytest.raises(SettingError, match="measure must be"):
        faithfulness(linear(), data, ["random"], side=2, steps=2, seeds=1).between("accuracy")
    with pytest.raises(DataError, match="not from inputs of shape"):
        parts_of(dataset(np.zeros((2, 3), np.float32)), 4)
    with pytest.raises(DataError, match="Text 0 of toy has no words"):
        parts_of(dataset(np.zeros((1, 3), np.int64), vocabulary=("a", "b")), 4)
