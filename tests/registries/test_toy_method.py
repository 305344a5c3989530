"""An attribution method and a priority in one file each: they rank neurons and are in the lists that menus show."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from torch import nn

import idc_core as idc
from idc_core.attribution.methods import METHODS, attribute
from idc_core.importance.important_neurons import PRIORITIES
from idc_core.importance.ranking import by_method, by_relevance
from tests.lrp.networks import IMAGES, settle


@pytest.fixture(scope="module", autouse=True)
def toys():
    for name in ("method", "priority"):
        runpy.run_path(str(Path(__file__).parent / "toys" / f"{name}.py"))
    yield
    del METHODS.entered["toy-power"], PRIORITIES["toy-support"]


@pytest.fixture
def network():
    return settle(nn.Sequential(nn.Conv2d(IMAGES.shape[1], 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(75, 3)))


def test_the_method_runs_with_its_parameter(network):
    assert list(METHODS)[-1] == "toy-power"
    once = attribute(network, IMAGES, "toy-power", "0")
    np.testing.assert_array_equal(attribute(network, IMAGES, "toy-power", "0", power=2), once**2)
    assert by_method(network, IMAGES, "0", "toy-power").label == "Toy power"


def test_the_priority_ranks_neurons(network):
    assert list(PRIORITIES)[-1] == "toy-support"
    found = idc.IDC(network, "0", 2, clusters=(2, 3), priority="toy-support").fit(IMAGES)
    relevance = idc.relevance(network, IMAGES, ["0"])["0"].sum((2, 3))
    np.testing.assert_allclose(found.importance, relevance.clip(0).sum(0))
    assert by_relevance(relevance)[-1].name == "toy-support"
