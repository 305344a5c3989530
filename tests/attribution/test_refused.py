"""What an attribution method cannot do, or is asked for wrongly, is refused with a sentence."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core.attribution.methods import attribute
from idc_core.errors import DataError, ModelError, SettingError, UnsupportedOperationError
from tests.attribution.networks import INSIDE, Functional, Sharing


def test_an_activation_without_a_rule_is_refused_by_name(images):
    network = Functional(F.gelu).double()
    with pytest.raises(UnsupportedOperationError, match="DeepLift cannot pass through gelu"):
        attribute(network, images, "deeplift")
    assert attribute(network, images, "conductance", "conv1").shape == (7, 4, 12, 12)


def test_a_product_of_two_layers_is_refused_because_it_does_not_add_up():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x):
            return self.a(x) * self.b(x)

    torch.manual_seed(0)
    with pytest.raises(UnsupportedOperationError, match="miss the score difference"):
        attribute(Gated(), torch.ones(2, 4), "deeplift")


@pytest.mark.parametrize("method", INSIDE)
def test_a_layer_that_the_score_does_not_need_is_refused(method):
    class Aside(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x):
            self.unused(x)
            return self.used(x)

    with pytest.raises(UnsupportedOperationError, match="finds no way from the scores to 'unused'"):
        attribute(Aside(), torch.ones(2, 4), method, "unused")


@pytest.mark.parametrize("method", [name for name in INSIDE if name != "grad-cam"])
def test_a_network_without_gradients_is_refused(method):
    class Sealed(nn.Linear):
        @torch.no_grad()
        def forward(self, x):
            return super().forward(x)

    with pytest.raises(UnsupportedOperationError, match="finds no way from the scores to 'input'"):
        attribute(Sealed(4, 3), torch.ones(2, 4), method)


def test_grad_cam_is_refused_where_there_are_no_maps():
    dense = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    with pytest.raises(UnsupportedOperationError, match="Grad-CAM needs a layer whose channels have maps"):
        attribute(dense, torch.ones(2, 4), "grad-cam")
    tokens = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(15, 2))
    with pytest.raises(UnsupportedOperationError, match="this layer gives tokens"):
        attribute(tokens, torch.ones(2, 5, 4), "grad-cam", "0")


def test_occlusion_says_nothing_of_layers(images):
    with pytest.raises(SettingError, match="Occlusion says what parts of the input contribute, and nothing of layers"):
        attribute(Functional().double(), images, "occlusion", "conv1")


def test_a_layer_that_runs_twice_is_refused():
    network = Sharing()
    with pytest.raises(UnsupportedOperationError, match="'relu' runs 3 times"):
        attribute(network, torch.ones(2, 6), "conductance", "relu")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "magic"}, SettingError, "Unknown attribution method 'magic'"),
        ({"method": "deeplift", "steps": 5}, SettingError, "has no parameter 'steps'; its parameters: baseline"),
        ({"method": "integrated-gradients", "steps": 2.5}, SettingError, "steps of .* must be a whole number"),
        ({"method": "integrated-gradients", "steps": 1}, SettingError, "a whole number from 2 to 1000"),
        ({"method": "deeplift", "baseline": 1.5}, SettingError, "from 0.0 to 1.0, not 1.5"),
        ({"method": "epsilon", "bias": "drop"}, SettingError, "bias of .* must be 'absorb' or 'redistribute'"),
        ({"method": "alpha-beta", "alpha": 0.5}, SettingError, "alpha of .* must be a number of at least 1"),
        ({"method": "deeplift", "layer": "conv9"}, ModelError, "no layer 'conv9'"),
        ({"method": "deeplift", "target": "best"}, SettingError, "target must be 'predicted'"),
        ({"method": "deeplift", "target": [0, 1]}, SettingError, "for each of 7 inputs"),
        ({"method": "deeplift", "batch_size": 0}, SettingError, "batch_size must be a whole number of at least 1"),
    ],
)
def test_mistakes_get_a_sentence(network, images, arguments, error, message):
    with pytest.raises(error, match=message):
        attribute(network, images, **arguments)


def test_no_inputs_get_a_sentence(network, images):
    with pytest.raises(DataError, match="at least one input"):
        attribute(network, images[:0], "deeplift")
    with pytest.raises(DataError, match="at least one input, not list"):
        attribute(network, [1.0, 2.0], "gradient-x-input")
