"""A network with a module that it calls "input", which is the name of the network's own input."""

import numpy as np
import pytest
from torch import nn

import idc_core as idc
from idc_core.errors import ModelError
from idc_core.lrp.captures import INPUT, INPUT_MODULE
from idc_core.lrp.session import named_layers
from idc_core.models.survey import Survey, Wanted
from idc_core.tracing.trace import collect
from tests.lrp.networks import ROWS, settle


class Named(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.input, self.out = nn.Sequential(nn.Linear(6, width), nn.ReLU()), nn.Linear(width, 3)

    def forward(self, x):
        return self.out(self.input(x))


@pytest.mark.parametrize("width", [5, 6])
def test_the_name_is_that_of_the_networks_input(width):
    network = settle(Named(width))
    found = idc.relevance(network, ROWS, [INPUT, INPUT_MODULE], bias="redistribute")
    score = network(ROWS).amax(1).detach()
    assert (found[INPUT].shape, found[INPUT_MODULE].shape) == (ROWS.shape, (len(ROWS), width))
    for values in found.values():
        np.testing.assert_allclose(values.sum(1), score, rtol=1e-3)
    activations = collect(network, ROWS, [INPUT, INPUT_MODULE]).activations
    np.testing.assert_array_equal(activations[INPUT], ROWS.float())
    np.testing.assert_array_equal(activations[INPUT_MODULE], network.input(ROWS).detach().float())


def test_the_module_is_offered_and_refused_by_its_other_name():
    network = settle(Named(5))
    assert list(named_layers(network)) == ["", INPUT_MODULE, "input.0", "input.1", "out"]
    assert INPUT_MODULE in Survey(network, ROWS, "It", Wanted(), False).layers
    with pytest.raises(ModelError, match=f"{INPUT_MODULE}.*'input', the network's input"):
        idc.relevance(network, ROWS, ["inputs"])


def test_a_table_of_rules_calls_it_as_the_network_does():
    network = settle(Named(6))
    found = idc.relevance(network, ROWS, [INPUT], {"input": "flat"}, bias="redistribute")[INPUT]
    np.testing.assert_allclose(found, found[:, :1].repeat(6, 1), rtol=1e-9)
