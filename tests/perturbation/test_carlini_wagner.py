"""Our Carlini-Wagner attack is foolbox's, one input at a time."""

import foolbox
import numpy as np
import pytest
import torch

import idc_core as idc
from idc_core.perturbation import ATTACKS

FEW = {"learning_rate": 0.1, "search_steps": 4, "iterations": 40, "initial_constant": 1.0}


def library(model, pictures, labels, goal=None, confidence=0.0, at_a_time=1):
    """Foolbox's result, and who is fooled."""
    network = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    attack = foolbox.attacks.L2CarliniWagnerAttack(
        binary_search_steps=4, steps=40, stepsize=0.1, initial_const=1.0, confidence=confidence
    )
    inputs, classes = torch.tensor(pictures), torch.tensor(labels if goal is None else goal)
    found = []
    for start in range(0, len(inputs), at_a_time):
        rows = slice(start, start + at_a_time)
        aim = foolbox.criteria.Misclassification(classes[rows])
        if goal is not None:
            aim = foolbox.criteria.TargetedMisclassification(classes[rows])
        found.append(attack.run(network, inputs[rows], aim).detach())
    return torch.cat(found).numpy()


@pytest.mark.parametrize(("targeted", "confidence"), [(False, 0.0), (True, 0.0), (False, 2.0), (True, 2.0)])
def test_every_input_is_attacked_as_by_the_library_alone(lenet, digits, targeted, confidence):
    pictures, labels = digits.inputs[:6], digits.targets[:6]
    goal = (labels + 1) % 10 if targeted else None
    ours = idc.attack(lenet, pictures, labels, "cw", goal=goal, confidence=confidence, **FEW)
    theirs = library(lenet, pictures, labels, goal, confidence)
    assert ours.success.all()
    np.testing.assert_allclose(ours.inputs, theirs, atol=2e-3)
    np.testing.assert_allclose(ours.l2, np.sqrt(((theirs - pictures) ** 2).sum((1, 2, 3))), rtol=2e-3)


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


def test_ten_search_steps_end_with_the_largest_constant_that_worked(lenet, digits):
    few = {**FEW, "search_steps": 10, "iterations": 12}
    network = foolbox.PyTorchModel(lenet, bounds=(0, 1), device="cpu")
    attack = foolbox.attacks.L2CarliniWagnerAttack(binary_search_steps=10, steps=12, stepsize=0.1, initial_const=1.0)
    pictures, labels = digits.inputs[:2], digits.targets[:2]
    theirs = [
        attack.run(network, torch.tensor(picture[None]), foolbox.criteria.Misclassification(torch.tensor([label])))
        for picture, label in zip(pictures, labels, strict=True)
    ]
    ours = idc.attack(lenet, pictures, labels, "cw", **few)
    np.testing.assert_allclose(ours.inputs, torch.cat(theirs).detach().numpy(), atol=2e-3)
