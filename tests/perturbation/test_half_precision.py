"""Attacks on networks of half precision keep their bounds, and networks without gradients are told so."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import idc_core as idc
from idc_core.attribution.methods import attribute_layers
from idc_core.errors import UnsupportedOperationError
from idc_core.perturbation import ATTACKS

QUICK = {
    "bim": {"steps": 4},
    "pgd": {"steps": 4},
    "deepfool": {"steps": 10},
    "cw": {"learning_rate": 0.1, "iterations": 10, "search_steps": 2, "initial_constant": 1.0},
    "jsma": {"gamma": 0.15},
}
BOUNDED = ("fgsm", "bim", "pgd")
SOURCE = "idc_core.perturbation.attacks"
SHIPPED = [name for name, one in ATTACKS.items() if one.run.__module__.startswith(SOURCE)]


@cache
def network(dtype):
    torch.manual_seed(0)
    layers = [nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 3)]
    return nn.Sequential(*layers).eval().to(dtype)


def pictures():
    return np.random.default_rng(1).random((12, 1, 6, 6), np.float32)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_changed_is_the_attack_not_its_rounding(name, dtype):
    model, inputs = network(dtype), pictures()
    with torch.no_grad():
        answers = model(torch.tensor(inputs).to(dtype)).argmax(1).numpy()
    targets = answers.copy()
    targets[::3] = (targets[::3] + 1) % 3  # misclassified as they are
    settings = QUICK.get(name, {}) | ({"epsilon": 0.01} if name in BOUNDED else {})
    found = idc.attack(model, inputs, targets, name, **settings)
    np.testing.assert_array_equal(found.before, answers)
    with torch.no_grad():
        after = model(torch.tensor(found.inputs).to(dtype)).argmax(1).numpy()
    np.testing.assert_array_equal(found.predictions, after)
    if name in BOUNDED:
        assert 0 < found.linf.max() <= 0.01 + 1e-6
    moved = np.abs(found.inputs - inputs)
    np.testing.assert_array_equal(found.l0, (moved > 1e-6).any(1).sum((1, 2)))
    if name in ("deepfool", "cw"):  # the nearest misclassified input is the input itself
        np.testing.assert_allclose(found.inputs[::3], inputs[::3], atol=2e-6)
    if name == "jsma":
        assert found.l0.max() <= 2 * int(36 * 0.15 / 2)
        changed = found.inputs[moved > 0]
        assert np.isin(changed, [0.0, 1.0]).all()


def no_grad(net, x):
    with torch.no_grad():
        x = F.relu(net.backbone(x.flatten(1)))
    return net.head(x)


def inference(net, x):
    with torch.inference_mode():
        x = F.relu(net.backbone(x.flatten(1)))
    return net.head(x.clone())


def leaf(net, x):
    hidden = F.relu(net.backbone(x.flatten(1))).detach()
    return net.head(hidden + torch.zeros(8, requires_grad=True))


FROZEN = {
    "no_grad": no_grad,
    "inference_mode": inference,
    "detach": lambda net, x: net.head(F.relu(net.backbone(x.flatten(1))).detach()),
    "detach beside a leaf": leaf,
    "step function": lambda net, x: net.head((net.backbone(x.flatten(1)) > 0).float()),
}


class Frozen(nn.Module):
    def __init__(self, name):
        super().__init__()
        torch.manual_seed(0)
        self.backbone, self.head, self.name = nn.Linear(36, 8), nn.Linear(8, 3), name

    def forward(self, x):
        return FROZEN[self.name](self, x)


SAID = r"scores of the network of the class 'Frozen' have no gradient to its input"


DECIDING = ("boundary", "hop-skip-jump")
"""Attacks that ask for predictions alone."""


@pytest.mark.parametrize("frozen", FROZEN)
@pytest.mark.parametrize("name", [name for name in SHIPPED if name not in DECIDING])
def test_attacks_say_that_there_is_no_gradient_and_in_which_network(name, frozen):
    model = Frozen(frozen).eval()
    with torch.no_grad():
        targets = model(torch.tensor(pictures())).argmax(1).numpy()
    with pytest.raises(UnsupportedOperationError, match=SAID):
        idc.attack(model, pictures(), targets, name, **QUICK.get(name, {}))


@pytest.mark.parametrize("name", DECIDING)
def test_attacks_on_predictions_need_no_gradient(name):
    model = Frozen("no_grad").eval()
    with torch.no_grad():
        targets = model(torch.tensor(pictures())).argmax(1).numpy()
    assert idc.attack(model, pictures(), targets, name, **QUICK.get(name, {})).inputs.shape == pictures().shape


@pytest.mark.parametrize("frozen", [name for name in FROZEN if "leaf" not in name])  # its coverage can be raised
def test_searches_say_which_model_it_is(frozen):
    torch.manual_seed(1)
    whole = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    seeds = pictures()
    with torch.no_grad():  # seeds that both agree on
        agreed = (whole(torch.tensor(seeds)).argmax(1) == Frozen(frozen)(torch.tensor(seeds)).argmax(1)).numpy()
    with pytest.raises(UnsupportedOperationError, match=rf"(Model 2: The )?{SAID}"):
        idc.differential_search([whole, Frozen(frozen).eval()], seeds[agreed])


@pytest.mark.parametrize("method", ["gradient-x-input", "integrated-gradients", "deeplift", "conductance"])
@pytest.mark.parametrize("frozen", FROZEN)
def test_attribution_by_gradients_says_which_network(method, frozen):
    with pytest.raises(UnsupportedOperationError, match=r"finds no way .* by gradients in the network .* 'Frozen'"):
        attribute_layers(Frozen(frozen).eval(), pictures(), ["input"], method)


@pytest.mark.parametrize("frozen", ["no_grad", "inference_mode"])
def test_relevance_passes_a_frozen_backbone(frozen):
    model = Frozen(frozen).eval()
    plain = nn.Sequential(nn.Flatten(), model.backbone, nn.ReLU(), model.head).eval()
    found, expected = (idc.relevance(one, pictures(), ["input"])["input"] for one in (model, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", [RuntimeError, AssertionError])
def test_other_failures_of_an_attack_stay_what_they_are(kind, monkeypatch):
    def fail(batch, **settings):
        raise kind("something else")

    model = network(torch.float32)
    monkeypatch.setitem(ATTACKS, "fgsm", replace(ATTACKS["fgsm"], run=fail))
    with pytest.raises(kind, match="something else"):
        idc.attack(model, pictures(), [0] * 12, "fgsm")
