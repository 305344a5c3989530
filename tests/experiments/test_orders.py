"""Other orders of neurons: gradients one input at a time, and where relevance and its alternatives part."""

import numpy as np
import pytest
import torch

from idc_core.datasets import load_dataset
from idc_core.experiments.orders import other_orders, sensitivity
from idc_core.importance.important_neurons import PRIORITIES
from idc_core.lrp.rules import RelevanceSettings
from idc_core.models import load_model


def gradient(model, layer, image):
    """Return the gradient of the highest score at a layer of LeNet-4 behind its activation function, for one input."""
    with torch.no_grad():
        value = model.conv2(model.pool1(model.conv1(torch.from_numpy(image[None].copy())).relu())).relu()
        value = value if layer == "conv2" else model.fc1(model.pool2(value).flatten(1)).relu()
    value.requires_grad_()
    last = value if layer == "fc1" else model.fc1(model.pool2(value).flatten(1)).relu()
    return torch.autograd.grad(model.logits(last).max(), value)[0][0].numpy()


@pytest.mark.parametrize("layer", ["fc1", "conv2"])
def test_sensitivity_is_the_gradient_of_each_input_by_itself(layer):
    model, train = load_model("lenet4-digits"), load_dataset("digits", "train", 7)
    each = np.stack([np.abs(gradient(model, layer, image)) for image in train.inputs])
    expected = each.reshape(*each.shape[:2], -1).sum((0, 2))
    assert sensitivity(model, train, layer) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_each_order_has_every_neuron_once():
    model, train = load_model("lenet4-digits"), load_dataset("digits", "train", 20)
    found = other_orders(model, train, "fc1", RelevanceSettings())
    assert list(found) == ["absolute", "normalised", "sensitivity"]
    assert all(sorted(order.tolist()) == list(range(84)) for order in found.values())


def test_normalised_relevance_counts_all_inputs_alike():
    relevance = np.array([[900.0, 100.0, 0.0], [0.1, 0.9, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 0.0]])
    assert PRIORITIES["sum"].total(relevance).argmax() == 0
    assert PRIORITIES["normalised"].total(relevance) == pytest.approx([1.2, 1.8, 0.0])
    halves = PRIORITIES["normalised"].per_input(np.array([[-1.0, 3.0]]))
    assert halves == pytest.approx(np.array([[-0.25, 0.75]]))
