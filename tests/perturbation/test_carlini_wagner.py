"""Carlini-Wagner through foolbox: the same pictures, however inputs are cut, and none where nothing is found."""

import foolbox
import numpy as np
import pytest
import torch

import idc_core as idc
from idc_core.perturbation import ATTACKS

FEW = {"learning_rate": 0.1, "search_steps": 3, "iterations": 30, "initial_constant": 1.0}


@pytest.mark.rare
@pytest.mark.parametrize(("targeted", "confidence"), [(False, 0.0), (True, 0.0), (False, 2.0)])
def test_the_library_itself_gives_the_same_pictures(lenet, digits, targeted, confidence):
    pictures, labels = digits.inputs[:6], digits.targets[:6]
    goal = (labels + 1) % 10
    ours = idc.attack(lenet, pictures, labels, "cw", goal=goal if targeted else None, confidence=confidence, **FEW)
    attack = foolbox.attacks.L2CarliniWagnerAttack(3, 30, 0.1, confidence, 1.0, abort_early=False)
    aim = (
        foolbox.criteria.TargetedMisclassification(torch.tensor(goal))
        if targeted
        else foolbox.criteria.Misclassification(torch.tensor(labels))
    )
    network = foolbox.PyTorchModel(lenet, bounds=(0, 1), device="cpu")
    theirs = attack.run(network, torch.tensor(pictures), aim).numpy()
    assert ours.success.all()
    np.testing.assert_allclose(ours.inputs, theirs, atol=2e-3)


def test_results_do_not_depend_on_the_batch(lenet, digits):
    whole = idc.attack(lenet, digits.inputs[:8], digits.targets[:8], "cw", **FEW)
    cut = idc.attack(lenet, digits.inputs[:8], digits.targets[:8], "cw", batch_size=3, **FEW)
    np.testing.assert_allclose(whole.inputs, cut.inputs, atol=2e-3)
    np.testing.assert_allclose(whole.l2, cut.l2, rtol=2e-3)


def test_an_input_that_is_not_fooled_stays_as_it_is(lenet, digits):
    """Foolbox returns a black picture there."""
    weak = {"learning_rate": 1e-4, "search_steps": 1, "iterations": 2, "initial_constant": 1e-6}
    result = idc.attack(lenet, digits, name="cw", **weak)
    right = result.before == result.targets
    assert not result.success[right].any()
    np.testing.assert_array_equal(result.inputs[right], digits.inputs[right])
    assert (result.l2[right] == 0).all()


def test_the_presets_are_the_papers_values_and_ones_that_succeed(lenet, digits):
    entry = ATTACKS["cw"]
    defaults = {parameter.name: parameter.default for parameter in entry.parameters}
    assert {**defaults, **entry.presets["paper"].settings} == defaults
    assert entry.presets["paper"].label.startswith("the paper's")
    assert entry.presets["sensible"].label.startswith("sensible")
    result = idc.attack(lenet, digits, name="cw", preset="sensible", iterations=60)
    assert result.settings["iterations"] == 60
    assert result.settings["learning_rate"] == 0.1
    assert result.success_rate == 1
